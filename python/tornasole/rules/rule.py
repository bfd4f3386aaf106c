"""Rule: a condition that is looked for step by step in what a training run saved."""

from __future__ import annotations

import inspect
import json
import logging
import math
import os
import weakref
from abc import ABC, abstractmethod
from collections.abc import Sequence
from typing import Any

from tornasole import _engine
from tornasole.analysis.utils import no_refresh
from tornasole.exceptions import RuleEvaluationConditionMet, SMDebugError, SMDebugTypeError
from tornasole.rules.action import Actions
from tornasole.rules.need import Need
from tornasole.rules.req_tensors import RequiredTensors

# Of the violations in a report so many of the first and of the last are kept.
_KEPT_VIOLATIONS = 50


class Rule(ABC):
    """The base of rules. A rule of one's own says what it needs, and looks at it step by step::

        class WeightsExplode(Rule):
            needs = [Need(collections="weights", stats=["abs_max"])]

            def __init__(self, base_trial, threshold="10", action_str=""):
                super().__init__(base_trial, action_str)
                self.threshold = float(threshold)

            def look_at(self, step, findings):
                for weight in step.tensors():
                    if weight["abs_max"] > self.threshold:
                        findings.add(weight, weight["abs_max"], self.threshold, f"{weight.name} is too large")

    The engine reads what all rules need in one pass and computes the numbers (:func:`tornasole.rules.run_rules`). A
    rule may also read for itself, as rules of smdebug do, in :meth:`invoke_at_step`::

        class WeightsExplode(Rule):
            def __init__(self, base_trial, threshold="10", action_str=""):
                super().__init__(base_trial, action_str)
                self.threshold = float(threshold)

            def set_required_tensors(self, step):
                for name in self.base_trial.tensor_names(step=step, collection="weights"):
                    self.req_tensors.add(name, steps=[step])

            def invoke_at_step(self, step):
                return any(abs(t.value(step)).max() > self.threshold for t in self.req_tensors.get())

    Every argument but the trials is passed as text when a rule is made from a configuration or a command line.

    :param base_trial: the trial it looks at
    :param action_str: what happens when the condition is met: empty, or JSON (see :mod:`tornasole.rules.action`)
    :param other_trials: further trials it compares with
    """

    #: What :meth:`look_at` gets to see; may be set by the constructor.
    needs: Sequence[Need] = ()

    _is_fed = False  # by the engine's pass
    _own_runner: Any = None

    def __init_subclass__(cls, **options: Any) -> None:
        super().__init_subclass__(**options)
        if "look_at" in cls.__dict__ and "invoke_at_step" not in cls.__dict__:
            cls._is_fed = True
            cls.invoke_at_step = Rule._look_at_one_step  # type: ignore[method-assign]
        elif "invoke_at_step" in cls.__dict__ and "_is_fed" not in cls.__dict__:
            cls._is_fed = False

    def __init__(self, base_trial, action_str: str | None = "", other_trials=None) -> None:
        self.base_trial = base_trial
        self.other_trials = other_trials
        self.trials = [base_trial, *(other_trials or [])]
        self.req_tensors = RequiredTensors(base_trial, other_trials)
        self.logger = logging.getLogger("tornasole")
        self.rule_name = type(self).__name__
        self._actions = Actions(action_str, rule_name=self.rule_name, trial=base_trial)
        self._last_message = ""
        self.report: dict[str, Any] = {
            "RuleTriggered": 0,
            "Violations": 0,
            "Details": {},
            "Datapoints": 0,
            "RuleParameters": "",
        }

    def set_required_tensors(self, step: int) -> None:
        """Says what the step needs, by ``self.req_tensors.add``; nothing by default."""

    @abstractmethod
    def invoke_at_step(self, step: int) -> bool:
        """Whether the condition is met at a global step. May look at this step and earlier ones."""

    def look_at(self, step, findings) -> None:
        """Looks at one complete step at which something of :attr:`needs` was saved; called in ascending order.

        :param step: ``step.tensors(need=0)`` are the tensors that match a need, each with ``name``, ``worker``,
            ``tensor["abs_mean"]`` and so on for its statistics, ``value``, ``reductions``, ``derived(statistic)`` and
            ``scalar``; ``step.global_step``, ``step.mode``, ``step.mode_step`` and ``step.facts()`` say which step it is
        :param findings: ``findings.add(tensor, value, threshold, message)``: the condition is met;
            ``findings.count_datapoint()`` and ``findings.skip(reason)`` count what was looked at, and what could not be
        """
        raise NotImplementedError(f"{type(self).__name__} has no look_at")

    def reset(self) -> None:
        """Forgets what is kept between steps; for rules that keep something to extend."""
        self.req_tensors.clear()
        self._own_runner = None

    def parameters(self) -> dict[str, Any]:
        """The parameters of the rule, by name, with the values they have or their defaults."""
        found = {}
        for parameter in inspect.signature(type(self).__init__).parameters.values():
            if parameter.name in ("self", "base_trial", "other_trials", "action_str"):
                continue
            if parameter.kind in (parameter.VAR_POSITIONAL, parameter.VAR_KEYWORD):
                continue
            default = None if parameter.default is parameter.empty else parameter.default
            found[parameter.name] = getattr(self, parameter.name, default)
        return found

    def invoke(self, step: int) -> None:
        """Waits for the global step and asks the rule about it, while its trials show one consistent state.

        :class:`RuleEvaluationConditionMet`, after the actions were run, if the condition is met; and whatever looking
        up the required tensors raises.
        """
        self.logger.debug("rule %s looks at step %s", self.rule_name, step)
        self.base_trial.wait_for_steps([step])
        with no_refresh(self.trials):
            self.req_tensors.clear()
            self.set_required_tensors(step)
            self.req_tensors.fetch()
            is_met = self.invoke_at_step(step)
        if not is_met:
            return
        if not self._is_fed:
            self.report["RuleTriggered"] += 1
        message, self._last_message = self._last_message, ""
        self._actions.invoke(message or f"the condition is met at step {step}", step=step)
        raise RuleEvaluationConditionMet(self.rule_name, step)

    # --- fed by the engine

    def _add_to(self, runner, rule: Any = None) -> None:
        """Puts the rule into a pass of the engine."""
        needs = list(self.needs)
        if not all(isinstance(need, Need) for need in needs):
            raise SMDebugTypeError(f"needs of {self.rule_name} is a list of Need, not {self.needs!r}")
        runner.add_python(rule or self, self.rule_name, self._parameter_lines(), [need._plain() for need in needs])

    def _take_outcome(self, outcome: dict[str, Any]) -> None:
        """What a pass found becomes the report."""
        self.report = json.loads(outcome["report"])
        violations = self.report["Details"]["violations"]
        self._last_message = violations[-1]["message"] if violations else ""

    def _look_at_one_step(self, step: int) -> bool:
        """invoke_at_step of a rule that is fed."""
        if self._own_runner is None:
            self._own_runner = _engine.RuleRunner(self.base_trial._engine, run_options(), None)
            self._add_to(self._own_runner, weakref.proxy(self))  # the runner is ours: no circle
        self._own_runner.run_step(step)
        outcome = self._own_runner.outcome(0)
        if outcome["raised"] is not None:
            raise outcome["raised"]
        if outcome["error"] is not None:
            raise SMDebugError(outcome["error"])
        self._take_outcome(outcome)
        return bool(outcome["steps_met"]) and outcome["steps_met"][-1] == step

    def _parameter_lines(self) -> str:
        return "\n".join(f"{name}:{value}" for name, value in self.parameters().items())

    def note_violation(
        self, step: int, tensor: str = "", value=None, threshold=None, worker: str = "", message: str = ""
    ) -> None:
        """Puts one finding into the report; its message goes to the actions if the condition is met.

        Not needed: a rule may also fill :attr:`report` itself.
        """
        mode, mode_step = self.base_trial.mode_modestep(step)
        finding = {
            "step": step,
            "mode": None if mode is None else mode.name,
            "mode_step": mode_step,
            "worker": worker,
            "tensor": tensor,
            "value": value,
            "threshold": threshold,
            "message": message,
        }
        self._last_message = message
        self.report["Violations"] += 1
        details = self.report["Details"]
        details.setdefault("first_step", step)
        details["last_step"] = step
        if tensor:
            tensors = details.setdefault("tensors", {})
            tensors[tensor] = tensors.get(tensor, 0) + 1
        kept = details.setdefault("violations", [])
        kept.append(finding)
        if len(kept) > 2 * _KEPT_VIOLATIONS:
            del kept[_KEPT_VIOLATIONS]

    def write_report(self, directory: str) -> str:
        """Writes the report as ``<rule name>.json`` into the directory, whole or not at all; returns its path."""
        report = dict(self.report)
        if not report["RuleParameters"]:
            report["RuleParameters"] = self._parameter_lines()
        path = os.path.join(directory, f"{self.rule_name}.json")
        write_json(path, report)
        return path


