"""A test kit for rules: small runs that are sick in a named way, and healthy ones that look alike.

A rule comes with the runs that it must flag and those that it must not::

    from tornasole.rules import run_rules
    from tornasole.testing import healthy_run, sick_run

    def test_my_rule(tmp_path):
        (sick,) = run_rules([MyRule(sick_run("exploding_gradients", tmp_path / "sick"))])
        assert sick.steps_met
        (healthy,) = run_rules([MyRule(healthy_run("exploding_gradients", tmp_path / "healthy"))])
        assert not healthy.steps_met

Each is a real training, of a small network in NumPy, saved whole at every step; the same seed gives the same run. Needs
no framework.
"""

from __future__ import annotations

import dataclasses
import os
from typing import Any, NamedTuple

from tornasole.exceptions import SMDebugValueError


class Kind(NamedTuple):
    """A way to be sick: what is wrong, and what the healthy run has that looks like it."""

    name: str
    sick: str
    healthy: str


# Name: (what is wrong, how the sick training differs from the usual one, what looks alike, how that one differs).
_KINDS: dict[str, tuple[str, dict[str, Any], str, dict[str, Any]]] = {
    "exploding_gradients": (
        "the learning rate is far too high: weights, gradients and loss overflow",
        {"learning_rate": 1e6, "weight_scale": 3.0},
        "large gradients from large initial weights, which the training brings down",
        {"weight_scale": 3.0, "learning_rate": 0.02},
    ),
    "vanishing_gradients": (
        "eight layers of sigmoids: next to nothing of the gradient reaches the first layer",
        {"hidden": (16,) * 8, "activation": "sigmoid", "weight_scale": 0.3},
        "eight layers of rectifiers with the weights that suit them",
        {"hidden": (16,) * 8, "learning_rate": 0.03},
    ),
    "dead_relus": (
        "the biases of the first layer are so low that its rectifiers never switch on",
        {"hidden_bias": -100.0},
        "low biases: most outputs are zero, but each unit is active for some samples",
        {"hidden_bias": -1.0},
    ),
    "saturated_activations": (
        "the initial weights are so large that every tanh is flat",
        {"activation": "tanh", "weight_scale": 5000.0},
        "a tanh that reaches its bounds for some samples",
        {"activation": "tanh", "weight_scale": 3.0},
    ),
    "loss_not_decreasing": (
        "the labels have nothing to do with the inputs",
        {"random_labels": True, "learning_rate": 0.01, "last_weight_scale": 0.1},
        "a low learning rate: the loss falls slowly, with the noise of small batches",
        {"batch": 32, "learning_rate": 0.02},
    ),
    "unchanged_weights": (
        "the optimizer does not have the first layer",
        {"frozen": (0,)},
        "a low learning rate: weights change little, but they change",
        {"learning_rate": 0.005},
    ),
    "zero_weights": (
        "hidden weights start as zeros and stay so",
        {"weight_scale": 0.0, "last_weight_scale": 0.0},
        "the last layer starts as zeros, which its gradients change",
        {"last_weight_scale": 0.0},
    ),
    "overfit": (
        "a few points are learnt by heart: the loss on others rises while theirs falls",
        {"points": 24, "spread": 3.0, "steps": 200, "learning_rate": 0.3, "evaluate_every": 5, "hidden": (64, 64)},
        "a hard task with new points in every batch: both losses stay high together",
        {"spread": 3.0, "steps": 200, "evaluate_every": 5},
    ),
    "class_imbalance": (
        "one class is nearly never sampled",
        {"shares": (100.0, 100.0, 1.0), "batch": 128},
        "one class is sampled half as often as the others",
        {"shares": (2.0, 2.0, 1.0), "batch": 128},
    ),
    "large_updates": (
        "the learning rate is so high that each step replaces the weights",
        {"learning_rate": 100.0},
        "a high learning rate that the training bears",
        {"learning_rate": 0.5},
    ),
    "poor_initialization": (
        "weights that are far too large multiply what goes from layer to layer",
        {"weight_scale": 30.0, "learning_rate": 0.001},
        "deeper layers with weights that keep the scale",
        {"hidden": (16, 16, 16)},
    ),
    "kept_gradients": (
        "gradients are never set to zero: each step adds to all before it",
        {"keeps_gradients": True, "learning_rate": 0.01},
        "gradients that point the same way for a while, at a low learning rate",
        {"learning_rate": 0.01},
    ),
    "nan_in_data": (
        "a NaN in one batch spoils every weight from then on",
        {"bad_batch": 20},
        "features that are zero in every batch",
        {"masked_features": 4},
    ),
}


def kinds() -> list[Kind]:
    """The ways to be sick that :func:`sick_run` knows, with what :func:`healthy_run` makes of each."""
    return [Kind(name, sick, healthy) for name, (sick, _, healthy, _) in _KINDS.items()]


def sick_run(kind: str, path: str | os.PathLike, *, steps: int | None = None, seed: int = 0):
    """Writes a run that is sick in this way to a new directory, and opens it.

    :param kind: one of :func:`kinds`
    :param path: where the run goes
    :param steps: of training; mostly 60
    :param seed: of weights and data
    """
    return _run(kind, 1, path, steps, seed)


def healthy_run(kind: str, path: str | os.PathLike, *, steps: int | None = None, seed: int = 0):
    """The same for a healthy run that has something in common with the sick one of this kind."""
    return _run(kind, 3, path, steps, seed)


def _run(kind: str, which: int, path: str | os.PathLike, steps: int | None, seed: int):
    from tornasole.testing.small_training import SmallTraining, run_training
    from tornasole.trials import create_trial

    if kind not in _KINDS:
        raise SMDebugValueError(f"no run is sick in the way {kind!r}; there are {', '.join(_KINDS)}")
    training = SmallTraining(**_KINDS[kind][which])
    if steps is not None:
        training = dataclasses.replace(training, steps=steps)
    run_training(training, os.fspath(path), seed)
    return create_trial(os.fspath(path))
