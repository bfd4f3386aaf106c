"""What is saved of a training with XGBoost: names, types, shapes and values."""

import json
import pathlib

import numpy
import pytest
import xgboost
from boost_trainings import BINARY, EVERY, GROUPS, hook_for, matrices, table, train
from trial_dump import TrialDump

import tornasole.xgboost as ts
from tornasole.trials import create_trial

GOLDEN = pathlib.Path(__file__).resolve().parents[2] / "golden" / "smdebug"


def golden(name):
    document = json.loads((GOLDEN / name / "expected.json").read_text())
    return {t["name"]: t["entries"][0]["value"] for t in document["tensors"]}, document["trial"]["steps"]["GLOBAL"]


def test_names_types_and_shapes_are_those_of_the_reference(tmp_path):
    expected, steps = golden("xgboost_full")
    X, y = table(rows=42)
    data = xgboost.DMatrix(X[:30], label=y[:30]), xgboost.DMatrix(X[30:], label=y[30:])
    given = {"eta": 0.5, "max_depth": 2, "num_round": 7, "objective": "binary:logistic", "verbose": True}
    hook = hook_for(tmp_path / "run", data, save_config=ts.SaveConfig(save_interval=3), hyperparameters=given)
    train(hook, {**BINARY, "max_depth": 2}, 7, data)
    hook.close()
    trial = create_trial(str(tmp_path / "run"))
    assert trial.steps() == steps
    rounds = numpy.array(trial.steps())
    fixed = {name for name in expected if not name.startswith("feature_importance/")}
    assert {name for name in trial.tensor_names() if not name.startswith("feature_importance/")} == fixed
    importances = {name.rpartition("/")[0] for name in expected} - {name.rpartition("/")[0] for name in fixed}
    assert {n.rpartition("/")[0] for n in trial.tensor_names() if n.startswith("feature_importance/")} == importances
    for name in trial.tensor_names():
        value = trial.tensor(name).value(int(rounds[-1]))
        like = expected.get(name, expected["feature_importance/weight/f0"])
        assert value.dtype.kind == "U" if like["dtype"] == "string" else value.dtype == like["dtype"], name
        assert list(value.shape[1:]) == like["shape"][1:], name
        if not name.startswith("trees/"):
            assert value.shape[0] == like["shape"][0], name


def test_the_defaults_are_those_of_the_reference(tmp_path):
    expected, steps = golden("xgboost_default")
    hook = ts.Hook(out_dir=str(tmp_path / "run"))
    train(hook, rounds=7)
    hook.close()
    trial = create_trial(str(tmp_path / "run"))
    assert set(trial.tensor_names()) == set(expected) and trial.steps() == steps
    assert set(trial.tensor_names(collection="losses")) == {"train-logloss", "validation-logloss"}


def test_values_are_those_of_the_booster(tmp_path):
    data = matrices()
    hook = hook_for(tmp_path / "run", data)
    log = {}
    booster = train(hook, data=data, evals_result=log)
    hook.close()
    trial = create_trial(str(tmp_path / "run"))
    last = trial.steps()[-1]

    def value(name):
        return trial.tensor(name).value(last)

    for set_name, metrics in log.items():
        for metric, values in metrics.items():
            assert value(f"{set_name}-{metric}") == values[-1]
    numpy.testing.assert_array_equal(value("predictions"), booster.predict(data[1]))
    numpy.testing.assert_array_equal(value("labels"), data[1].get_label())
    contributions = booster.predict(data[0], pred_contribs=True)
    numpy.testing.assert_array_equal(value("full_shap/f2"), contributions)
    for index in range(4):
        magnitude = numpy.abs(contributions[:, index]).sum()
        numpy.testing.assert_allclose(value(f"average_shap/f{index}"), [magnitude], rtol=1e-6)
    for kind in ("weight", "gain", "cover", "total_gain", "total_cover"):
        scores = booster.get_score(importance_type=kind)
        for feature, score in scores.items():
            assert value(f"feature_importance/{kind}/{feature}") == score / sum(scores.values()), kind
    assert value("hyperparameters/objective") == "binary:logistic" and value("hyperparameters/eta") == 0.5


def test_trees_are_the_rows_of_the_table_that_xgboost_makes(tmp_path):
    pytest.importorskip("pandas")
    hook = hook_for(tmp_path / "run")
    booster = train(hook)
    hook.close()
    trial = create_trial(str(tmp_path / "run"))
    frame = booster.trees_to_dataframe()
    for step in trial.steps():
        rows = frame[frame["Tree"] == step].reset_index(drop=True)
        for column in frame.columns:
            ours, theirs = trial.tensor(f"trees/{column}").value(step), rows[column].to_numpy()
            if ours.dtype.kind == "U":
                assert list(ours) == ["nan" if one is None or one != one else str(one) for one in theirs], column
            else:
                numpy.testing.assert_array_equal(ours, theirs.astype(ours.dtype))


