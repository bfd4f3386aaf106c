"""Tensors as pictures."""

from __future__ import annotations

from tornasole.exceptions import SMDebugRuntimeError, TensorUnavailableForStep
from tornasole.modes import ModeKeys


def plot_tensor(tensor, mode: ModeKeys = ModeKeys.GLOBAL, reduction: str | None = None, worker=None, ax=None):
    """See :meth:`tornasole.core.tensor.Tensor.plot`."""
    try:
        from matplotlib import pyplot
    except ImportError:
        raise SMDebugRuntimeError("a plot needs matplotlib, which is not installed: pip install matplotlib") from None
    steps = tensor.steps(mode=mode)
    if ax is None:
        _, ax = pyplot.subplots()
    lines = {reduction: reduction} if reduction else _lines_of(tensor, steps, mode, worker)
    for label, kind in lines.items():
        points = _points(tensor, steps, mode, worker, kind)
        ax.plot([step for step, _ in points], [value for _, value in points], label=label, marker=".")
    ax.set_title(tensor.name)
    ax.set_xlabel("step" if mode == ModeKeys.GLOBAL else f"{mode.name} step")
    if len(ax.lines) > 1:
        ax.legend()
    return ax


def _lines_of(tensor, steps, mode, worker) -> dict[str, str]:
    """What is drawn of a tensor when nobody says, label to reduction; of one number any reduction is the number."""
    for step in steps[:1]:
        try:
            if tensor.value(step, mode=mode, worker=worker).size == 1:
                return {"value": "max"}
        except TensorUnavailableForStep:
            stored = [("abs_" if of_abs else "") + name for name, of_abs in tensor.reduction_values(step, mode, worker)]
            return dict(zip(stored, stored))
    return {"mean": "mean", "min": "min", "max": "max"}


def _points(tensor, steps, mode, worker, kind: str) -> list[tuple[int, float]]:
    points = []
    for step in steps:
        try:
            name = kind.removeprefix("abs_")
            value = tensor.reduction_value(step, name, mode=mode, worker=worker, abs=name != kind)
        except TensorUnavailableForStep:
            continue
        points.append((step, value))
    return points
