"""Small data and trainings for the tests of the XGBoost hook."""

import numpy
import xgboost

import tornasole.xgboost as ts

BINARY = {"objective": "binary:logistic", "max_depth": 3, "eta": 0.5, "eval_metric": ["auc", "logloss"]}
EVERY = ts.SaveConfig(save_interval=1)
GROUPS = ["metrics", "losses", "hyperparameters", "predictions", "labels", "feature_importance", "average_shap"]
GROUPS += ["full_shap", "trees"]


def table(rows=40, features=4, classes=2, seed=0):
    """Random features, and labels that two of them decide."""
    numbers = numpy.random.default_rng(seed)
    X = numbers.normal(size=(rows, features))
    return X, ((X[:, 0] + X[:, 1]) * 10).astype(int) % classes


def matrices(rows=40, features=4, classes=2, **options):
    """Training and validation data."""
    X, y = table(rows, features, classes)
    half = rows * 2 // 3
    train = xgboost.DMatrix(X[:half], label=y[:half], **options)
    return train, xgboost.DMatrix(X[half:], label=y[half:], **options)


def train(hook=None, params=BINARY, rounds=5, data=None, **options):
    """A training with that hook as its callback; the booster."""
    dtrain, dvalid = data or matrices()
    return xgboost.train(
        params,
        dtrain,
        rounds,
        evals=[(dtrain, "train"), (dvalid, "validation")],
        callbacks=[] if hook is None else [hook],
        verbose_eval=False,
        **options,
    )


def hook_for(directory, data=None, **options):
    """A hook that saves every group in every round."""
    dtrain, dvalid = data or matrices()
    given = {
        "save_config": EVERY,
        "include_collections": GROUPS,
        "train_data": dtrain,
        "validation_data": dvalid,
        "hyperparameters": {"eta": 0.5, "objective": "binary:logistic", "rounds": 5, "verbose": True},
    }
    return ts.Hook(out_dir=str(directory), **{**given, **options})
