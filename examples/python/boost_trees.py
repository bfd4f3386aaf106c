#!/usr/bin/env python3
"""Captures a training with XGBoost: metrics, importances, contributions of the features and the trees themselves.

    boost_trees.py [out_dir]
"""

import sys

import numpy
import xgboost

import tornasole.xgboost as ts

# Two of six features decide, and one of them says little alone.
numbers = numpy.random.default_rng(0)
X = numbers.normal(size=(600, 6))
y = (X[:, 0] + X[:, 1] * X[:, 2] > 0).astype(int)
train = xgboost.DMatrix(X[:400], label=y[:400])
validation = xgboost.DMatrix(X[400:], label=y[400:])
params = {"objective": "binary:logistic", "max_depth": 3, "eta": 0.3, "eval_metric": ["auc", "logloss"]}

hook = ts.Hook(
    out_dir=sys.argv[1] if len(sys.argv) > 1 else "runs/boost",
    save_config=ts.SaveConfig(save_interval=5),
    include_collections=["feature_importance", "average_shap", "predictions", "labels", "trees", "hyperparameters"],
    train_data=train,
    validation_data=validation,
    hyperparameters=params,
)
hook.get_collection("metrics").save_config = ts.SaveConfig(save_interval=1)

log = {}
xgboost.train(
    params,
    train,
    num_boost_round=30,
    evals=[(train, "train"), (validation, "validation")],
    callbacks=[hook],
    evals_result=log,
    verbose_eval=False,
)
hook.close()
print(f"the last loss is {log['validation']['logloss'][-1]:.4f}; the run is in {hook.out_dir}")
