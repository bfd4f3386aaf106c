"""Rules from a file that the user names: nothing else is ever searched or imported."""

from __future__ import annotations

import importlib.util
import inspect
import os
import sys

from tornasole.exceptions import SMDebugValueError
from tornasole.rules.rule import Rule


def rules_of_file(path: str) -> dict[str, type[Rule]]:
    """The rules that a Python file defines, by name. The file is run, as a module of its own."""
    if not os.path.isfile(path):
        raise SMDebugValueError(f"there is no file {path}")
    name = "tornasole_rule_file_" + os.path.splitext(os.path.basename(path))[0].replace("-", "_")
    spec = importlib.util.spec_from_file_location(name, path)
    if spec is None or spec.loader is None:
        raise SMDebugValueError(f"{path} is no Python file: its name ends in .py")
    module = importlib.util.module_from_spec(spec)
    sys.modules[name] = module
    spec.loader.exec_module(module)
    found = {}
    for one in vars(module).values():
        is_rule = inspect.isclass(one) and issubclass(one, Rule) and one.__module__ == name
        if is_rule and not inspect.isabstract(one):
            found[one.__name__] = one
    if not found:
        raise SMDebugValueError(f"{path} defines no rule: no class of its own that is made from tornasole.rules.Rule")
    return found


def load_rule(path: str, name: str | None = None) -> type[Rule]:
    """The rule of this name, compared without case and underscores, in a Python file; the only one, if None."""
    rules = rules_of_file(path)
    if name is None:
        if len(rules) > 1:
            raise SMDebugValueError(f"{path} defines several rules: {', '.join(rules)}; name one")
        return next(iter(rules.values()))
    for one, rule in rules.items():
        if _plain(one) == _plain(name):
            return rule
    raise SMDebugValueError(f"{path} defines no rule {name!r}; it has {', '.join(rules)}")


def make_from_file(path: str, name: str | None, base_trial, parameters: dict[str, str], action_str="", others=None):
    """A rule of a file, with its parameters as texts; a parameter it does not have is an error that names those it has."""
    rule = load_rule(path, name)
    takes = inspect.signature(rule.__init__).parameters
    own = [one for one in takes if one not in ("self", "base_trial", "action_str", "other_trials")]
    given = {}
    for parameter, text in parameters.items():
        known = parameter if parameter in own else parameter.replace("-", "_")
        if known not in own:
            raise SMDebugValueError(
                f"rule {rule.__name__}: no parameter {parameter!r}; it has: {', '.join(own) or 'none'}"
            )
        given[known] = text
    missing = [
        one
        for one in own
        if one not in given and takes[one].default is inspect.Parameter.empty and takes[one].kind not in _COLLECTING
    ]
    if missing:
        raise SMDebugValueError(f"rule {rule.__name__}: it must be given {', '.join(missing)}")
    if action_str:
        given["action_str"] = action_str
    if others:
        given["other_trials"] = others
    unknown = [one for one in ("action_str", "other_trials") if one in given and one not in takes]
    if unknown:
        raise SMDebugValueError(f"rule {rule.__name__}: its constructor does not take {', '.join(unknown)}")
    return rule(base_trial, **given)


_COLLECTING = (inspect.Parameter.VAR_POSITIONAL, inspect.Parameter.VAR_KEYWORD)


def _plain(name: str) -> str:
    return name.replace("_", "").lower()
