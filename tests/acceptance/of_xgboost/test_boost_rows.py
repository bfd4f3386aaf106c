"""The rows about XGBoost, with a training of it."""

import numpy
import pytest
import xgboost
from acceptance_rows import ELSEWHERE, IN_EACH
from framework_package import check_hook_classes, check_names

import tornasole.xgboost as ts
from tornasole.trials import create_trial

rows = pytest.mark.rows
PARAMS = {"objective": "binary:logistic", "max_depth": 2, "eta": 0.5}


@pytest.fixture
def trained(tmp_path):
    """A training of which one collection is saved in every round: (trial, booster, training data, validation data)."""

    def train(collection, **options):
        numbers = numpy.random.default_rng(0)
        X = numbers.normal(size=(50, 3))
        y = (X[:, 0] > X[:, 1]).astype(int)
        data = xgboost.DMatrix(X[:30], label=y[:30]), xgboost.DMatrix(X[30:], label=y[30:])
        given = {"train_data": data[0], "validation_data": data[1], "hyperparameters": PARAMS, **options}
        hook = ts.Hook(
            out_dir=str(tmp_path / "run"),
            save_config=ts.SaveConfig(save_interval=1),
            include_collections=[collection],
            **given,
        )
        booster = xgboost.train(PARAMS, data[0], 3, evals=[(data[0], "train")], callbacks=[hook], verbose_eval=False)
        hook.close()
        return create_trial(str(tmp_path / "run")), booster, *data

    return train


@rows(292)
def test_hyperparameters(trained):
    trial, *_ = trained("hyperparameters")
    assert {name: trial.tensor(f"hyperparameters/{name}").value(0) for name in PARAMS} == PARAMS


@rows(293)
def test_predictions_of_the_validation_set(trained):
    trial, booster, _, validation = trained("predictions")
    numpy.testing.assert_array_equal(trial.tensor("predictions").value(2), booster.predict(validation))


@rows(294)
def test_labels_of_the_validation_set(trained):
    trial, _, _, validation = trained("labels")
    numpy.testing.assert_array_equal(trial.tensor("labels").value(2), validation.get_label())


@rows(293, 294)
def test_without_a_validation_set_there_are_none(trained, row):
    trial, *_ = trained({293: "predictions", 294: "labels"}[row], validation_data=None)
    assert set(trial.tensor_names()) == {"train-logloss"}


@rows(295)
def test_importances_are_the_scores_of_the_booster(trained):
    trial, booster, *_ = trained("feature_importance")
    for kind in ("weight", "gain", "cover", "total_gain", "total_cover"):
        scores = booster.get_score(importance_type=kind)
        saved = {name: trial.tensor(f"feature_importance/{kind}/{name}").value(2)[0] for name in scores}
        assert saved == {name: score / sum(scores.values()) for name, score in scores.items()}


@rows(296)
def test_the_matrix_of_contributions(trained):
    trial, booster, train, _ = trained("full_shap")
    matrix = trial.tensor("full_shap/f1").value(2)
    assert matrix.shape == (train.num_row(), train.num_col() + 1)
    numpy.testing.assert_array_equal(matrix, booster.predict(train, pred_contribs=True))


@rows(297)
def test_the_impact_of_each_feature_over_all_samples(trained):
    trial, booster, train, _ = trained("average_shap")
    impact = numpy.abs(booster.predict(train, pred_contribs=True)).sum(axis=0)
    saved = [trial.tensor(f"average_shap/f{index}").value(2)[0] for index in range(3)]
    numpy.testing.assert_allclose(saved, impact[:3], rtol=1e-6)


@rows(298)
def test_the_tree_as_a_table(trained):
    trial, booster, *_ = trained("trees")
    frame = booster.trees_to_dataframe()
    last = frame[frame["Tree"] == 2]
    assert {f"trees/{column}" for column in frame.columns} == set(trial.tensor_names(collection="trees"))
    for column in ("Tree", "Node", "ID", "Feature", "Gain", "Cover"):
        assert list(trial.tensor(f"trees/{column}").value(2)) == list(last[column]), column


@rows(116)
def test_the_package_under_both_names():
    check_names("xgboost", ("Hook",))


@rows(126)
def test_the_classes_of_hooks(tmp_path):
    check_hook_classes("xgboost", ("Hook",), tmp_path)


def test_every_row_of_this_folder_is_shown(request):
    shown = {item.callspec.params["row"] for item in request.session.items if hasattr(item, "callspec")}
    assert shown == {*ELSEWHERE["of_xgboost"], *IN_EACH}