NOT_BINARY = {"objective": "multi:softprob", "num_class": 3, "max_depth": 2}
BOOSTERS = [
    ("a dart booster", {**BINARY, "booster": "dart", "rate_drop": 0.3}, 2),
    ("several classes: a round has a tree of each", NOT_BINARY, 3),
    ("a forest: a round has several trees", {**BINARY, "num_parallel_tree": 3, "subsample": 0.5}, 2),
]


@pytest.mark.parametrize("what, params, classes", BOOSTERS, ids=[row[0] for row in BOOSTERS])
def test_kinds_of_boosters(what, params, classes, tmp_path):
    data = matrices(rows=90, classes=classes)
    hook = hook_for(tmp_path / "run", data)
    booster = train(hook, params, 4, data)
    hook.close()
    trial = create_trial(str(tmp_path / "run"))
    assert trial.steps() == [0, 1, 2, 3]
    trees = [list(trial.tensor("trees/Tree").value(step)) for step in trial.steps()]
    assert sorted({tree for step in trees for tree in step}) == list(range(len(booster.get_dump())))
    assert trial.tensor("full_shap/f0").value(3).shape == booster.predict(data[0], pred_contribs=True).shape
    assert trial.tensor("average_shap/f0").value(3).shape == (1,)
    assert trial.tensor("predictions").value(3).shape == booster.predict(data[1]).shape
    assert hook.report()["errors"] == []


def test_a_linear_booster_has_neither_trees_nor_importances(tmp_path):
    hook = hook_for(tmp_path / "run")
    train(hook, {"objective": "binary:logistic", "booster": "gblinear"})
    hook.close()
    names = create_trial(str(tmp_path / "run")).tensor_names()
    assert {"train-logloss", "predictions", "average_shap/f0", "full_shap/f0"} <= set(names)
    assert not [name for name in names if name.startswith(("trees/", "feature_importance/"))]


def test_ranking(tmp_path):
    X, y = table(rows=60)
    matrix = xgboost.DMatrix(X, label=y)
    matrix.set_group([20, 20, 20])
    hook = ts.Hook(out_dir=str(tmp_path / "run"), save_config=EVERY, include_collections=["trees", "losses"])
    params = {"objective": "rank:pairwise", "eval_metric": ["ndcg@5", "map", "error"]}
    xgboost.train(params, matrix, 3, evals=[(matrix, "train")], callbacks=[hook], verbose_eval=False)
    hook.close()
    trial = create_trial(str(tmp_path / "run"))
    assert {"train-ndcg@5", "train-map", "train-error"} <= set(trial.tensor_names(collection="metrics"))
    assert trial.tensor_names(collection="losses") == ["train-error"], "what should rise is no loss"


def test_categories(tmp_path):
    pandas = pytest.importorskip("pandas")
    numbers = numpy.random.default_rng(0)
    colours = pandas.Series(numbers.integers(0, 4, 80)).map(dict(enumerate("abcd"))).astype("category")
    frame = pandas.DataFrame({"colour": colours, "size": numbers.normal(size=80)})
    label = (frame["colour"].cat.codes % 2).to_numpy()
    matrix = xgboost.DMatrix(frame, label=label, enable_categorical=True)
    hook = hook_for(tmp_path / "run", (matrix, matrix), include_collections=["trees", "feature_importance"])
    params = {"objective": "binary:logistic", "tree_method": "hist", "max_cat_to_onehot": 1}
    booster = train(hook, params, 3, (matrix, matrix))
    hook.close()
    trial = create_trial(str(tmp_path / "run"))
    frame = booster.trees_to_dataframe()
    first = frame[frame["Tree"] == 0]["Category"].to_list()
    ours = list(trial.tensor("trees/Category").value(0))
    assert ours == [str(one) if isinstance(one, list) else "nan" for one in first]
    assert any(text != "nan" for text in ours)
    assert "feature_importance/weight/colour" in trial.tensor_names()


NAMES = [
    ("names of features", ["age", "height of it", "x/y", "bias2"]),
    ("names that are no JSON", ['a"b', "c\\d", "é", "f}"]),
]


