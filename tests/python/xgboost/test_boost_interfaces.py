"""The ways to train with XGBoost, and the ways to make a hook for it."""

import copy
import json
import logging
import pickle
from collections import namedtuple

import numpy
import pytest
import xgboost
from boost_trainings import BINARY, EVERY, hook_for, matrices, table, train
from trial_dump import TrialDump

import tornasole.xgboost as ts
from tornasole.core.guard import guard
from tornasole.exceptions import SMDebugError
from tornasole.trials import create_trial


@pytest.fixture
def logged(caplog):
    """What the package logs."""
    logger = logging.getLogger("smdebug") if logging.getLogger("smdebug").handlers else ts.Hook.logger.fget(None)
    logger.addHandler(caplog.handler)
    yield caplog
    logger.removeHandler(caplog.handler)


def test_scikit_learn(tmp_path):
    pytest.importorskip("sklearn")
    X, y = table()
    hook = ts.Hook(out_dir=str(tmp_path / "run"), save_config=EVERY, include_collections=["feature_importance"])
    model = xgboost.XGBClassifier(n_estimators=4, max_depth=2, callbacks=[hook])
    model.fit(X, y, eval_set=[(X, y), (X[:20], y[:20])], verbose=False)
    hook.close()
    trial = create_trial(str(tmp_path / "run"))
    assert trial.steps() == [0, 1, 2, 3]
    assert {"validation_0-logloss", "validation_1-logloss"} <= set(trial.tensor_names(collection="losses"))
    roles = json.loads((tmp_path / "run" / "tornasole" / "worker_0_model.json").read_text())["data"]
    assert roles == {"validation_0": "train", "validation_1": "validation"}


def test_which_set_is_the_training_data_is_told_by_identity(tmp_path):
    dtrain, dvalid = matrices()
    hook = ts.Hook(out_dir=str(tmp_path / "run"), save_config=EVERY)
    evals = [(dvalid, "first"), (dtrain, "second")]
    xgboost.train(BINARY, dtrain, 2, evals=evals, callbacks=[hook], verbose_eval=False)
    hook.close()
    roles = json.loads((tmp_path / "run" / "tornasole" / "worker_0_model.json").read_text())["data"]
    assert roles == {"first": "validation", "second": "train"}


def test_cross_validation_has_the_means_of_the_folds(tmp_path, logged):
    hook = hook_for(tmp_path / "run")
    table_of = xgboost.cv(BINARY, matrices()[0], 3, nfold=3, callbacks=[hook], as_pandas=False)
    hook.close()
    trial = create_trial(str(tmp_path / "run"))
    assert trial.steps() == [0, 1, 2]
    values = [float(trial.tensor("test-logloss").value(step)[0]) for step in trial.steps()]
    assert values == pytest.approx(table_of["test-logloss-mean"])
    assert not [name for name in trial.tensor_names() if name.startswith(("trees/", "full_shap/"))]
    assert logged.text.count("trees cannot be saved") == 1, "and says so, once"


def test_early_stopping_ends_the_run_early(tmp_path):
    hook = ts.Hook(out_dir=str(tmp_path / "run"), save_config=EVERY)
    booster = train(hook, {**BINARY, "eta": 3.0}, 50, early_stopping_rounds=2)
    hook.close()
    rounds = booster.num_boosted_rounds()
    assert rounds < 50
    # XGBoost calls no further callback once one has ended the training, and before 2.0 in no certain order.
    assert create_trial(str(tmp_path / "run")).steps() in [list(range(rounds)), list(range(rounds - 1))]


def test_rounds_count_on_when_a_model_is_trained_further(tmp_path):
    data = matrices()
    first = train(None, data=data, rounds=3)
    hook = hook_for(tmp_path / "run", data, include_collections=["trees"])
    booster = train(hook, data=data, rounds=2, xgb_model=first)
    hook.close()
    trial = create_trial(str(tmp_path / "run"))
    assert trial.steps() == [3, 4]
    assert [set(trial.tensor("trees/Tree").value(step)) for step in (3, 4)] == [{3}, {4}]
    assert booster.num_boosted_rounds() == 5


@pytest.mark.parametrize("interval, steps", [(1, [0, 1, 2, 3, 4, 5, 6]), (3, [0, 3, 6])])
def test_a_second_training_with_the_same_hook_is_numbered_on(interval, steps, tmp_path):
    hook = ts.Hook(out_dir=str(tmp_path / "run"), save_config=ts.SaveConfig(save_interval=interval))
    train(hook, rounds=5)
    train(hook, rounds=2)
    hook.close()
    assert create_trial(str(tmp_path / "run")).steps() == steps
    assert hook.report()["errors"] == []


def test_a_round_can_be_read_when_the_training_returns(tmp_path):
    hook = ts.Hook(out_dir=str(tmp_path / "run"), save_config=EVERY)
    train(hook, rounds=10)
    assert create_trial(str(tmp_path / "run")).steps() == list(range(10)), "the hook is still open"


