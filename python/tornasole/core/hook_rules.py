"""Rules inside a training: what ``rules=`` of a hook starts, and how it ends."""

from __future__ import annotations

import atexit
import weakref
from collections.abc import Iterable
from typing import Any

from tornasole.exceptions import SMDebugTypeError


class HookRules:
    """The rules of a hook while they run, on a thread of the engine."""

    def __init__(self, engine_hook: Any, rules: Iterable[Any], on_rule: Any, poll: float, detail_steps: int) -> None:
        wanted = [_plain(rule) for rule in ([rules] if isinstance(rules, str) else rules)]
        if on_rule is not None and not callable(on_rule):
            raise SMDebugTypeError(f"on_rule is a function of a rule's name and a finding, not {on_rule!r}")
        self._engine = engine_hook.start_rules(wanted, float(poll), int(detail_steps), on_rule)
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


def _plain(rule: Any) -> tuple[str, str, dict[str, str]]:
    """(rule, name of its report, parameters)"""
    if isinstance(rule, str):
        return rule, "", {}
    from tornasole.rules.configs import RuleConfiguration

    if isinstance(rule, RuleConfiguration):
        return rule.rule, rule.name, dict(rule.parameters)
    raise SMDebugTypeError(
        f"{rule!r} cannot run inside the training; allowed: names of built-in rules, and what tornasole.rules.configs makes"
    )
