"""Truth values that come as something else."""

from __future__ import annotations

from typing import Any

from tornasole.exceptions import SMDebugValueError

_TRUTHS = {"True": True, "true": True, "False": False, "false": False}


def parse_bool(arg, default: bool) -> bool:
    """A truth value given as one or as text; the default for None."""
    if arg is None:
        return default
    if isinstance(arg, bool):
        return arg
    if isinstance(arg, str) and arg in _TRUTHS:
        return _TRUTHS[arg]
    if isinstance(arg, (int, float)) and arg in (0, 1):
        return bool(arg)
    raise SMDebugValueError(f"{arg!r} is no truth value; True, true, False and false are")


def switch_of(name: str, given: Any) -> bool:
    """The value of a switch of a hook, as scripts give it: also 0 or 1, a text, or a list with one of these in it."""
    value = given[0] if isinstance(given, (list, tuple)) and len(given) == 1 else given
    try:
        return parse_bool(value.item() if hasattr(value, "item") else value, False)
    except (SMDebugValueError, ValueError):
        raise SMDebugValueError(f"{name}: {given!r} is not allowed; allowed: True or False") from None
