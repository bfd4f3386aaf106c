"""What `check` says of boosted trees: trainings that are sick in one way each, and healthy ones that look alike."""

import numpy
import pytest
import xgboost

import tornasole
import tornasole.xgboost as ts

BINARY = {"objective": "binary:logistic", "eval_metric": "logloss", "nthread": 1}
SQUARES = {"objective": "reg:squarederror", "nthread": 1}
SAVED = ["metrics", "losses", "hyperparameters", "predictions", "labels", "feature_importance", "trees"]


def classes(rows=1200, noise=1.0):
    numbers = numpy.random.default_rng(0)
    X = numbers.normal(size=(rows, 8))
    return X, (X[:, 0] + X[:, 1] * X[:, 2] - X[:, 3] + noise * numbers.normal(size=rows) > 0).astype(int)


def amounts(rows=1200, scale=1.0, noise=0.5):
    numbers = numpy.random.default_rng(0)
    X = numbers.normal(size=(rows, 8))
    return X, scale * (X[:, 0] * 2 + numpy.sin(3 * X[:, 1]) + X[:, 2] ** 2 + noise * numbers.normal(size=rows))


def chance(rows=600):
    numbers = numpy.random.default_rng(0)
    return numbers.normal(size=(rows, 8)), numbers.integers(0, 2, rows)


def with_answer(X, y):
    """The label as one more feature."""
    return numpy.hstack([X, 3.0 * y[:, None] + 1]), y


def strong_feature(rows=2000):
    numbers = numpy.random.default_rng(0)
    X = numbers.normal(size=(rows, 8))
    return X, (3 * X[:, 0] + numbers.normal(size=rows) > 0).astype(int)


# what -> data, parameters, rounds; the rules of which one must be named as a cause, with everything saved in every
# tenth round, and with what the hook saves by itself; none: quiet
TRAININGS = {
    "deep trees on noise": (chance, {**BINARY, "max_depth": 20}, ["TreeDepth"], ["Overfit"]),
    "a feature that holds the answer": (
        lambda: with_answer(*classes()),
        {**BINARY, "max_depth": 4},
        ["FeatureImportanceOverweight"],
        [],
    ),
    "a number that holds the answer": (
        lambda: with_answer(*amounts()),
        {**SQUARES, "max_depth": 4},
        ["FeatureImportanceOverweight"],
        [],
    ),
    # Before XGBoost 2 a training begins at 0.5, and comes to the mean without a branch.
    "no branch is worth it": (
        amounts,
        {**SQUARES, "gamma": 1e9, "base_score": float(amounts()[1].mean())},
        ["TreeDepth"],
        ["LossNotDecreasing"],
    ),
    "no leaf is heavy enough": (classes, {**BINARY, "min_child_weight": 1e6}, ["TreeDepth"], ["LossNotDecreasing"]),
    "eta of 10, classes": (
        classes,
        {**BINARY, "max_depth": 4, "eta": 10},
        ["LearningRateSanity"],
        ["LossDivergence", "LossNotDecreasing"],
    ),
    "eta of 10, amounts": (
        amounts,
        {**SQUARES, "max_depth": 4, "eta": 10},
        ["LearningRateSanity"],
        ["LossDivergence", "NonFiniteProvenance"],
    ),
    "plain": (lambda: classes(3000), {**BINARY, "max_depth": 3, "eta": 0.1}, [], []),
    "amounts": (lambda: amounts(3000), {**SQUARES, "max_depth": 4, "eta": 0.1}, [], []),
    "large amounts": (lambda: amounts(3000, scale=1e5), {**SQUARES, "max_depth": 4, "eta": 0.1}, [], []),
    "deep trees and enough data": (
        lambda: amounts(4000, noise=0.1),
        {**SQUARES, "max_depth": 9, "eta": 0.1, "subsample": 0.8},
        [],
        [],
    ),
    "one feature that helps most": (strong_feature, {**BINARY, "max_depth": 2, "eta": 0.1}, [], []),
    "stumps, eta of 1": (lambda: classes(3000), {**BINARY, "max_depth": 1, "eta": 1.0}, [], []),
}


@pytest.mark.parametrize("saves", ["all", "defaults"])
@pytest.mark.parametrize("what", TRAININGS)
def test_what_check_says(what, saves, tmp_path):
    data, params, with_all, with_defaults = TRAININGS[what]
    X, y = data()
    third = len(X) * 2 // 3
    train = xgboost.DMatrix(X[:third], label=y[:third])
    validation = xgboost.DMatrix(X[third:], label=y[third:])
    given = {"include_collections": SAVED, "hyperparameters": params, "validation_data": validation}
    hook = ts.Hook(out_dir=str(tmp_path / "run"), **(given if saves == "all" else {}))
    evals = [(train, "train"), (validation, "validation")]
    xgboost.train(params, train, 60, evals=evals, callbacks=[hook], verbose_eval=False)
    hook.close()
    report = tornasole.check(str(tmp_path / "run"))
    causes = {v.rule for v in report.verdicts if v.severity != "info" and v.symptom_of is None}
    expected = with_all if saves == "all" else with_defaults
    assert causes & set(expected) if expected else not causes, report.to_json()


def test_what_was_not_saved_is_said(tmp_path):
    X, y = classes(200)
    train = xgboost.DMatrix(X, label=y)
    hook = ts.Hook(out_dir=str(tmp_path / "run"))
    xgboost.train(BINARY, train, 30, evals=[(train, "train")], callbacks=[hook], verbose_eval=False)
    hook.close()
    reasons = {missing.rule: missing.reason for missing in tornasole.check(str(tmp_path / "run")).not_checked}
    assert "trees" in reasons["TreeDepth"]
    assert "feature_importance" in reasons["FeatureImportanceOverweight"]
    assert "evaluations" in reasons["Overfit"]
    assert "eta" in reasons["LearningRateSanity"]
