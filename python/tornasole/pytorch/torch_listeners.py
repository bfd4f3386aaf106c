"""What PyTorch's own tools do: scale a loss, clip gradients, compile a module.

Listeners are told while there are any; with the last one the functions are PyTorch's own again.
"""

import functools
import weakref
from typing import Any, Callable, List, Tuple

import torch

_listeners: List["weakref.ref"] = []
_replaced: List[Tuple[Any, str, Any, Any]] = []  # (owner, name, original, ours)


def listen(listener: Any) -> None:
    """Has ``loss_scaled(scaler)``, ``gradients_clipped(norm)`` and ``module_compiled(module, result)`` of the listener
    called from now on; ``result`` is None for a module that was compiled in its place."""
    if any(known() is listener for known in _listeners):
        return
    _listeners.append(weakref.ref(listener, _forget))
    if not _replaced:
        _replace_all()


def stop_listening(listener: Any) -> None:
    _listeners[:] = [known for known in _listeners if known() not in (None, listener)]
    if not _listeners:
        _restore()


def _forget(_) -> None:
    _listeners[:] = [known for known in _listeners if known() is not None]
    if not _listeners:
        _restore()


def _tell(method: str, *values: Any) -> None:
    for known in list(_listeners):
        listener = known()
        if listener is not None:
            getattr(listener, method)(*values)


def _replace(owner: Any, name: str, wrap: Callable) -> None:
    original = owner.__dict__.get(name) if isinstance(owner, type) else getattr(owner, name, None)
    if original is None:
        return
    ours = functools.wraps(original)(wrap(original))
    setattr(owner, name, ours)
    _replaced.append((owner, name, original, ours))


def _replace_all() -> None:
    def scale(original):
        def scale_and_tell(self, *arguments, **keywords):
            result = original(self, *arguments, **keywords)
            _tell("loss_scaled", self)
            return result

        return scale_and_tell

    def clip(original):
        def clip_and_tell(*arguments, **keywords):
            norm = original(*arguments, **keywords)
            _tell("gradients_clipped", norm)
            return norm

        return clip_and_tell

    def compile_function(original):
        def compile_and_tell(model=None, *arguments, **keywords):
            result = original(model, *arguments, **keywords)
            if isinstance(model, torch.nn.Module) and isinstance(result, torch.nn.Module):
                _tell("module_compiled", model, result)
            return result

        return compile_and_tell

    def compile_method(original):
        def compile_and_tell(self, *arguments, **keywords):
            original(self, *arguments, **keywords)
            _tell("module_compiled", self, None)

        return compile_and_tell

    if hasattr(torch, "compile"):
        _replace(torch, "compile", compile_function)
        _replace(torch.nn.Module, "compile", compile_method)
    newer = getattr(getattr(torch, "amp", None), "GradScaler", None)
    older = getattr(getattr(torch.cuda, "amp", None), "GradScaler", None)
    for scaler in dict.fromkeys(cls for cls in (newer, older) if cls is not None):
        _replace(scaler, "scale", scale)
    for module in (torch.nn.utils, torch.nn.utils.clip_grad):
        _replace(module, "clip_grad_norm_", clip)


def _restore() -> None:
    while _replaced:
        owner, name, original, ours = _replaced.pop()
        if getattr(owner, name, None) is ours:  # somebody else may have wrapped it since
            setattr(owner, name, original)
