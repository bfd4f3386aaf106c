"""Whose method a frame runs."""

from types import FrameType
from typing import Any


def owner_of(frame: FrameType) -> Any:
    """What ``self`` stands for in the frame; None in functions that are no methods.

    Before Python 3.13 a look at the names of a function keeps what they stand for as long as it runs, and changes what
    it got from ``locals()``: only methods are looked into.
    """
    code = frame.f_code
    is_method = code.co_argcount > 0 and code.co_varnames[0] == "self"
    return frame.f_locals.get("self") if is_method else None
