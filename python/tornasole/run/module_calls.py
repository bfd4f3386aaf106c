"""A look at every call of a module of PyTorch, while somebody searches for one."""

import sys
from typing import Callable, Container, List, Optional, Tuple

import torch
from torch.nn.utils.parametrize import ParametrizationList

from tornasole.pytorch.calling_frames import owner_of
from tornasole.run import keras_attachment
from tornasole.run.stand_ins import stand_in

Look = Callable[[torch.nn.Module], None]

_DEEP = 40  # frames of a call that are looked at
_NEAR = 4  # those up to the function that calls the module


class ModuleCalls:
    """One search at a time.

    Not by a callback for all modules, of which PyTorch would warn a program that compiles its model."""

    def __init__(self, failed: Callable[[Exception], None], passes: Callable[[], int]):
        """``failed`` is told what a look raised. ``passes``: backward passes so far."""
        self.look: Optional[Look] = None  # at every call of a module that may be a model
        self._failed, self._passes = failed, passes
        self._begun_after = 0  # backward passes
        self._search: Optional[Tuple[Callable, Callable]] = None  # what stands in for Module.__call__, and that

    def search(self, look: Look) -> None:
        """From now on, in place of the search before, until it is stopped."""
        self.stop()
        self.look, self._begun_after = look, self._passes()

        def enter(arguments: tuple) -> bool:
            try:
                if self.look is not None and not _is_no_model(arguments):
                    self.look(arguments[0])
            except Exception as error:
                self._failed(error)
            return False

        bare = torch.nn.Module.__call__
        self._search = stand_in(bare, enter, lambda _: None), bare
        torch.nn.Module.__call__ = self._search[0]

    def stop(self) -> None:
        """What others have put in its place meanwhile stays; ours below it looks at nothing any more."""
        self.look = None
        if self._search is not None and torch.nn.Module.__call__ is self._search[0]:
            torch.nn.Module.__call__ = self._search[1]
        self._search = None

    def weights_of(self, module: torch.nn.Module) -> List[torch.nn.Parameter]:
        """What a look takes for the parameters of a module that is called.

        Of a part that has none, such as an activation, those of the module whose method calls it, which may compute with
        them itself and call nothing else. Only after a backward pass in which no other part was found: a model may well
        change its inputs by such a part, in training alone.
        """
        found = list(module.parameters())
        if found or self._passes() == self._begun_after:
            return found
        owner = outermost(module, frames=_NEAR)
        return [] if owner is None else list(owner.parameters())


def _is_no_model(arguments: tuple) -> bool:
    """Whether what is called with these is a loss, or what computes a weight of a layer and is called once the layer gets
    it, or a layer of Keras on PyTorch that is not a model, or is called by ``fit`` and the like, which have a hook of
    their own, or without values, to learn what shapes it gives."""
    module = arguments[0]
    layer = getattr(sys.modules.get("keras"), "Layer", ())
    if not isinstance(module, layer):
        return isinstance(module, (torch.nn.modules.loss._Loss, ParametrizationList))
    has_values = any(isinstance(value, torch.Tensor) and not value.is_meta for value in arguments[1:])
    return keras_attachment.is_training() or not isinstance(module, sys.modules["keras"].Model) or not has_values


def outermost(
    module: torch.nn.Module, among: Optional[Container[torch.nn.Module]] = None, frames: int = _DEEP
) -> Optional[torch.nn.Module]:
    """The module itself, or the one, of those given, whose method is calling it as its own part without being called as
    a module.

    Training frameworks call ``module.training_step(batch)``, which calls the parts of the module. None while a module
    is being built, which may try its parts, and for what takes no callbacks.
    """
    frame = sys._getframe(2)
    found = module
    for _ in range(frames):
        if frame is None:
            break
        owner = owner_of(frame)
        is_module = isinstance(owner, torch.nn.Module) and (among is None or owner in among)
        if is_module and (owner is found or any(part is found for part in owner.modules())):
            if frame.f_code.co_name == "__init__":
                return None
            found = owner
        frame = frame.f_back
    return None if isinstance(found, torch.jit.ScriptModule) else found
