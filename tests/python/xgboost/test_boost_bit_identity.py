"""A training gives the same model with the hook and without it, bit for bit."""

import numpy
import pytest
import xgboost
from boost_trainings import BINARY, hook_for, matrices, train

RANDOM = {"subsample": 0.7, "colsample_bytree": 0.7, "seed": 3}
TRAININGS = [
    ("trees", {**BINARY, **RANDOM}, 2, {}),
    ("trees that are dropped at random", {**BINARY, **RANDOM, "booster": "dart", "rate_drop": 0.5}, 2, {}),
    ("a linear booster", {"objective": "binary:logistic", "booster": "gblinear", "updater": "coord_descent"}, 2, {}),
    ("three classes", {"objective": "multi:softprob", "num_class": 3, **RANDOM}, 3, {}),
    ("early stopping", {**BINARY, **RANDOM, "eta": 2.0}, 2, {"early_stopping_rounds": 3}),
    ("the exact method", {**BINARY, **RANDOM, "tree_method": "exact"}, 2, {}),
]


@pytest.mark.parametrize("what, params, classes, options", TRAININGS, ids=[row[0] for row in TRAININGS])
def test_the_model_is_the_same(what, params, classes, options, tmp_path):
    params = {**params, "nthread": 1}
    outcomes = []
    for is_captured in (False, True):
        data = matrices(rows=90, classes=classes)
        numpy.random.seed(0)
        hook = hook_for(tmp_path / "run", data) if is_captured else None
        log = {}
        booster = train(hook, params, 12, data, evals_result=log, **options)
        outcomes.append((bytes(booster.save_raw("ubj")), log, numpy.random.random()))
        if hook is not None:
            hook.close()
            assert hook.report()["committed_steps"] >= 2
    assert outcomes[0] == outcomes[1]


def test_a_booster_of_scikit_learn_is_the_same(tmp_path):
    pytest.importorskip("sklearn")
    from boost_trainings import table

    X, y = table(rows=60)
    models = []
    for is_captured in (False, True):
        hook = hook_for(tmp_path / "run") if is_captured else None
        callbacks = [hook] if hook else None
        model = xgboost.XGBRegressor(n_estimators=8, subsample=0.5, random_state=1, n_jobs=1, callbacks=callbacks)
        models.append(bytes(model.fit(X, y, eval_set=[(X, y)], verbose=False).get_booster().save_raw("ubj")))
    hook.close()
    assert models[0] == models[1]
