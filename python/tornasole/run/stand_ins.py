"""Functions in whose place ours stand, unseen by the program.

1. What the function warns of is told of its caller.
2. Tracebacks have no frame of ours.
3. TorchScript compiles the function itself.
"""

import functools
from typing import Any, Callable

from tornasole.pytorch.attached_callbacks import is_compiling, is_tracing
from tornasole.core.uncounted_frames import uncounted


def stand_in(function: Callable, enter: Callable[[tuple], bool], leave: Callable[[Any], None]) -> Callable:
    """``function``, with ``enter(arguments)`` before it and, if that is true, ``leave(value)`` after it, or
    ``leave(None)`` where it raises. Neither of the two may raise."""

    @functools.wraps(function)
    def called_instead(*arguments, **keywords):
        if is_compiling() or is_tracing():
            return function(*arguments, **keywords)
        is_entered = enter(arguments)
        try:
            value = function(*arguments, **keywords)
        except BaseException as error:
            error.__traceback__ = error.__traceback__ and error.__traceback__.tb_next
            if is_entered:
                leave(None)
            raise
        if is_entered:
            leave(value)
        return value

    uncounted(called_instead)
    called_instead.__prepare_scriptable__ = lambda: function
    return called_instead
