"""Callbacks of modules that copies, pickles and TorchScript do not see: a model is saved as it is without them."""

from collections import OrderedDict
from typing import Callable, Set

import torch


class CallbackDict(OrderedDict):
    """The callbacks of a module by number, ours among them.

    PyTorch calls what ``items()`` gives. TorchScript compiles what ``values()`` gives: not ours.
    """

    def __init__(self) -> None:
        super().__init__()
        self.ours: Set[int] = set()

    def _others(self) -> list:
        return [(key, value) for key, value in self.items() if key not in self.ours]

    def values(self) -> list:
        return [value for _, value in self._others()]

    def __reduce_ex__(self, _protocol):
        return OrderedDict, (), None, None, iter(self._others())


def before_forward(module: torch.nn.Module, function: Callable):
    """Has ``function(module, inputs)`` called before each forward pass. The handle takes it off."""
    return _hang(module, ("_forward_pre_hooks",), lambda: module.register_forward_pre_hook(function))


def after_forward(module: torch.nn.Module, function: Callable, even_on_error: bool = False):
    """Has ``function(module, inputs, outputs)`` called after each forward pass; ``even_on_error``: also when that
    raised, where PyTorch can. The handle takes it off."""
    options = {"always_call": True} if even_on_error and hasattr(module, "_forward_hooks_always_called") else {}
    names = ("_forward_hooks", *(["_forward_hooks_always_called"] if options else []))
    return _hang(module, names, lambda: module.register_forward_hook(function, **options))


def _hang(module: torch.nn.Module, names, register: Callable):
    for name in names if hasattr(module, "_forward_hooks_with_kwargs") else ():  # before PyTorch 2.0 values() are called
        callbacks = getattr(module, name)
        if type(callbacks) is OrderedDict and not callbacks:  # handles that were given out point to the dict they are in
            module.__dict__[name] = CallbackDict()
    handle = register()
    for name in names:
        callbacks = getattr(module, name)
        if isinstance(callbacks, CallbackDict):
            callbacks.ours.add(handle.id)
    return handle
