"""The rules that are built in, by name."""

from __future__ import annotations

from collections.abc import Mapping
from functools import lru_cache
from typing import Any, NamedTuple

from tornasole import _engine
from tornasole.exceptions import SMDebugTypeError
from tornasole.rules.rule import Rule


class RuleParameter(NamedTuple):
    """One parameter of a rule; ``type`` is text, list, number, numbers, integer or flag, no ``default`` is ``""``."""

    name: str
    type: str
    default: str
    help: str


class RuleType(NamedTuple):
    """A rule that :func:`make` can make; ``summary`` says what it means when it is met."""

    name: str
    group: str
    summary: str
    parameters: list[RuleParameter]


def _type_of(plain: dict[str, Any]) -> RuleType:
    parameters = [RuleParameter(**parameter) for parameter in plain["parameters"]]
    return RuleType(plain["name"], plain["group"], plain["summary"], parameters)


@lru_cache(maxsize=1)
def _all_types() -> tuple[RuleType, ...]:
    return tuple(map(_type_of, _engine.builtin_rules()))


def builtin_rules() -> list[RuleType]:
    """The rules that are built in, in the order of the documentation."""
    return list(_all_types())


def find_rule(name: str) -> RuleType:
    """The rule of this name, compared without case and underscores; a ValueError names those that come near."""
    if not isinstance(name, str):
        raise SMDebugTypeError(f"the name of a rule is a text, and {name!r} is none")
    return _type_of(_engine.find_rule(name))


def parameter_texts(parameters: Mapping[str, Any]) -> dict[str, str]:
    """Parameters as the texts of a command line: lists with commas, without those that are None."""
    return {name: _text(value) for name, value in parameters.items() if value is not None}


def _text(value: Any) -> str:
    if isinstance(value, (list, tuple, set, frozenset)):
        return ",".join(map(_text, value))
    return value if isinstance(value, str) else repr(value) if isinstance(value, float) else str(value)


class BuiltinRule(Rule):
    """A rule of the engine; made by :func:`make`. It runs without Python, and is asked like any other rule."""

    _is_fed = True

    def __init__(self, name: str, base_trial, parameters: Mapping[str, Any], action_str="", other_trials=None) -> None:
        super().__init__(base_trial, action_str, other_trials)
        found = find_rule(name)
        self.rule_name = found.name
        self._type = found
        self._texts = parameter_texts(parameters)
        others = [trial._engine for trial in other_trials or []]
        #: What the rule looks at; the pass of the engine knows.
        self.needs = _engine.rule_needs(found.name, self._texts, base_trial._engine, others)

    invoke_at_step = Rule._look_at_one_step

    def parameters(self) -> dict[str, Any]:
        """The parameters by name, as texts."""
        return {one.name: self._texts.get(one.name, one.default) for one in self._type.parameters}

    def _add_to(self, runner, rule: Any = None) -> None:
        runner.add(self._type.name, self.rule_name, self._texts, [trial._engine for trial in self.other_trials or []])


def make(name: str, base_trial, *, other_trials=None, action_str: str = "", **parameters: Any) -> BuiltinRule:
    """A built-in rule over a trial::

        rule = tornasole.rules.make("VanishingGradient", create_trial("runs/mnist"), threshold=1e-6)

    :param name: compared without case and underscores
    :param base_trial: a trial, or the directory of a run
    :param other_trials: trials it compares with
    :param action_str: what happens when the condition is met: empty, or JSON
    :param parameters: of the rule, as numbers, texts or lists; see :func:`builtin_rules`

    A parameter that the rule does not have, or a value that is not of its type, raises a ValueError that says what is
    allowed.
    """
    others = [_as_trial(other) for other in other_trials or []]
    return BuiltinRule(name, _as_trial(base_trial), parameters, action_str, others or None)


def _as_trial(trial: Any):
    from tornasole.trials import Trial, create_trial

    return trial if isinstance(trial, Trial) else create_trial(trial)