@pytest.mark.parametrize("what, names", NAMES, ids=[row[0] for row in NAMES])
def test_features_have_the_names_of_the_data(what, names, tmp_path):
    data = matrices(feature_names=names)
    hook = hook_for(tmp_path / "run", data)
    train(hook, data=data)
    hook.close()
    trial = create_trial(str(tmp_path / "run"))
    assert {f"average_shap/{name}" for name in names} == set(trial.tensor_names(collection="average_shap"))
    features = {str(name) for step in trial.steps() for name in trial.tensor("trees/Feature").value(step)}
    assert features <= {*names, "Leaf"} and features & set(names)


QUANTILES = [("a QuantileDMatrix for training", True), ("and for validation", False)]


@pytest.mark.parametrize("what, is_plain", QUANTILES, ids=[row[0] for row in QUANTILES])
def test_quantile_matrices(what, is_plain, tmp_path):
    X, y = table(rows=60)
    dtrain = xgboost.QuantileDMatrix(X[:40], label=y[:40])
    rest = {"data": X[40:], "label": y[40:]}
    dvalid = xgboost.DMatrix(**rest) if is_plain else xgboost.QuantileDMatrix(**rest, ref=dtrain)
    hook = hook_for(tmp_path / "run", (dtrain, dvalid), include_collections=["predictions", "labels", "average_shap"])
    train(hook, {**BINARY, "tree_method": "hist"}, 3, (dtrain, dvalid))
    hook.close()
    trial = create_trial(str(tmp_path / "run"))
    assert {"predictions", "labels", "train-auc"} <= set(trial.tensor_names())
    assert trial.steps() == [0, 1, 2]


def test_a_collection_of_the_user_says_what_is_computed(tmp_path):
    wanted = {"include_collections": ["gains"], "include_regex": ["rees/N"]}
    hook = ts.Hook(out_dir=str(tmp_path / "run"), save_config=EVERY, **wanted)
    hook.get_collection("gains").include("feature_importance/gain/")
    train(hook, rounds=2)
    hook.close()
    names = create_trial(str(tmp_path / "run")).tensor_names()
    assert {"trees/Node", "trees/No", "feature_importance/gain/f0"} <= set(names)
    assert not [name for name in names if name.startswith(("feature_importance/weight", "trees/Y"))]


def test_save_all_saves_the_bias_too(tmp_path):
    data = matrices()
    hook = ts.Hook(out_dir=str(tmp_path / "run"), save_config=EVERY, save_all=True, train_data=data[0])
    train(hook, data=data, rounds=2)
    hook.close()
    trial = create_trial(str(tmp_path / "run"))
    assert {"average_shap/bias", "full_shap/bias"} <= set(trial.tensor_names(collection="all"))
    assert "average_shap/bias" not in trial.tensor_names(collection="average_shap")


def test_schedules_of_collections(tmp_path):
    hook = hook_for(tmp_path / "run", include_collections=["feature_importance", "losses"])
    hook.get_collection("metrics").save_config = ts.SaveConfig(save_interval=4)
    hook.get_collection("feature_importance").save_config = ts.SaveConfig(save_interval=3)
    hook.get_collection("losses").save_config = ts.SaveConfig(save_interval=2)
    train(hook, rounds=7)
    hook.close()
    trial = create_trial(str(tmp_path / "run"))
    assert trial.tensor("train-auc").steps() == [0, 4]
    assert trial.tensor("train-logloss").steps() == [0, 2, 4, 6], "losses are saved whether metrics are due or not"
    assert trial.tensor("feature_importance/weight/f0").steps() == [0, 3, 6]


def test_the_mode_that_was_set(tmp_path):
    hook = ts.Hook(out_dir=str(tmp_path / "run"), save_config=EVERY)
    hook.set_mode(ts.modes.TRAIN)
    train(hook, rounds=3)
    hook.close()
    assert TrialDump(tmp_path / "run").modes() == [(0, "TRAIN", 0), (1, "TRAIN", 1), (2, "TRAIN", 2)]


def test_shap_values_are_computed_once_in_a_round(tmp_path, monkeypatch):
    calls = []
    predict = xgboost.Booster.predict

    def counted(self, *arguments, **options):
        calls.append(options.get("pred_contribs", False))
        return predict(self, *arguments, **options)

    monkeypatch.setattr(xgboost.Booster, "predict", counted)
    data = matrices()
    hook = hook_for(tmp_path / "run", data, save_config=ts.SaveConfig(save_interval=2))
    train(hook, data=data, rounds=4)
    hook.close()
    assert calls.count(True) == 2 and calls.count(False) == 2, "at each of the two rounds that are due"


def test_all_groups_are_known():
    assert set(GROUPS) <= set(ts.get_collections())