Environment = namedtuple("Environment", "model iteration end_iteration rank evaluation_result_list")


def test_the_older_interface_of_callbacks(tmp_path):
    data = matrices()
    booster = train(None, data=data, rounds=1)
    hook = hook_for(tmp_path / "run", data)
    hook(Environment(booster, 0, 2, 0, [("train-rmse", 0.5), ("test-rmse", 0.25)]))
    hook(Environment(booster, 1, 2, 0, [("train-rmse", 0.4), ("test-rmse", 0.2)]))
    hook.close()
    trial = create_trial(str(tmp_path / "run"))
    assert [float(trial.tensor("test-rmse").value(step)[0]) for step in trial.steps()] == [0.25, 0.2]
    assert "trees/Node" in trial.tensor_names()


def test_a_request_to_stop_ends_the_training(tmp_path):
    hook = ts.Hook(out_dir=str(tmp_path / "run"), save_config=EVERY)

    class AskedToStop(xgboost.callback.TrainingCallback):
        def after_iteration(self, model, epoch, evals_log):
            if epoch == 3:
                hook._wait_until_written(60)
                (tmp_path / "run" / "stop_request.json").write_text(json.dumps({"rule": "test", "step": 3}))
            return False

    dtrain, _ = matrices()
    callbacks = [AskedToStop(), hook]
    booster = xgboost.train(BINARY, dtrain, 400, evals=[(dtrain, "train")], callbacks=callbacks, verbose_eval=False)
    assert hook.stop_requested and 4 <= booster.num_boosted_rounds() < 400


# ---- making a hook


def write_config(tmp_path, **content):
    path = tmp_path / "config.json"
    path.write_text(json.dumps({"LocalPath": str(tmp_path / "run"), **content}))
    return str(path)


def test_a_hook_from_a_file(tmp_path):
    collections = [
        {"CollectionName": "losses", "CollectionParameters": {"save_interval": 1}},
        {"CollectionName": "feature_importance"},
        {"CollectionName": "predictions"},
    ]
    hook = ts.Hook.create_from_json_file(write_config(tmp_path, CollectionConfigurations=collections))
    hook.validation_data = matrices()[1]
    train(hook, rounds=12)
    hook.close()
    trial = create_trial(str(tmp_path / "run"))
    assert trial.tensor("train-logloss").steps() == list(range(12))
    assert trial.tensor("train-auc").steps() == [0, 10]
    assert trial.tensor("feature_importance/weight/f0").steps() == [0, 10]
    assert trial.tensor("predictions").steps() == [0, 10]


def test_reductions_asked_for_in_a_file_are_told_of_and_values_saved_whole(tmp_path, logged):
    collections = [{"CollectionName": "predictions", "CollectionParameters": {"reductions": "min,max"}}]
    hook = ts.Hook.create_from_json_file(write_config(tmp_path, CollectionConfigurations=collections))
    hook.validation_data = matrices()[1]
    train(hook, rounds=1)
    hook.close()
    assert len(TrialDump(tmp_path / "run").value("predictions", 0)) == matrices()[1].num_row()
    assert "reduction" in logged.text.lower()


def test_a_reduction_config_is_ignored_with_a_warning(tmp_path, logged):
    hook = ts.Hook(out_dir=str(tmp_path / "run"), reduction_config=ts.ReductionConfig(reductions=["min"]))
    assert "reduction_config is ignored" in logged.text
    assert hook.reduction_config.save_raw_tensor


def test_get_hook_makes_one_from_the_file_that_the_environment_names(tmp_path, monkeypatch):
    monkeypatch.setenv("SMDEBUG_CONFIG_FILE_PATH", write_config(tmp_path))
    hook = ts.get_hook()
    assert isinstance(hook, ts.Hook) and hook.out_dir == str(tmp_path / "run")
    assert ts.get_hook() is hook
    ts.del_hook()
    monkeypatch.setenv("SMDEBUG_CONFIG_FILE_PATH", str(tmp_path / "missing.json"))
    assert ts.get_hook() is None


def test_the_hook_under_its_older_name(tmp_path):
    hook = ts.TornasoleHook(str(tmp_path / "run"))
    assert isinstance(hook, ts.Hook)
    assert set(hook.include_collections) == {"weights", "gradients", "biases", "default", "metrics"}
    assert hook.save_config.save_interval == 100


def test_arguments_by_position(tmp_path):
    dtrain, dvalid = matrices()
    schedule = ts.SaveConfig(save_interval=7)
    hook = ts.Hook(
        str(tmp_path / "run"), False, None, False, None, schedule, None, None, False, "one", {"a": 1}, dtrain, dvalid
    )
    assert hook.hyperparameters == {"a": 1} and hook.train_data is dtrain and hook.validation_data is dvalid
    assert hook.save_config.save_interval == 7


