"""Configurations of the built-in rules: one function each, named like the rule in snake case.

>>> from tornasole.rules import configs
>>> configs.vanishing_gradient(threshold=1e-6).parameters["threshold"]
'1e-06'

A configuration is handed to :func:`tornasole.rules.run_rules`, to the ``rules`` of a hook, or written as JSON for
``tornasole rule --config``. The functions are made from :func:`tornasole.rules.builtin_rules`; :func:`names` lists them.
"""

from __future__ import annotations

import inspect
import json
import re
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any

from tornasole import _engine
from tornasole.exceptions import InsufficientInformationForRuleInvocation
from tornasole.rules.builtin import RuleType, builtin_rules, find_rule, make, parameter_texts

_SAVE_INTERVAL = "500"
# Collections of the public configurations that are not called like their pattern, or saved at other steps.
_PATTERN_NAMES = {".*hybridsequential0_input_0": "input_image", ".*embedding0_input_0": "input_sequence"}
_REPORT_STEPS = {"hyperparameters": {"start_step": "0", "end_step": "1", "save_interval": "1"}}


@dataclass(frozen=True)
class RuleConfiguration:
    """A rule with its parameters, and the collections it needs to find in a run."""

    name: str
    rule: str
    #: As texts; those left out have their defaults.
    parameters: Mapping[str, str] = field(default_factory=dict)
    #: Directories of the runs it compares with.
    other_trials: Sequence[str] = ()
    #: What happens when the condition is met, as JSON; empty: nothing.
    actions: str = ""

    def make(self, base_trial):
        """The rule, over a trial or the directory of a run."""
        made = make(
            self.rule,
            base_trial,
            other_trials=list(self.other_trials) or None,
            action_str=self.actions,
            **self.parameters,
        )
        made.rule_name = self.name
        return made

    def needs(self) -> list[dict[str, Any]]:
        """What the rule looks at: a dict for each need, with the members of :class:`tornasole.rules.Need`.

        Nothing for a rule that has to be told first which tensors to look at.
        """
        try:
            return _engine.rule_needs(self.rule, dict(self.parameters), None, [])
        except InsufficientInformationForRuleInvocation:
            return []

    def collections(self) -> list[dict[str, Any]]:
        """The collections that a hook must save for the rule, as the configuration lists them."""
        found: dict[str, dict[str, str]] = {}
        is_report = self.rule == "CreateXgboostReport"
        for need in self.needs():
            for name in need["collections"]:
                steps = {"save_interval": "5" if is_report else _SAVE_INTERVAL}
                found[name] = _REPORT_STEPS.get(name, steps) if is_report else steps
            for pattern in need["regex"]:
                name = _PATTERN_NAMES.get(pattern) or "_".join(re.findall(r"\w+", pattern)) or "everything"
                found[name] = {"include_regex": pattern, "save_interval": _SAVE_INTERVAL}
        return [{"CollectionName": name, "CollectionParameters": steps} for name, steps in found.items()]

    def to_dict(self) -> dict[str, Any]:
        """The configuration as ``tornasole rule --config`` reads it."""
        parameters = {"rule_to_invoke": self.rule}
        for parameter in find_rule(self.rule).parameters:
            value = self.parameters.get(parameter.name, parameter.default)
            if value:
                parameters[parameter.name] = value
        if self.other_trials:
            parameters["other_trials"] = ",".join(self.other_trials)
        if self.actions:
            parameters["action_json"] = self.actions
        return {
            "DebugRuleConfiguration": {"RuleConfigurationName": self.name, "RuleParameters": parameters},
            "CollectionConfigurations": self.collections(),
        }

    def to_json(self) -> str:
        """The same as text."""
        return json.dumps(self.to_dict(), indent=2)


def snake_case(name: str) -> str:
    """The name of a rule as that of its function: NLPSequenceRatio is nlp_sequence_ratio."""
    return re.sub(r"(?<=[a-z0-9])(?=[A-Z])|(?<=[A-Z])(?=[A-Z][a-z])", "_", name).lower()


def _function_of(rule: RuleType) -> Callable[..., RuleConfiguration]:
    def configure(*, name: str = rule.name, actions: Any = "", other_trials=(), **parameters: Any) -> RuleConfiguration:
        text = actions if isinstance(actions, str) else json.dumps(actions)
        texts = parameter_texts(parameters)
        _engine.check_rule_parameters(rule.name, texts)
        return RuleConfiguration(name, rule.name, texts, tuple(map(str, other_trials)), text)

    configure.__name__ = configure.__qualname__ = snake_case(rule.name)
    lines = [f"    :param {one.name}: {one.help} ({one.default or 'none'})" for one in rule.parameters]
    configure.__doc__ = "\n".join(
        [
            f"{rule.summary}\n",
            "    :param name: of the report; that of the rule",
            "    :param actions: what happens when the condition is met: JSON, or what it is made of",
            "    :param other_trials: directories of runs it compares with",
            *lines,
        ]
    )
    kind = inspect.Parameter.KEYWORD_ONLY
    shown = [inspect.Parameter(one.name, kind, default=one.default or None) for one in rule.parameters]
    usual = [inspect.Parameter("name", kind, default=rule.name), inspect.Parameter("actions", kind, default="")]
    usual.append(inspect.Parameter("other_trials", kind, default=()))
    configure.__signature__ = inspect.Signature([*usual, *shown])  # type: ignore[attr-defined]
    return configure


_functions = {snake_case(rule.name): _function_of(rule) for rule in builtin_rules()}
globals().update(_functions)


def names() -> list[str]:
    """The functions of this module, in the order of the documentation."""
    return list(_functions)


__all__ = ["RuleConfiguration", "names", "snake_case", *_functions]
