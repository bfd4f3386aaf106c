"""What a notebook shows of a trial and of a tensor. Everything from a trial is escaped: names may hold anything."""

from __future__ import annotations

from html import escape

from tornasole.exceptions import SMDebugError
from tornasole.modes import ModeKeys

_MOST_ROWS = 50
_MOST_STEPS = 12


def _table(head: list[str], rows: list[list[str]], left_out: int = 0) -> str:
    cells = "".join(f"<th style='text-align:left'>{escape(text)}</th>" for text in head)
    body = "".join(
        "<tr>" + "".join(f"<td style='text-align:left'>{escape(text)}</td>" for text in row) + "</tr>" for row in rows
    )
    more = f"<p>… and {left_out} more</p>" if left_out > 0 else ""
    return f"<table><thead><tr>{cells}</tr></thead><tbody>{body}</tbody></table>{more}"


def _steps_text(steps: list[int]) -> str:
    if len(steps) <= _MOST_STEPS:
        return ", ".join(map(str, steps)) or "none"
    half = _MOST_STEPS // 2
    first, last = (", ".join(map(str, part)) for part in (steps[:half], steps[-half:]))
    return f"{first}, … {last} ({len(steps)} steps)"


def trial_html(trial) -> str:
    """Name, path, state, steps by mode, workers and tensors of a trial."""
    state, reason = trial.run_status
    facts = [
        ["path", trial.path],
        ["state", f"{state}: {reason}" if reason else state],
        ["workers", f"{trial.num_workers}: {', '.join(trial.workers()[:8])}"],
        ["steps", _steps_text(trial.steps())],
    ]
    for mode in sorted(trial.modes(), key=lambda one: one.value):
        facts.append([f"{mode.name} steps", _steps_text(trial.steps(mode=mode))])
    if trial.damage:
        facts.append(["damaged", f"{len(trial.damage)} files or values were left out"])
    names = trial.tensor_names()
    rows = [[name, _steps_text(trial.tensor(name).steps())] for name in names[:_MOST_ROWS]]
    return (
        f"<div><h4>Trial {escape(trial.name)}</h4>{_table(['', ''], facts)}"
        f"{_table(['tensor', 'steps'], rows, len(names) - len(rows))}</div>"
    )


def tensor_html(tensor) -> str:
    """Steps of a tensor with shape and the main numbers."""
    steps = tensor.steps()
    rows = []
    for step in steps[-_MOST_STEPS:]:
        mode, mode_step = tensor.trial.mode_modestep(step)
        name = (mode or ModeKeys.GLOBAL).name
        rows.append([str(step), f"{name} {mode_step}", _shape(tensor, step), *_numbers(tensor, step)])
    head = ["step", "mode", "shape", "mean", "min", "max", "l2"]
    return f"<div><h4>Tensor {escape(tensor.name)}</h4>{_table(head, rows, len(steps) - len(rows))}</div>"


def _shape(tensor, step: int) -> str:
    try:
        return str(tensor.shape(step))
    except SMDebugError:
        return ""


def _numbers(tensor, step: int) -> list[str]:
    found = []
    for reduction in ("mean", "min", "max", "l2"):
        try:
            found.append(f"{tensor.reduction_value(step, reduction):.6g}")
        except (SMDebugError, TypeError):
            found.append("")
    return found
