"""Truth values that come as something else."""

from __future__ import annotations

from typing import Any

from tornasole.exceptions import SMDebugValueError

_WORDS = {
    **dict.fromkeys(("y", "yes", "t", "true", "on", "1"), True),
    **dict.fromkeys(("n", "no", "f", "false", "off", "0"), False),
}
# Of these the parameters of rules take two, in two spellings.
_OF_PARAMETERS = ("True", "true", "False", "false")


def str2bool(v: Any) -> bool:
    """A truth value, or a text that says one in any case: the type of an argument of a script's command line."""
    if isinstance(v, bool):
        return v
    truth = _WORDS.get(str(v).strip().lower())
    if truth is None:
        raise SMDebugValueError(f"{v!r} is no truth value; allowed: {', '.join(_WORDS)}")
    return truth


def parse_bool(arg, default: bool) -> bool:
    """A truth value given as one or as text; the default for None."""
    if arg is None:
        return default
    if isinstance(arg, str) and arg in _OF_PARAMETERS:
        return str2bool(arg)
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