def test_the_default_interval_is_ten(tmp_path):
    assert ts.Hook(out_dir=str(tmp_path / "run")).save_config.save_interval == 10


@pytest.mark.parametrize("copied", [copy.copy, copy.deepcopy, lambda hook: pickle.loads(pickle.dumps(hook))])
def test_a_copy_captures_nothing_and_harms_nothing(copied, tmp_path):
    hook = ts.Hook(out_dir=str(tmp_path / "run"), save_config=EVERY)
    booster = train(copied(hook), rounds=2)
    assert booster.num_boosted_rounds() == 2
    assert not (tmp_path / "run").exists()


# ---- data from files


def write_lines(path, rows, form):
    lines = []
    for label, *values in rows:
        if form == "libsvm":
            lines.append(" ".join([f"{label}"] + [f"{i}:{v}" for i, v in enumerate(values)]))
        else:
            lines.append(form.join(map(str, [label, *values])))
    path.write_text("\n".join(lines) + "\n")


ROWS = [(int(i % 2), i / 10, -i / 5, i % 3) for i in range(12)]
FILES = [
    ("comma separated values", ",", "csv"),
    ("values separated by semicolons", ";", "text/csv"),
    ("libsvm", "libsvm", "libsvm"),
    ("libsvm by another name", "libsvm", "text/x-libsvm"),
    ("libsvm is what it is if nothing is said", "libsvm", None),
]


@pytest.mark.parametrize("what, form, content_type", FILES, ids=[row[0] for row in FILES])
def test_data_from_a_file(what, form, content_type, tmp_path):
    write_lines(tmp_path / "data", ROWS, form)
    hook = ts.Hook(out_dir=str(tmp_path / "run"), train_data=(str(tmp_path / "data"), content_type))
    assert hook.train_data.num_row() == 12 and hook.train_data.num_col() == 3
    numpy.testing.assert_array_equal(hook.train_data.get_label(), [row[0] for row in ROWS])


WRONG = [
    ("a list of numbers", [1, 2, 3], "not allowed; allowed: a DMatrix"),
    ("a file that is not there", ("/no/such/file", "csv"), "not a local file"),
    ("an unknown content type", (__file__, "parquet"), "'parquet' is not an accepted content type; allowed: csv"),
    ("a program as libsvm", (__file__, "libsvm"), "is not libsvm"),
]


@pytest.mark.parametrize("what, data, message", WRONG, ids=[row[0] for row in WRONG])
def test_data_that_cannot_be_used_is_refused(what, data, message, tmp_path):
    with pytest.raises(SMDebugError, match=message):
        ts.Hook(out_dir=str(tmp_path / "run"), save_all=True, train_data=data)
    hook = ts.Hook(out_dir=str(tmp_path / "run"))
    with pytest.raises(SMDebugError, match=message):
        hook.validation_data = data
    assert not guard.disable_smdebug


def test_missing_data_is_told_of_once(tmp_path, logged):
    groups = ["full_shap", "labels", "hyperparameters"]
    hook = ts.Hook(out_dir=str(tmp_path / "run"), save_config=EVERY, include_collections=groups)
    train(hook, rounds=3)
    hook.close()
    for text in ("hook.train_data", "hook.validation_data", "hook.hyperparameters"):
        assert logged.text.count(text) == 1, text
    assert create_trial(str(tmp_path / "run")).steps() == [0, 1, 2]


def test_a_subclass_may_replace_the_call_after_a_round(tmp_path):
    class Counting(ts.Hook):
        seen = ()

        def __call__(self, env):
            self.seen += ((env.iteration, dict(env.evaluation_result_list)),)
            super().__call__(env)

    hook = Counting(out_dir=str(tmp_path / "run"), save_config=EVERY)
    train(hook, rounds=3)
    hook.close()
    trial = create_trial(str(tmp_path / "run"))
    assert [step for step, _ in hook.seen] == trial.steps() == [0, 1, 2]
    saved = [float(trial.tensor("train-auc").value(step)[0]) for step in trial.steps()]
    assert saved == [scores["train-auc"] for _, scores in hook.seen]


@pytest.mark.parametrize(
    "options, is_guarded, is_raised",
    [({}, True, False), ({}, False, True), ({"save_all": True}, True, True), ({"save_all": True}, False, True)],
)
def test_what_a_replaced_call_raises(options, is_guarded, is_raised, tmp_path):
    def fail(self, env):
        raise KeyError("mine")

    call = guard.catch_smdebug_errors()(fail) if is_guarded else fail
    hook = type("Failing", (ts.Hook,), {"__call__": call})(out_dir=str(tmp_path / "run"), **options)
    if is_raised:
        with pytest.raises(KeyError, match="mine"):
            train(hook)
        assert not guard.disable_smdebug
    else:
        assert train(hook).num_boosted_rounds() == 5
        assert guard.disable_smdebug
