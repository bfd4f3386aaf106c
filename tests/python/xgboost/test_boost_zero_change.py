"""Programs that train with XGBoost and know nothing of tornasole, captured by the command that starts them."""

import json
import os
import re
import subprocess
import sys

import pytest
from trial_dump import TrialDump

import tornasole

PACKAGE = os.path.dirname(os.path.dirname(os.path.abspath(tornasole.__file__)))
DATA = """
import hashlib, numpy, xgboost
numbers = numpy.random.default_rng(0)
X = numbers.normal(size=(60, 4))
y = (X[:, 0] + X[:, 1] > 0).astype(int)
def told(booster):
    print(hashlib.sha256(bytes(booster.save_raw("ubj"))).hexdigest())
"""
TRAIN = """
dtrain, dtest = xgboost.DMatrix(X[:40], label=y[:40]), xgboost.DMatrix(X[40:], label=y[40:])
params = {"objective": "binary:logistic", "nthread": 1, "subsample": 0.5}
told(xgboost.train(params, dtrain, 12, evals=[(dtrain, "train"), (dtest, "eval")], verbose_eval=False))
"""
SKLEARN = """
model = xgboost.XGBClassifier(n_estimators=12, n_jobs=1, subsample=0.5)
told(model.fit(X[:40], y[:40], eval_set=[(X[:40], y[:40]), (X[40:], y[40:])], verbose=False).get_booster())
"""
CV = """
table = xgboost.cv({"objective": "binary:logistic", "nthread": 1}, xgboost.DMatrix(X, label=y), 12, as_pandas=False)
print(table["test-logloss-mean"][-1])
"""


NUMBERS = """
data = xgboost.DMatrix(X, label=X[:, 0] + X[:, 1])
params = {"nthread": 1, "verbosity": 0}
def train(data, first=None, **more):
    return xgboost.train({**params, **more}, data, 12, evals=[(data, "train")], verbose_eval=False, xgb_model=first)
"""
LINEAR = NUMBERS + """
told(train(data, booster="gblinear", updater="coord_descent"))
"""
UPDATE = NUMBERS + """
first = xgboost.Booster(params, [data])
for number in range(12):
    first.update(data, number)
told(train(data, first, process_type="update", updater="refresh"))
"""
LOOP = """
data, other = xgboost.DMatrix(X[:40], label=y[:40]), xgboost.DMatrix(X[40:], label=y[40:])
booster = xgboost.Booster({"objective": "binary:logistic", "eval_metric": "logloss", "nthread": 1, "seed": 3}, [data])
for number in range(12):
    booster.update(data, number, fobj)
    print(booster.eval_set([(data, "train"), (other, "held-out")], number))
told(booster)
"""
TARGETS = NUMBERS + """
told(train(xgboost.DMatrix(X, label=X[:, :2]), multi_strategy="multi_output_tree", tree_method="hist"))
"""


def run(text, tmp_path, *under, environment=None):
    script = tmp_path / "train.py"
    script.write_text(DATA + text)
    clean = {key: value for key, value in os.environ.items() if not key.startswith(("TORNASOLE_", "SMDEBUG_"))}
    clean.update({"PYTHONPATH": PACKAGE, "TORNASOLE_CLOSE_WAIT_S": "120", **(environment or {})})
    command = [sys.executable, *(["-m", "tornasole", "run", *under] if under else []), str(script)]
    ran = subprocess.run(command, cwd=tmp_path, env=clean, capture_output=True, text=True, timeout=300, check=False)
    assert ran.returncode == 0, ran.stderr
    return ran


LOOP_NAMES = {"train-logloss", "held-out-logloss", "predictions", "labels", "hyperparameters/eta"}
PROGRAMS = [
    ("xgboost.train", TRAIN, {"train-logloss", "eval-logloss", "predictions", "labels", "trees/Node"}),
    ("scikit-learn", SKLEARN, {"validation_0-logloss", "validation_1-logloss", "hyperparameters/subsample"}),
    ("xgboost.cv", CV, {"train-logloss", "test-logloss"}),
    ("a linear booster", LINEAR, {"train-rmse", "predictions"}),
    ("trees that are brought up to date", UPDATE, {"train-rmse", "predictions"}),
    ("rounds of the program's own", LOOP.replace(", fobj", ""), LOOP_NAMES),
    ("its own gradients", LOOP.replace("fobj)", "lambda p, d: (p - d.get_label(), numpy.ones(40)))"), LOOP_NAMES),
    ("trees of several targets", TARGETS, {"train-rmse"}),
]


