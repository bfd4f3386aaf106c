"""Faults of the disk, of a value and of the program: the training goes on, and what was written can be read."""

import os
import signal
import subprocess
import sys

import pytest
import xgboost
from boost_trainings import BINARY, EVERY, hook_for, matrices, train
from trial_dump import TrialDump, program

import tornasole
import tornasole.xgboost as ts
from tornasole.core.guard import guard
from tornasole.trials import create_trial

TRAINING = """
import hashlib, os, resource, signal, sys
import numpy, xgboost
fault, directory = sys.argv[1:]
numbers = numpy.random.default_rng(0)
X = numbers.normal(size=(200, 6))
matrix = xgboost.DMatrix(X, label=X[:, 0] > 0)
callbacks = []
if fault != "bare":
    import tornasole.xgboost as smd
    if fault == "full":
        signal.signal(signal.SIGXFSZ, signal.SIG_IGN)
        resource.setrlimit(resource.RLIMIT_FSIZE, (3000, 3000))
    hook = smd.Hook(out_dir=directory, save_config=smd.SaveConfig(save_interval=1), save_all=True,
                    train_data=matrix, validation_data=matrix, hyperparameters={"a": 1})
    if fault == "gone":
        open(directory, "w").close()  # a file in the place of the directory
    callbacks = [hook]

class Ended(xgboost.callback.TrainingCallback):
    def before_iteration(self, model, epoch, log):
        if epoch == 8 and fault in ("killed", "raised"):
            hook._wait_until_written(60)
            if fault == "killed":
                os.kill(os.getpid(), signal.SIGKILL)
            raise ValueError("the program is wrong")

params = {"objective": "binary:logistic", "nthread": 1, "seed": 1, "subsample": 0.5}
callbacks.append(Ended())
booster = xgboost.train(params, matrix, 12, evals=[(matrix, "train")], callbacks=callbacks, verbose_eval=False)
print(hashlib.sha256(bytes(booster.save_raw("ubj"))).hexdigest())
if fault != "bare":
    hook.close()
    print("report", hook.report()["due_steps"], hook.report()["committed_steps"])
"""


def run(fault, directory):
    package = os.path.dirname(os.path.dirname(os.path.abspath(tornasole.__file__)))
    environment = {**os.environ, "PYTHONPATH": package, "TORNASOLE_LOG_LEVEL": "off"}
    command = [sys.executable, "-c", TRAINING, fault, str(directory)]
    return subprocess.run(command, env=environment, capture_output=True, text=True, timeout=300, check=False)


@pytest.fixture(scope="module")
def bare(tmp_path_factory):
    return run("bare", tmp_path_factory.mktemp("bare")).stdout


FAULTS = [("full", "a disk that takes no more"), ("gone", "no directory can be made")]


@pytest.mark.parametrize("fault, what", FAULTS, ids=[row[1] for row in FAULTS])
def test_training_goes_on(fault, what, bare, tmp_path):
    ran = run(fault, tmp_path / "run")
    assert ran.returncode == 0, ran.stderr
    assert ran.stdout.splitlines()[0] + "\n" == bare, "with the same model"
    due, committed = map(int, ran.stdout.splitlines()[1].split()[1:])
    assert due == 12 and committed < 12, "and what was lost is counted"


ENDS = [("killed", -signal.SIGKILL, "a killed run"), ("raised", 1, "a run that an exception ended")]


@pytest.mark.parametrize("fault, status, what", ENDS, ids=[row[2] for row in ENDS])
def test_can_be_opened(fault, status, what, tmp_path):
    ran = run(fault, tmp_path / "run")
    assert ran.returncode == status, ran.stderr
    assert TrialDump(tmp_path / "run").steps["GLOBAL"] == list(range(8))
    checked = subprocess.run([program(), "verify", str(tmp_path / "run")], capture_output=True, text=True, check=False)
    assert checked.returncode == 0, checked.stdout


def failing(*arguments, **options):
    raise xgboost.core.XGBoostError("it cannot be told")


BROKEN = [
    ("a booster that cannot be dumped", "get_dump", "trees/", "feature_importance/weight/f0"),
    ("a booster without scores", "get_score", "feature_importance/", "trees/Node"),
]


@pytest.mark.parametrize("what, method, lost, kept", BROKEN, ids=[row[0] for row in BROKEN])
def test_a_group_that_cannot_be_had_costs_no_other(what, method, lost, kept, tmp_path, monkeypatch):
    hook = hook_for(tmp_path / "run")
    monkeypatch.setattr(xgboost.Booster, method, failing)
    booster = train(hook, rounds=3)
    hook.close()
    assert booster.num_boosted_rounds() == 3 and not guard.disable_smdebug
    names = create_trial(str(tmp_path / "run")).tensor_names()
    assert not [name for name in names if name.startswith(lost)]
    assert {kept, "train-logloss"} <= set(names)


def test_the_default_hook_is_switched_off_by_a_failure(tmp_path, monkeypatch):
    hook = ts.Hook(out_dir=str(tmp_path / "run"), save_config=EVERY)
    monkeypatch.setattr(hook, "_after_round", failing)
    booster = train(hook, rounds=3)
    assert booster.num_boosted_rounds() == 3 and guard.disable_smdebug


def test_data_that_does_not_fit_the_model_costs_what_is_computed_of_it_alone(tmp_path):
    wide = matrices(features=9)[0]
    hook = hook_for(tmp_path / "run", train_data=wide, validation_data=wide)
    booster = train(hook, rounds=3)
    hook.close()
    assert booster.num_boosted_rounds() == 3
    names = create_trial(str(tmp_path / "run")).tensor_names()
    assert {"train-logloss", "labels", "trees/Node"} <= set(names)
    assert not {"full_shap/f0", "average_shap/f0", "predictions"} & set(names)


def test_a_hook_that_was_closed_is_silent(tmp_path):
    hook = ts.Hook(out_dir=str(tmp_path / "run"), save_config=EVERY)
    train(hook, rounds=2)
    hook.close()
    assert train(hook, BINARY, rounds=2).num_boosted_rounds() == 2
    assert create_trial(str(tmp_path / "run")).steps() == [0, 1]
