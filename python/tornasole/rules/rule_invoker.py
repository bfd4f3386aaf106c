"""invoke_rule: a rule, step by step through a run."""

from __future__ import annotations

import logging
import os

from tornasole.exceptions import (
    NoMoreData,
    NoMoreProfilerData,
    RuleEvaluationConditionMet,
    StepUnavailable,
    TensorUnavailable,
    TensorUnavailableForStep,
)
from tornasole.modes import ModeKeys
from tornasole.rules.rule import write_json
from tornasole.rules.rule_run import RuleRun

_LONGEST_ERROR = 1024


def invoke_rule(
    rule_obj,
    start_step: int | None = 0,
    end_step: int | None = None,
    raise_eval_cond: bool = False,
    *,
    report_dir: str | None = None,
) -> RuleRun:
    """Asks a rule about every global step from ``start_step`` up to, not including, ``end_step``.

    Steps that were not saved, or lack a tensor the rule needs, are passed over. Where the condition is met, the next
    step follows; with ``raise_eval_cond`` :class:`RuleEvaluationConditionMet` is raised instead. Without an
    ``end_step`` the loop of a run that ends is left by :class:`NoMoreData`.

    With ``report_dir`` the report of the rule is written there at the end, and beside it ``status.json`` with how the
    evaluation stands: InProgress, then NoIssuesFound, IssuesFound or Error.
    """
    if report_dir is None:
        return _run(rule_obj, start_step, end_step, raise_eval_cond)
    _write_status(rule_obj, report_dir, "InProgress")
    try:
        run = _run(rule_obj, start_step, end_step, raise_eval_cond)
    except (NoMoreData, RuleEvaluationConditionMet):
        _write_outcome(rule_obj, report_dir)
        raise
    except Exception as error:
        rule_obj.write_report(report_dir)
        _write_status(rule_obj, report_dir, "Error", str(error)[:_LONGEST_ERROR])
        raise
    _write_outcome(rule_obj, report_dir)
    return run


def _write_outcome(rule_obj, report_dir: str) -> None:
    rule_obj.write_report(report_dir)
    is_issue = rule_obj.report["RuleTriggered"] > 0
    _write_status(rule_obj, report_dir, "IssuesFound" if is_issue else "NoIssuesFound")


def _write_status(rule_obj, report_dir: str, status: str, details: str = "") -> None:
    content = {"RuleConfigurationName": rule_obj.rule_name, "RuleEvaluationStatus": status}
    if details:
        content["StatusDetails"] = details
    write_json(os.path.join(report_dir, "status.json"), content)


def _run(rule_obj, start_step: int | None, end_step: int | None, raise_eval_cond: bool) -> RuleRun:
    logger = logging.getLogger("tornasole")
    step = 0 if start_step is None else start_step
    logger.info("rule %s starts at step %s", rule_obj.rule_name, step)
    if getattr(rule_obj, "_is_fed", False):
        run = _run_in_a_pass(rule_obj, step, end_step, raise_eval_cond)
    else:
        run = ask_each_step(rule_obj, step, end_step, RuleRun(type(rule_obj).__name__), raise_eval_cond)
    logger.info("rule %s ended: %s", rule_obj.rule_name, run.ended_because)
    return run


def _run_in_a_pass(rule_obj, start_step: int, end_step: int | None, raise_eval_cond: bool) -> RuleRun:
    """The same for a rule that says what it needs: it is not asked about steps that have nothing of it."""
    from tornasole.rules.rule_pass import run_rules

    trial = rule_obj.base_trial
    (run,) = run_rules(
        [rule_obj],
        first_step=start_step,
        end_step=end_step,
        stop_when_met=raise_eval_cond,
        follow=True,
        poll=trial._poll_interval,
        timeout=trial._timeout,
    )
    if run.error is not None:
        raise run.error
    if raise_eval_cond and run.steps_met:
        raise RuleEvaluationConditionMet(rule_obj.rule_name, run.steps_met[-1])
    if run.ended_because != "end_step":
        last = trial.last_complete_step
        raise NoMoreData(last + 1, ModeKeys.GLOBAL, last)
    return run


def ask_each_step(
    rule_obj, start_step: int | None, end_step: int | None, run: RuleRun, raise_eval_cond: bool = False
) -> RuleRun:
    """Asks a rule about one step after the other, and notes in ``run`` how that went."""
    logger = logging.getLogger("tornasole")
    name = type(rule_obj).__name__
    step = 0 if start_step is None else start_step
    while end_step is None or step < end_step:
        try:
            rule_obj.invoke(step)
            run.steps_evaluated += 1
        except (TensorUnavailableForStep, StepUnavailable, TensorUnavailable) as error:
            logger.debug("rule %s passes over step %s: %s", name, step, error)
            run.steps_skipped += 1
        except RuleEvaluationConditionMet as met:
            if raise_eval_cond:
                raise
            logger.debug("%s", met)
            run.steps_evaluated += 1
            run.steps_met.append(step)
            if met.end_of_rule:
                run.ended_because = "end_of_rule"
                break
        except NoMoreProfilerData as ended:
            logger.info("rule %s: %s", name, ended)
            run.ended_because = "no more data"
            break
        step += 1
    run.ended_because = run.ended_because or "end_step"
    return run
