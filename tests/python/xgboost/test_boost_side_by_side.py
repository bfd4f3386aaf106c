"""The same script under smdebug and under tornasole gives the same trial."""

import os
import subprocess

import pytest
from trial_dump import TrialDump

import tornasole

PROGRAM = """
import logging, os, sys
logging.disable(logging.CRITICAL)
import numpy, xgboost
which, directory = sys.argv[1:]
if which == "smdebug":
    import smdebug.xgboost as smd
else:
    import tornasole.xgboost as smd
numbers = numpy.random.default_rng(0)
X = numbers.normal(size=(60, 5))
y = (X[:, 0] * X[:, 1] > 0).astype(int)

def run(name, features=None, rounds=7, params={}, own=None, **options):
    smd.del_hook()
    dtrain = xgboost.DMatrix(X[:40], label=y[:40], feature_names=features)
    dtest = xgboost.DMatrix(X[40:], label=y[40:], feature_names=features)
    hook = smd.Hook(out_dir=os.path.join(directory, name), train_data=dtrain, validation_data=dtest,
                    hyperparameters={"eta": 0.3, "objective": "binary:logistic", "deep": 4, "on": True}, **options)
    if own:
        hook.get_collection(own[0]).include(own[1])
    hook.set_mode(smd.modes.TRAIN)
    hook.save_scalar("before", 3.5)
    xgboost.train({"objective": "binary:logistic", "nthread": 1, "eval_metric": ["auc", "error", "logloss"], **params},
                  dtrain, rounds, evals=[(dtrain, "train"), (dtest, "test")], callbacks=[hook], verbose_eval=False)
    hook.close()

groups = ["hyperparameters", "predictions", "labels", "feature_importance", "average_shap", "full_shap", "trees"]
run("default", rounds=12)
run("groups", save_config=smd.SaveConfig(save_interval=2), include_collections=groups)
run("all", save_config=smd.SaveConfig(save_steps=[1, 4]), save_all=True)
run("named", features=["age", "mass", "size", "x y", "u"], save_config=smd.SaveConfig(save_interval=3),
    include_collections=groups)
run("dart", params={"booster": "dart", "rate_drop": 0.5, "seed": 1}, save_config=smd.SaveConfig(save_interval=2),
    include_collections=["feature_importance", "trees", "losses"])
run("modes", include_collections=["trees"], save_config=smd.SaveConfig({
    smd.modes.TRAIN: smd.SaveConfigMode(save_interval=3, start_step=1),
    smd.modes.EVAL: smd.SaveConfigMode(save_steps=[1]),
    smd.modes.PREDICT: smd.SaveConfigMode(save_interval=1),
    smd.modes.GLOBAL: smd.SaveConfigMode(save_interval=1)}))
"""
RUNS = ["default", "groups", "all", "named", "dart", "modes"]
REFERENCE = os.path.join(os.path.dirname(__file__), "..", "..", "..", ".venvs", "xgboost-old", "bin", "python")


@pytest.fixture(scope="module")
def trials(tmp_path_factory):
    assert os.path.exists(REFERENCE), "make env NAME=xgboost-old"
    directory = tmp_path_factory.mktemp("side_by_side")
    # The package alone: beside it there may be another XGBoost.
    package = tmp_path_factory.mktemp("package")
    (package / "tornasole").symlink_to(os.path.dirname(os.path.abspath(tornasole.__file__)))
    for which in ("smdebug", "tornasole"):
        # Both under the same XGBoost. The reference must not see the alias of the package.
        environment = {**os.environ, "SMDEBUG_LOG_LEVEL": "off", "PYTHONPATH": str(package) if which == "tornasole" else ""}
        command = [REFERENCE, "-W", "ignore", "-c", PROGRAM, which, str(directory / which)]
        ran = subprocess.run(command, env=environment, capture_output=True, text=True, timeout=600, check=False)
        assert ran.returncode == 0, ran.stderr
    return {(which, run): TrialDump(directory / which / run) for which in ("smdebug", "tornasole") for run in RUNS}


@pytest.mark.parametrize("run", RUNS)
def test_the_same_trial(run, trials):
    theirs, ours = trials["smdebug", run], trials["tornasole", run]
    # Their pattern for the SHAP collections leaves out all names that end in one of the letters of "bias".
    assert set(ours.names) - set(theirs.names) <= {"average_shap/mass", "full_shap/mass"}
    assert set(theirs.names) <= set(ours.names)
    assert ours.modes() == theirs.modes()
    assert ours.steps == theirs.steps
    assert ours.workers == theirs.workers
    their_entries, our_entries = theirs.entries(), ours.entries()
    assert their_entries.keys() <= our_entries.keys()
    for key, entry in their_entries.items():
        same = our_entries[key]
        assert same["mode_step"] == entry["mode_step"], key
        # What they call average is the mean of signed contributions; here it is the sum of magnitudes.
        fields = ("dtype", "shape") if key[0].startswith("average_shap/") else ("dtype", "shape", "sha256")
        for field in fields:
            assert same["value"][field] == entry["value"][field], (key, field)
