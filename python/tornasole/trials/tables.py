"""Trials as tables."""

from __future__ import annotations

from tornasole.core.query_arguments import mode_number
from tornasole.exceptions import SMDebugError, SMDebugRuntimeError, SMDebugTypeError
from tornasole.modes import ModeKeys


def to_pandas(trial, names=None, mode: ModeKeys = ModeKeys.GLOBAL):
    """See :meth:`tornasole.trials.Trial.to_pandas`."""
    try:
        import pandas
    except ImportError:
        raise SMDebugRuntimeError("a table needs pandas, which is not installed: pip install pandas") from None

    trial.maybe_refresh()
    wanted = _wanted_names(trial, names, mode)
    columns = ["step", "mode", "mode_step", "worker", "tensor"]
    if not wanted:
        return pandas.DataFrame(columns=columns)
    rows: dict[tuple, dict] = {}
    number = mode_number(mode)
    swept = trial._engine.sweep(wanted, mode=number, values=False, reductions=True, show_incomplete=False)
    scalars = [name for name in wanted if _is_scalar(trial, name, mode)]
    if scalars:
        swept += trial._engine.sweep(scalars, mode=number, show_incomplete=False)
    for name, step, mode_of_step, mode_step, worker, reduction, value, error in swept:
        if error is not None:
            continue
        key = (step, worker, name)
        row = rows.setdefault(
            key,
            {
                "step": step,
                "mode": ModeKeys(mode_of_step).name,
                "mode_step": mode_step,
                "worker": worker,
                "tensor": name,
            },
        )
        if reduction is not None:
            row[reduction] = value
        elif value.size == 1:
            row["value"] = value.item()
    table = pandas.DataFrame([rows[key] for key in sorted(rows)])
    return table if len(table) else pandas.DataFrame(columns=columns)


def _wanted_names(trial, names, mode) -> list[str]:
    if names is None:
        return trial.tensor_names(mode=mode)
    if isinstance(names, str):
        names = [names]
    if not all(isinstance(name, str) for name in names):
        raise SMDebugTypeError(f"names are texts, and {names!r} are not")
    exact = [name for name in names if trial.has_tensor(name)]
    patterns = [name for name in names if name not in exact]
    found = set(exact).intersection(trial.tensor_names(mode=mode))
    return sorted(found.union(trial.tensor_names(mode=mode, regex=patterns) if patterns else ()))


def _is_scalar(trial, name: str, mode: ModeKeys) -> bool:
    """Whether the first value of the tensor has one element; the others will not differ."""
    tensor = trial.tensor(name)
    for step in tensor.steps(mode=mode)[:1]:
        if not trial._engine.has_value(name, step, mode_number(mode), ""):
            return False
        try:
            return tensor.value(step, mode=mode).size == 1
        except SMDebugError:
            return False
    return False
