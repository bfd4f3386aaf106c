"""What a parameter has in ``.grad`` when a backward pass reaches it: nothing, where gradients were cleared before.

Only where the pass adds to it: ``torch.autograd.grad`` gives the gradient to the program instead.

Saved for presets as the scalar ``gradient_before/NAME``, the largest magnitude there is, for the first pass of a step.
A few small parameters tell it for all.
"""

import functools
import weakref
from typing import Iterable, List, Tuple

import torch

PREFIX = "gradient_before/"
_WATCHED = 3
# Since PyTorch 2.2 and 2.1.
_edge_of = getattr(torch.autograd.graph, "get_gradient_edge", None)
_will_run = getattr(torch._C, "_will_engine_execute_node", None)


def watched(parameters: Iterable[Tuple[str, torch.nn.Parameter]]) -> List[Tuple[str, torch.nn.Parameter]]:
    """Those that are looked at: the smallest."""
    return sorted(parameters, key=lambda known: known[1].numel())[:_WATCHED]


def _is_added_up(parameter: torch.nn.Parameter) -> bool:
    """Whether the pass that runs adds its gradient to what the parameter has."""
    if _edge_of is None or _will_run is None:
        return True
    try:
        return _will_run(_edge_of(parameter).node)
    except RuntimeError:  # it asks for the gradient itself, as torch.autograd.grad does
        return False


class KeptGradientTap:
    """Called with the gradient of a pass, before that is added to what the parameter has."""

    __slots__ = ("_hook", "_parameter", "_name", "_step")

    def __init__(self, hook, name: str, parameter: torch.nn.Parameter):
        self._hook = weakref.ref(hook)
        self._parameter = weakref.ref(parameter)
        self._name = PREFIX + name
        self._step = -1  # the last one that was told of

    def __call__(self, _gradient) -> None:
        hook, parameter = self._hook(), self._parameter()
        if hook is None or parameter is None:
            return
        try:
            if hook._is_passive() or hook.step == self._step or not hook._is_step_due():
                return
            if not _is_added_up(parameter):
                return
            self._step = hook.step
            kept = parameter.grad
            if kept is not None:
                kept = kept.detach()
                kept = (kept._values() if kept.is_sparse else kept).abs().amax() if kept.numel() else None
            save = functools.partial(hook._engine_hook.save_scalar, self._name)
            hook._use_number(0.0 if kept is None else kept, save)
        except Exception as error:
            hook._note_failure("what is left of gradients", error)
