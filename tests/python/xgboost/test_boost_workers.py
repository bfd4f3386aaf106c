"""Several processes that train one model: each writes as the worker it is, or the first alone."""

import os
import subprocess
import sys

import pytest
from trial_dump import TrialDump

import tornasole

PROGRAM = """
import json, logging, multiprocessing, sys
logging.disable(logging.CRITICAL)

def work(arguments, directory, which, rank):
    import numpy, xgboost
    import tornasole.xgboost as smd
    options = {"out_dir": directory, "include_workers": which, "save_config": smd.SaveConfig(save_interval=1)}
    hook = smd.Hook(include_collections=["trees"], **options)  # before the process knows its rank
    with xgboost.collective.CommunicatorContext(**arguments):
        numbers = numpy.random.default_rng(rank)
        X = numbers.normal(size=(80, 4))
        matrix = xgboost.DMatrix(X, label=X[:, 0] > 0)
        params = {"objective": "binary:logistic", "tree_method": "hist", "nthread": 1}
        xgboost.train(params, matrix, 3, evals=[(matrix, "train")], callbacks=[hook], verbose_eval=False)
        hook.close()

if __name__ == "__main__":
    from xgboost.tracker import RabitTracker
    tracker = RabitTracker(host_ip="127.0.0.1", n_workers=2)
    if hasattr(tracker, "worker_args"):
        try:
            tracker.start()
        except TypeError:  # as in XGBoost 1.7
            tracker.start(2)
        arguments = tracker.worker_args()
    else:
        tracker.start(2)
        arguments = tracker.worker_envs()
    context = multiprocessing.get_context("spawn")
    workers = [context.Process(target=work, args=(arguments, *sys.argv[1:], rank)) for rank in range(2)]
    for worker in workers:
        worker.start()
    for worker in workers:
        worker.join()
    print([worker.exitcode for worker in workers])
"""


@pytest.mark.parametrize("which, workers", [("all", ["worker_0", "worker_1"]), ("one", ["worker_0"])])
def test_workers(which, workers, tmp_path):
    script = tmp_path / "train.py"
    script.write_text(PROGRAM)
    package = os.path.dirname(os.path.dirname(os.path.abspath(tornasole.__file__)))
    command = [sys.executable, "-W", "ignore", str(script), str(tmp_path / "run"), which]
    environment = {**os.environ, "PYTHONPATH": package, "OMP_NUM_THREADS": "1"}
    ran = subprocess.run(command, env=environment, capture_output=True, text=True, timeout=300, check=False)
    assert ran.stdout.splitlines()[-1:] == ["[0, 0]"], ran.stdout + ran.stderr
    trial = TrialDump(tmp_path / "run")
    assert trial.workers == workers
    assert trial.steps["GLOBAL"] == [0, 1, 2]
    written = {worker for name, _, worker in trial.entries() if name == "trees/Node"}
    assert written == set(workers)
