"""The training of examples/boost_trees.cc in Python: the same data and parameters, so the same trial.

xgboost_twin.py DIRECTORY
"""

import sys

import numpy
import xgboost

import tornasole.xgboost as smd

HYPERPARAMETERS = {"objective": "binary:logistic", "max_depth": 3, "eta": 0.3}


def data(rows, state):
    values = numpy.empty((rows, 4), numpy.float32)
    for place in numpy.ndindex(values.shape):
        state = (state * 1664525 + 1013904223) % 2**32
        values[place] = numpy.float32(state >> 8) / numpy.float32(16777216)
    labels = values[:, 0] + values[:, 1] * values[:, 2] > numpy.float32(0.75)
    names = ["age", "income", "rate", "noise"]
    return xgboost.DMatrix(values, label=labels.astype(numpy.float32), missing=-1.0, feature_names=names)


train, valid = data(200, 1), data(100, 2)
hook = smd.Hook(
    out_dir=sys.argv[1],
    save_config=smd.SaveConfig(save_interval=2),
    include_collections=[
        *("hyperparameters", "predictions", "labels", "feature_importance", "average_shap", "full_shap", "trees"),
    ],
    hyperparameters=HYPERPARAMETERS,
    train_data=train,
    validation_data=valid,
)
xgboost.train(
    {**HYPERPARAMETERS, "nthread": 1},
    train,
    num_boost_round=10,
    evals=[(train, "train"), (valid, "validation")],
    callbacks=[hook],
    verbose_eval=False,
)
hook.close()
