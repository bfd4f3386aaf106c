"""check: what is wrong with a training, asked of everything its trial holds."""

from __future__ import annotations

from collections.abc import Iterable
from typing import Any

from tornasole import _engine


def check(
    trial: Any, rules: Iterable[str] | None = None, *, first_step: int | None = None, end_step: int | None = None
) -> _engine.CheckReport:
    """Asks every question that a run can answer, and says what is wrong with it, causes before symptoms::

        report = tornasole.check("runs/mnist")
        for verdict in report.verdicts:
            print(verdict.severity, verdict.message)

    :param trial: a trial, or the directory of a run
    :param rules: only these, by name; None: all
    :param first_step: with ``end_step``: only global steps from one up to, not including, the other

    The report has ``verdicts`` (each with ``rule``, ``severity``, ``first_step``, ``last_step``, ``mode``, ``tensors``,
    ``value``, ``threshold``, ``message``, ``causes``, ``advice``, ``evidence``, ``symptom_of``), ``not_checked``
    (``rule`` and ``reason``), ``checked``, ``steps``, ``summary``, ``has_findings`` and ``to_json()``; in a notebook it
    shows itself. A rule that does not exist is a ValueError that names those that do. Of a directory, what is there now is
    looked at, and what is damaged is left out; one without a run is a MissingCollectionFiles. The run is never changed.
    """
    from tornasole.trials import Trial, create_trial

    opened = trial if isinstance(trial, Trial) else create_trial(trial, timeout=0, on_damage="skip")
    return _engine.check(opened._engine, list(rules or []), first_step, end_step)


def report_html(report) -> str:
    """What a notebook shows of a report. Everything is escaped: names may hold anything."""
    from html import escape

    parts = [f"<p><b>{escape(report.summary)}</b></p>"]
    for verdict in report.verdicts:
        steps = f"steps {verdict.first_step} to {verdict.last_step}"
        if verdict.first_step == verdict.last_step:
            steps = f"step {verdict.first_step}"
        head = f"<b>{escape(verdict.severity)}: {escape(verdict.rule)}</b>, {steps}: {escape(verdict.message)}"
        if verdict.symptom_of is not None:
            cause = report.verdicts[verdict.symptom_of].rule
            parts.append(f"<p style='margin-left:2em'>{head} Likely a symptom of {escape(cause)}.</p>")
            continue
        parts.append(f"<p>{head}</p>")
        for title, items in (("tensors", verdict.tensors[:5]), ("causes", verdict.causes), ("advice", verdict.advice)):
            if items:
                parts.append(f"<p style='margin-left:2em'>{title}</p><ul style='margin-left:2em'>")
                parts.extend(f"<li>{escape(item)}</li>" for item in items)
                parts.append("</ul>")
    if report.not_checked:
        parts.append("<p>not checked</p><ul>")
        parts.extend(f"<li>{escape(one.rule)}: {escape(one.reason)}</li>" for one in report.not_checked)
        parts.append("</ul>")
    return "".join(parts)
