"""Callables that hang on modules and parameters, and can be taken off and put back."""

import contextlib
import weakref
from typing import Callable, Dict

import torch

from tornasole.pytorch.unseen_callbacks import after_forward


# Whether torch.compile or torch.export, or torch.jit.trace, writes down what is done, callbacks included.
is_compiling = getattr(getattr(torch, "compiler", None), "is_compiling", None) or (lambda: False)
is_tracing = torch._C._is_tracing


class Callback:
    """A callable that hangs on a module. Copies and pickles of the module get one that does nothing in its place."""

    __slots__ = ("_function",)

    def __init__(self, function: Callable):
        self._function = function

    def __call__(self, *arguments):
        if is_compiling() or is_tracing():
            return None
        return self._function(*arguments)

    def __reduce__(self):
        return getattr, (contextlib.nullcontext(), "__exit__")


class Attached:
    """A callable in a dict of callbacks, that can be taken out and put back at the price of one look-up."""

    __slots__ = ("_handle", "_callbacks", "_key", "_callable", "is_on_module")

    def __init__(self, handle, callbacks: Dict, function: Callable, is_on_module: bool = False):
        self._handle, self._callbacks, self._key, self._callable = handle, callbacks, handle.id, function
        self.is_on_module = is_on_module

    @classmethod
    def to_module(cls, module: torch.nn.Module, function: Callable, even_on_error: bool = False) -> "Attached":
        """Called after the module's forward pass, from now on; ``even_on_error``: also when that raised."""
        handle = after_forward(module, function, even_on_error)
        return cls(handle, module._forward_hooks, function, is_on_module=True)

    def detach(self) -> None:
        self._callbacks.pop(self._key, None)

    def attach(self) -> None:
        self._callbacks[self._key] = self._callable

    def remove(self) -> None:
        """Takes it out for good."""
        self._handle.remove()


class AttachedToGradient:
    """A callable that gets each gradient of a parameter; it can be taken off and put back.

    PyTorch asks for the interpreter's lock in every backward pass for a parameter that has a dict of callbacks, even an
    empty one: a parameter is left without.
    """

    __slots__ = ("_parameter", "_callbacks", "_key", "_callable")
    is_on_module = False

    def __init__(self, parameter: torch.nn.Parameter, function: Callable):
        self._parameter, self._callable = weakref.ref(parameter), function
        self._key = parameter.register_hook(function).id
        self._callbacks = parameter._backward_hooks

    def detach(self) -> None:
        parameter = self._parameter()
        callbacks = None if parameter is None else parameter._backward_hooks
        if callbacks is not None:
            callbacks.pop(self._key, None)
            if not callbacks:
                parameter._backward_hooks = None

    def attach(self) -> None:
        parameter = self._parameter()
        if parameter is None:
            return
        if parameter._backward_hooks is None:
            self._callbacks[self._key] = self._callable
            parameter._backward_hooks = self._callbacks
        else:  # the program has its own by now
            parameter._backward_hooks[self._key] = self._callable

    def remove(self) -> None:
        """Takes it off for good."""
        self.detach()
