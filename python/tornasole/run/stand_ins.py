"""Functions in whose place ours stand, unseen by the program.

1. What the function warns of is told of its caller.
2. Tracebacks have no frame of ours.
3. TorchScript compiles the function itself.
4. ``torch.compile`` does not try to compile what stands in, where the program calls it between two compiled parts.
"""

import functools
from types import CodeType
from typing import Any, Callable

import torch

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
    _leave_uncompiled(called_instead.__code__)
    called_instead.__prepare_scriptable__ = lambda: function
    return called_instead


def _leave_uncompiled(code: CodeType) -> None:
    """Functions that are compiled and call this one have it in their graph all the same, where they can."""
    compiler = getattr(getattr(torch._C, "_dynamo", None), "eval_frame", None)
    if hasattr(compiler, "set_code_exec_strategy"):
        skip, default = compiler._FrameAction.SKIP, compiler._FrameAction.DEFAULT
        compiler.set_code_exec_strategy(code, compiler._FrameExecStrategy(skip, default))
    elif hasattr(compiler, "skip_code"):  # before PyTorch 2.7
        compiler.skip_code(code)
