"""Checks of what the user passed, where only Python can do them."""

from __future__ import annotations

import math
import operator

from tornasole.exceptions import SMDebugTypeError, SMDebugValueError
from tornasole.modes import ModeKeys


def mode_number(mode: ModeKeys) -> int:
    """The number of a mode; a type error for anything that is no mode."""
    if isinstance(mode, ModeKeys):
        return mode.value
    raise SMDebugTypeError(f"{mode!r} is no mode; modes.TRAIN, modes.EVAL, modes.PREDICT and modes.GLOBAL are")


def step_number(step) -> int:
    """The number of a step; a type error for anything that is no whole number, a value error beyond 64 bits."""
    return _whole_number(step, "step")


def count_of_steps(count) -> int:
    """How many steps are asked for; 0, which stands for all of them, for None."""
    return 0 if count is None else _whole_number(count, "number of steps")


def _whole_number(given, what: str) -> int:
    try:
        number = operator.index(given)
    except TypeError:
        if not isinstance(given, float) or not given.is_integer():
            raise SMDebugTypeError(f"{given!r} is no {what}; a whole number is") from None
        number = int(given)
    if not -(2**63) <= number < 2**63:
        raise SMDebugValueError(f"{given!r} is no {what}; a whole number of 64 bits is")
    return number


def worker_name(worker) -> str:
    """The name of a worker, empty for None: the first one; a type error for anything that can be no name."""
    if worker is None:
        return ""
    if isinstance(worker, str) and worker and is_spellable(worker):
        return worker
    raise SMDebugTypeError(f"{worker!r} is no name of a worker; a text such as 'worker_0' is, or None for the first")


def reduction_of_name(name) -> str:
    """The name of a reduction; a value error for anything that can be none. The engine knows which there are."""
    if isinstance(name, str) and is_spellable(name):
        return name
    raise SMDebugValueError(f"{name!r} is no reduction; a name such as 'mean' or 'l2' is")


def tensor_name(name) -> str:
    """The name of a tensor; a type error for anything that can be none."""
    if isinstance(name, str) and is_spellable(name):
        return name
    raise SMDebugTypeError(f"{name!r} is no name of a tensor; a text is")


def seconds_since_epoch(given) -> float:
    """A time; a type error for anything that is no number, a value error for one that is no time."""
    try:
        seconds = float(given) if not isinstance(given, (str, bytes)) else None
    except (TypeError, ValueError, OverflowError):
        seconds = None
    if seconds is None:
        raise SMDebugTypeError(f"{given!r} is no time; seconds since 1970 are")
    if not math.isfinite(seconds):
        raise SMDebugValueError(f"{given!r} is no time; seconds since 1970 are")
    return seconds


def is_spellable(text: str) -> bool:
    """Whether UTF-8 can spell a text: half a surrogate pair has no bytes."""
    try:
        return text.isascii() or bool(text.encode())
    except UnicodeEncodeError:
        return False


def flat_patterns(regex) -> list[str]:
    """One pattern, or lists of them nested at will, as one list."""
    if isinstance(regex, str) and is_spellable(regex):
        return [regex]
    if isinstance(regex, (list, tuple, set, frozenset)):
        return [pattern for part in regex for pattern in flat_patterns(part)]
    raise SMDebugTypeError(f"a pattern is a text, and {regex!r} is none")


def checked_range_steps(range_steps) -> tuple[int | None, int | None]:
    """The two bounds; a value error says what is wrong with them."""
    if range_steps is None:
        return None, None
    try:
        begin, end = range_steps
    except (TypeError, ValueError):
        raise SMDebugValueError(f"range_steps is {range_steps!r}; a pair (begin, end) is wanted") from None
    for bound in (begin, end):
        if bound is not None and (isinstance(bound, bool) or not isinstance(bound, int) or not 0 <= bound < 2**63):
            raise SMDebugValueError(
                f"range_steps is {range_steps!r}; each bound is None or a whole number from 0 on, of 64 bits"
            )
    if begin is not None and end is not None and end <= begin:
        raise SMDebugValueError(f"range_steps is {range_steps!r}; the end, which is left out, must be after the begin")
    return begin, end
