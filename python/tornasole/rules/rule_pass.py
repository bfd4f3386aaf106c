"""run_rules: any number of rules in one pass over a run."""

from __future__ import annotations

import json
import logging
from collections.abc import Callable, Iterable
from typing import Any

from tornasole import _engine
from tornasole.exceptions import NoMoreData, SMDebugError, SMDebugTypeError, SMDebugValueError
from tornasole.rules.action import Actions
from tornasole.rules.builtin import _as_trial, make
from tornasole.rules.configs import RuleConfiguration
from tornasole.rules.rule import Rule, run_options
from tornasole.rules.rule_run import RuleRun


def run_rules(
    rules: Iterable[Rule | str | RuleConfiguration],
    trial: Any = None,
    *,
    first_step: int | None = None,
    end_step: int | None = None,
    workers: str | Iterable[str] = "all",
    stop_when_met: bool = False,
    follow: bool = False,
    poll: float = 1.0,
    timeout: float | None = 300.0,
    on_met: Callable[[Rule, dict[str, Any]], None] | None = None,
    report_dir: str | None = None,
) -> list[RuleRun]:
    """Runs rules over a trial, reading each value once for all of them; what each found, in the order given.

    :param rules: rules over this trial; names of built-in ones; configurations of :mod:`tornasole.rules.configs`
    :param trial: a trial or the directory of a run; None: that of the first rule
    :param first_step: with ``end_step``: only global steps from one up to, not including, the other
    :param workers: "all", "first" (at each step), or a list of names
    :param stop_when_met: end at the first condition that is met
    :param follow: wait for steps to come until the run is over; looked for every ``poll`` seconds, given up after
        ``timeout`` seconds without a sign of life
    :param on_met: called as ``on_met(rule, violation)`` after each step at which a condition is met
    :param report_dir: each report is written there, as ``<rule name>.json``

    A rule that raises is asked no more, and its :attr:`RuleRun.error` says why; the others go on. Rules that have
    ``invoke_at_step`` alone are asked one after the other, after the pass; they cannot be followed here.
    """
    run_trial, made = _made(list(rules), trial)
    fed = [rule for rule in made if rule._is_fed]
    own_way = [rule for rule in made if not rule._is_fed]
    if own_way and follow:
        names = ", ".join(rule.rule_name for rule in own_way)
        raise SMDebugValueError(f"follow: {names} have invoke_at_step alone; follow each of them with invoke_rule")
    options = run_options(
        first_step=first_step,
        end_step=end_step,
        workers=[] if workers in ("all", "first") else list(workers),
        first_worker_only=workers == "first",
        stop_when_met=bool(stop_when_met),
        follow=bool(follow),
        poll_s=float(poll),
        timeout_s=None if timeout is None else float(timeout),
    )
    runs = dict(zip(map(id, fed), _pass(fed, run_trial, options, on_met)))
    is_stopped = stop_when_met and any(run.steps_met for run in runs.values())
    for rule in own_way:
        runs[id(rule)] = RuleRun(rule.rule_name) if is_stopped else _asked(rule, first_step, end_step)
    if report_dir is not None:
        for rule in made:
            rule.write_report(report_dir)
    return [runs[id(rule)] for rule in made]


def _made(rules: list[Any], trial: Any) -> tuple[Any, list[Rule]]:
    """The trial and the rules, each an object."""
    if trial is None:
        trial = next((rule.base_trial for rule in rules if isinstance(rule, Rule)), None)
        if trial is None:
            raise SMDebugTypeError("run_rules takes a trial, or at least one rule that has one")
    trial = _as_trial(trial)
    made = []
    for rule in rules:
        if isinstance(rule, str):
            rule = make(rule, trial)
        elif isinstance(rule, RuleConfiguration):
            rule = rule.make(trial)
        if not isinstance(rule, Rule):
            raise SMDebugTypeError(f"{rule!r} is no rule; allowed: a Rule, the name of one, or a configuration")
        if rule.base_trial != trial:
            raise SMDebugValueError(f"rule {rule.rule_name} is about trial {rule.base_trial.name}, not {trial.name}")
        made.append(rule)
    return trial, made


def _pass(rules: list[Rule], trial: Any, options: dict[str, Any], on_met: Any) -> list[RuleRun]:
    if not rules:
        return []
    for name in trial.collections():
        trial._collections.push(name)
    actions: list[list[Actions]] = []

    def note_met(place: int, violation: dict[str, Any]) -> None:
        for one in actions[place]:
            one.invoke(violation["message"], step=violation["step"])
        if on_met is not None:
            on_met(rules[place], violation)

    runner = _engine.RuleRunner(trial._engine, options, note_met)
    for place, rule in enumerate(rules):
        rule._add_to(runner)
        own = runner.outcome(place)["action"]
        actions.append([rule._actions, *([Actions(own, rule.rule_name, trial)] if own else [])])
    runner.run()
    return [_run_of(rule, runner.outcome(place)) for place, rule in enumerate(rules)]


def _run_of(rule: Rule, outcome: dict[str, Any]) -> RuleRun:
    rule._take_outcome(outcome)
    error = outcome["raised"]
    if error is None and outcome["error"] is not None:
        error = SMDebugError(outcome["error"])
    if error is not None:
        logging.getLogger("tornasole").error("rule %s failed and is asked no more: %s", rule.rule_name, error)
    return RuleRun(
        name=rule.rule_name,
        steps_evaluated=outcome["steps_evaluated"],
        steps_met=outcome["steps_met"],
        ended_because=outcome["ended_because"],
        report=json.loads(outcome["report"]),
        files=outcome["files"],
        error=error,
    )


def _asked(rule: Rule, first_step: int | None, end_step: int | None) -> RuleRun:
    """A rule that reads for itself, over the steps that are known."""
    from tornasole.rules.rule_invoker import ask_each_step

    steps = rule.base_trial.steps()
    end = steps[-1] + 1 if steps else 0
    end = end if end_step is None else min(end, end_step)
    run = RuleRun(rule.rule_name)
    try:
        ask_each_step(rule, first_step, end, run)
    except NoMoreData:
        pass
    except Exception as error:  # noqa: BLE001 - whatever the rule raises is the rule's, and said
        logging.getLogger("tornasole").error("rule %s failed and is asked no more: %s", rule.rule_name, error)
        run.error = error
    run.report = dict(rule.report)
    return run