def run_options(**given: Any) -> dict[str, Any]:
    """Options of a pass of the engine, complete."""
    options = dict(first_step=None, end_step=None, workers=[], first_worker_only=False, stop_when_met=False)
    options.update(follow=False, poll_s=1.0, timeout_s=300.0)
    options.update(given)
    return options


def write_json(path: str, content: Any) -> None:
    """Writes JSON under a temporary name and renames it; numbers that are not finite become texts."""
    temporary = f"{path}.{os.getpid()}.tmp"
    os.makedirs(os.path.dirname(path) or ".", exist_ok=True)
    with open(temporary, "w", encoding="utf-8") as file:
        json.dump(_plain(content), file, indent=2, allow_nan=False)
    os.replace(temporary, path)


def _plain(content: Any) -> Any:
    if isinstance(content, dict):
        return {str(key): _plain(value) for key, value in content.items()}
    if isinstance(content, (list, tuple, set)):
        return [_plain(value) for value in content]
    if hasattr(content, "item") and getattr(content, "size", 1) == 1:
        content = content.item()
    if isinstance(content, float) and not math.isfinite(content):
        return "nan" if math.isnan(content) else "inf" if content > 0 else "-inf"
    return content if content is None or isinstance(content, (bool, int, float, str)) else str(content)
