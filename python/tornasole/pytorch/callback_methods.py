"""The methods of the hook that PyTorch calls, for subclasses that replace them.

The hook itself captures with taps of the engine and calls none of these. A subclass that defines one has it called, and
what it stands for is left to it:

===================================  ==================================  =========================================
method                               called                              replaces
===================================  ==================================  =========================================
``forward_pre_hook(module, inputs)`` before a root's forward pass        nothing: the step has begun
``forward_hook(module, inputs,       after the forward pass of each      the capture of its inputs and outputs
outputs)``                           module and of each loss
``fhook(module, inputs, outputs)``   after a root's forward pass         nothing
``backward_hook(name)``              when a root is registered, for      the capture of that gradient: PyTorch calls
                                     each parameter to be trained        what it returns
===================================  ==================================  =========================================

They are called at every step, whether anything is due or not; what they save is written if it is. An exception that
they raise is the subclass's own and reaches the training, unless they are guarded.
"""

import weakref
from typing import Any, Callable, FrozenSet, List

import torch

from tornasole import _engine
from tornasole.pytorch.attached_callbacks import Callback
from tornasole.pytorch.model_capture import GRADIENT_PREFIX, ModelCapture

_METHODS = ("forward_pre_hook", "forward_hook", "fhook", "backward_hook")


class CallbackMethods:
    """What the hook has for subclasses. The first four can be replaced, the others are for their use."""

    _mapped_changes = -1  # what module_maps was made after

    def forward_pre_hook(self, module: torch.nn.Module, inputs: Any) -> None:
        """Before the forward pass of a registered root."""

    def forward_hook(self, module: torch.nn.Module, inputs: Any, outputs: Any) -> None:
        """After the forward pass of any module of a registered root, or of a loss: saves its inputs and outputs."""
        name = self.module_maps.get(module)
        if name is not None:
            self._write_inputs(name, inputs)
            self._write_outputs(name, outputs)

    def fhook(self, module: torch.nn.Module, inputs: Any, outputs: Any) -> None:
        """After the forward pass of a registered root."""

    def backward_hook(self, tname: str) -> Callable[[torch.Tensor], None]:
        """A function that saves the gradient it is given as ``gradient/<tname>``, for ``Tensor.register_hook``."""
        return _engine.GradientTap(self._engine_hook, GRADIENT_PREFIX + tname, self._rescue)

    def should_save_dataloader_metrics(self, metrics_name: str) -> bool:
        """Whether a data loader should keep such metrics: never, they are a profiler's."""
        return False

    @property
    def module_maps(self) -> "weakref.WeakKeyDictionary[torch.nn.Module, str]":
        """The name of each registered module and loss."""
        if self._mapped_changes != self._state.changes:  # asked for at each module's call: made once
            self._mapped_changes = self._state.changes
            self._module_maps = weakref.WeakKeyDictionary(
                {module: name for capture in self._live_captures() for name, module in capture.modules()}
            )
            self._module_maps.update((loss, name) for name, loss in self._live_losses())
        return self._module_maps

    def _write_inputs(self, name: str, inputs: Any) -> None:
        """Saves every tensor in ``inputs`` as ``<name>_input_<i>``, if it is due."""
        _engine.ForwardTap(self._engine_hook, name, self._rescue)(None, inputs, ())

    def _write_outputs(self, name: str, outputs: Any) -> None:
        """Saves every tensor in ``outputs`` as ``<name>_output_<i>``, if it is due."""
        _engine.ForwardTap(self._engine_hook, name, self._rescue)(None, (), outputs)

    def _save_for_tensor(self, tensor_name: str, tensor_value: torch.Tensor, check_before_write: bool = True) -> None:
        """Saves a tensor under this name, if it is due."""
        self._save_or_rescue(tensor_name, tensor_value)

    @classmethod
    def _replaced_methods(cls) -> FrozenSet[str]:
        return frozenset(name for name in _METHODS if getattr(cls, name) is not getattr(CallbackMethods, name))


class ReplacedCallbacks:
    """The callbacks of a subclass, on models and losses. They stay until the hook is closed."""

    def __init__(self, methods: FrozenSet[str]):
        self.methods = methods
        self._handles: List = []

    def hang_on_model(self, hook, root: torch.nn.Module, capture: ModelCapture) -> None:
        if "forward_pre_hook" in self.methods:
            self._handles.append(root.register_forward_pre_hook(_unless_passive(hook, hook.forward_pre_hook)))
        if "forward_hook" in self.methods:
            for name, module in capture.modules():
                self._hang_on_module(hook, name, module)
        if "fhook" in self.methods:
            self._handles.append(root.register_forward_hook(_unless_passive(hook, hook.fhook)))
        if "backward_hook" in self.methods:
            for name, parameter in capture.parameters():
                if parameter.requires_grad:
                    self._handles.append(parameter.register_hook(_unless_passive(hook, hook.backward_hook(name))))

    def hang_on_loss(self, hook, name: str, loss: torch.nn.Module) -> None:
        if "forward_hook" in self.methods:
            self._hang_on_module(hook, name, loss)

    def _hang_on_module(self, hook, name: str, module: torch.nn.Module) -> None:
        module._module_name = name  # where such a method looks for it
        self._handles.append(module.register_forward_hook(_unless_passive(hook, hook.forward_hook)))

    def close(self) -> None:
        for handle in self._handles:
            handle.remove()
        self._handles = []


def _unless_passive(hook, method: Callable) -> Callback:
    def call(*arguments) -> None:
        if not hook._is_passive():
            method(*arguments)

    return Callback(call)
