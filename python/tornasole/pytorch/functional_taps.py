"""Activations that are functions: ``F.relu(x)``, ``torch.tanh(x)``, ``x.sigmoid()`` inside a module's forward pass.

They are seen at due steps only, by a mode of PyTorch that every function call passes through. Names:
``<module path>.<function>()_<n>_input_0`` and ``..._output_0``, numbered per step.
"""

import sys
from typing import Any, Callable, Dict, Optional, Tuple

import torch
import torch.nn.functional as functional

from tornasole import _engine
from tornasole.pytorch.calling_frames import owner_of
from tornasole.core.uncounted_frames import uncounted

try:
    from torch.overrides import TorchFunctionMode
except ImportError:  # before PyTorch 1.13
    TorchFunctionMode = None

_NAMES = (
    "celu elu gelu glu hardsigmoid hardswish hardtanh leaky_relu log_softmax logsigmoid mish prelu relu relu6 rrelu "
    "selu sigmoid silu softmax softmin softplus softsign tanh"
).split()
_MAX_FRAMES = 12


def _activations() -> Dict[Any, str]:
    found = {}
    for name in _NAMES:
        for owner in (functional, torch, torch.Tensor):
            for spelling in (name, name + "_"):
                function = getattr(owner, spelling, None)
                if callable(function):
                    found[function] = name
    return found


if TorchFunctionMode is not None:

    class FunctionalTaps(TorchFunctionMode):
        """Active between ``start`` and ``stop``, which are one forward pass of a root module."""

        _functions: Optional[Dict[Any, str]] = None

        def __init__(self, save: Callable[[str, torch.Tensor], None], names: Dict[int, str]):
            super().__init__()
            self._save = save
            self._module_names = names
            self._numbers: Dict[Tuple[str, str], int] = {}
            self._is_active = False
            if FunctionalTaps._functions is None:
                FunctionalTaps._functions = _activations()

        def start(self) -> None:
            self._numbers.clear()
            self.__enter__()
            self._is_active = True

        def stop(self) -> None:
            if self._is_active:
                self._is_active = False
                self.__exit__(None, None, None)

        @uncounted
        def __torch_function__(self, func, types, args=(), kwargs=None):
            kwargs = kwargs or {}
            if "_stacklevel" in kwargs:  # of what softmax warns: it was called twice, and by PyTorch the second time
                kwargs["_stacklevel"] += 2
            name = self._functions.get(func)
            if name is None or not args or not isinstance(args[0], torch.Tensor) or _engine.is_in_backward():
                return func(*args, **kwargs)
            path = self._calling_module()
            if path is None:
                return func(*args, **kwargs)
            number = self._numbers.get((path, name), 0)
            self._numbers[path, name] = number + 1
            stem = f"{path}.{name}()_{number}"
            self._save(f"{stem}_input_0", args[0])
            result = func(*args, **kwargs)
            if isinstance(result, torch.Tensor):
                self._save(f"{stem}_output_0", result)
            return result

        def _calling_module(self) -> Optional[str]:
            """The name of the module whose method calls; None for PyTorch's own, whose tensors have names already."""
            frame = sys._getframe(2)
            for _ in range(_MAX_FRAMES):
                if frame is None:
                    return None
                owner = owner_of(frame)
                if isinstance(owner, torch.nn.Module):
                    if type(owner).__module__.startswith("torch.nn.modules"):
                        return None
                    return self._module_names.get(id(owner))
                frame = frame.f_back
            return None

else:
    FunctionalTaps = None  # type: ignore[assignment, misc]
