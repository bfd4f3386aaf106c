"""Rules inside a training: what ``rules=`` of a hook starts, and how it ends."""

from __future__ import annotations

import atexit
import os
import weakref
from collections.abc import Iterable
from typing import Any, NamedTuple

from tornasole.exceptions import SMDebugTypeError, SMDebugValueError

_POLL_SECONDS = 0.5
_DETAIL_STEPS = 3
_PROFILES = ("check", "reference")


class HookRules:
    """The rules of a hook while they run, on a thread of the engine."""

    def __init__(
        self,
        engine_hook: Any,
        rules: Iterable[Any],
        on_rule: Any,
        poll: float | None,
        detail_steps: int | None,
        profile: str | None,
    ) -> None:
        given = [rules] if isinstance(rules, str) else list(rules)
        wanted = [_plain(rule) for rule in given]
        if on_rule is not None and not callable(on_rule):
            raise SMDebugTypeError(f"on_rule is a function of a rule's name and a finding, not {on_rule!r}")
        if profile not in (None, *_PROFILES):
            raise SMDebugValueError(f"rule_profile is {profile!r}; allowed: {', '.join(_PROFILES)}")
        poll = _POLL_SECONDS if poll is None else float(poll)
        detail_steps = _DETAIL_STEPS if detail_steps is None else int(detail_steps)
        callback = _with_actions(given, engine_hook.out_dir, on_rule)
        self._engine = engine_hook.start_rules(wanted, poll, detail_steps, callback, profile or _PROFILES[0])
        # A callback of Python must not be called while the interpreter ends.
        atexit.register(_stop, weakref.ref(self))

    def stop(self) -> None:
        """Ends after a last look at what was published; waits at most 5 s."""
        self._engine.stop()

    def outcomes(self) -> list[Any]:
        """A :class:`tornasole.rules.RuleRun` for each rule, in the order given."""
        import json

        from tornasole.exceptions import SMDebugError
        from tornasole.rules.rule_run import RuleRun

        runs = []
        for outcome in self._engine.outcomes():
            error = None if outcome["error"] is None else SMDebugError(outcome["error"])
            run = RuleRun(outcome["name"], outcome["steps_evaluated"], steps_met=outcome["steps_met"], error=error)
            run.report = json.loads(outcome["report"])
            runs.append(run)
        return runs


def _stop(reference: weakref.ref) -> None:
    rules = reference()
    if rules is not None:
        rules.stop()


class _Run(NamedTuple):
    """What actions know of the run."""

    name: str
    path: str


def _with_actions(rules: list[Any], out_dir: str, on_rule: Any) -> Any:
    """The callback, after the actions that rules were given; None if there is nothing to do."""
    texts = {rule.name: rule.actions for rule in rules if not isinstance(rule, str) and rule.actions}
    if not texts:
        return on_rule
    from tornasole.rules.action import Actions

    run = _Run(os.path.basename(os.path.normpath(out_dir)), out_dir)
    actions = {name: Actions(text, rule_name=name, trial=run) for name, text in texts.items()}

    def act(name: str, finding: dict[str, Any]) -> None:
        if name in actions:
            actions[name].invoke(finding["message"], step=finding["step"])
        if on_rule is not None:
            on_rule(name, finding)

    return act


def _plain(rule: Any) -> tuple[str, str, dict[str, str]]:
    """(rule, name of its report, parameters)"""
    if isinstance(rule, str):
        return rule, "", {}
    from tornasole.rules.configs import RuleConfiguration

    if isinstance(rule, RuleConfiguration):
        return rule.rule, rule.name, dict(rule.parameters)
    allowed = "names of built-in rules, and what tornasole.rules.configs makes"
    raise SMDebugTypeError(f"{rule!r} cannot run inside the training; allowed: {allowed}")