@pytest.mark.parametrize("what, text, names", PROGRAMS, ids=[row[0] for row in PROGRAMS])
def test_programs(what, text, names, tmp_path):
    plain = run(text, tmp_path)
    ran = run(text, tmp_path, "--out", "out")
    assert ran.stdout == plain.stdout, "the same model, and the program's own output alone"
    told = [line for line in ran.stderr.splitlines() if "tornasole" in line or "[bt]" in line]
    assert told == [f"tornasole: capturing into {tmp_path / 'out'}"]
    trial = TrialDump(tmp_path / "out")
    assert names <= set(trial.names)
    loop = [0, 10] if text is UPDATE else []  # which is a part of it, of 12 rounds with no metrics
    assert trial.steps["GLOBAL"] == loop + [6 * len(loop) + i for i in range(12)], "metrics are saved in every round"
    if "trees/Node" in names:
        assert "trees/Node" in trial.names_at(10) and "trees/Node" not in trial.names_at(1)
        assert trial.value("hyperparameters/num_boost_round", 0) == [12]
        roles = json.loads((tmp_path / "out" / "tornasole" / "worker_0_model.json").read_text())["data"]
        assert roles == {"train": "train", "eval": "validation"}


def test_what_xgboost_warns_of_is_told_of_the_program(tmp_path):
    text = """
import warnings
def show(message, category, filename, lineno, *more):
    print(filename, lineno, message)
warnings.showwarning = show
data = xgboost.DMatrix(X, label=y)
xgboost.train({"nthread": 1, "no_such_parameter": 1}, data, 2)
booster = xgboost.Booster({"nthread": 1, "nor_such": 1}, [data])
booster.update(data, 0)
"""
    plain, ran = (re.sub(r"\d\d:\d\d:\d\d", "", run(text, tmp_path, *under).stdout) for under in ((), ("--out", "out")))
    assert "no_such_parameter" in plain and ran == plain, "before 2.0 XGBoost prints them"


PRESETS = [("light", set()), ("full", {"trees/Node", "full_shap/f0", "average_shap/f1", "feature_importance/gain/f0"})]


@pytest.mark.parametrize("preset, names", PRESETS, ids=[row[0] for row in PRESETS])
def test_presets(preset, names, tmp_path):
    run(TRAIN, tmp_path, "--out", "out", "--preset", preset)
    trial = TrialDump(tmp_path / "out")
    assert names <= set(trial.names) and (names or set(trial.names) == {"train-logloss", "eval-logloss"})
    assert trial.steps["GLOBAL"] == list(range(12))


def test_a_configuration_in_the_environment_and_a_hook_of_the_script(tmp_path):
    config = tmp_path / "config.json"
    collections = [{"CollectionName": "average_shap"}]
    config.write_text(json.dumps({"LocalPath": str(tmp_path / "there"), "CollectionConfigurations": collections}))
    run(TRAIN, tmp_path, "--config", str(config))
    assert "average_shap/f0" in TrialDump(tmp_path / "there").names
    own = f"import tornasole.xgboost as ts\nts.Hook(out_dir={str(tmp_path / 'own')!r}, include_collections=['trees'])\n"
    run(own + TRAIN, tmp_path, "--out", "out")
    assert not (tmp_path / "out").exists(), "the script's own hook is used"
    assert {"trees/Node", "train-logloss"} <= set(TrialDump(tmp_path / "own").names)


TWICE = TRAIN + """
first = xgboost.train({**params, "eta": 0.01}, dtrain, 5, evals=[(dtrain, "train")], verbose_eval=False)
told(xgboost.train(params, dtrain, 5, evals=[(dtrain, "train")], xgb_model=first, verbose_eval=False))
"""


def test_each_training_has_a_trial(tmp_path):
    plain = run(TWICE + CV, tmp_path)
    ran = run(TWICE + CV, tmp_path, "--out", "out")
    assert ran.stdout == plain.stdout
    assert sorted(path.name for path in tmp_path.iterdir() if path.is_dir()) == ["out", "out-2", "out-3"]
    assert TrialDump(tmp_path / "out").steps["GLOBAL"] == list(range(12))
    assert TrialDump(tmp_path / "out-2").steps["GLOBAL"] == list(range(10)), "a model that is continued goes on"
    assert set(TrialDump(tmp_path / "out-3").names) >= {"train-logloss", "test-logloss"}
    assert "WARNING" not in ran.stderr, "of what a preset asks for, none can be missed"


def test_switched_off_by_the_environment(tmp_path):
    ran = run(TRAIN, tmp_path, "--out", "out", environment={"USE_SMDEBUG": "0"})
    assert "tornasole" not in ran.stderr and not (tmp_path / "out").exists()


def test_a_program_in_which_nothing_can_be_captured_runs(tmp_path):
    (tmp_path / "out").touch()  # no directory
    ran = run(TRAIN, tmp_path, "--out", "out")
    assert "nothing will be captured" in ran.stderr
