"""Tensors of other devices, on their way to the memory of the processor.

A copy is started where the tensor is handed over and runs while the training goes on; its value is given to the engine
when it has come, at the latest when the step ends. What a device can do is the argument ``start``, so the order of
things can be tested without one.
"""

from typing import Any, Callable, List, Tuple

import torch

from tornasole import _engine
from tornasole.pytorch.host_tensors import local_part, to_host

# (tensor in the memory of the processor, whether it has come, wait until it has)
Started = Tuple[torch.Tensor, Callable[[], bool], Callable[[], None]]


def _has_come() -> bool:
    return True


def start_copy(tensor: torch.Tensor) -> Started:
    """Starts the copy of a tensor: into pinned memory on its current stream, where there are streams."""
    tensor = local_part(tensor).detach()
    is_plain = tensor.layout is torch.strided and not tensor.is_quantized and type(tensor) is torch.Tensor
    if tensor.device.type != "cuda" or not is_plain:
        return to_host(tensor), _has_come, lambda: None
    with torch.no_grad(), torch.cuda.device(tensor.device):
        host = torch.empty(tensor.shape, dtype=tensor.dtype, device="cpu", pin_memory=True)
        host.copy_(tensor, non_blocking=True)
        event = torch.cuda.Event()
        event.record()
    return host, event.query, event.synchronize


class HostCopies:
    """The copies under way, in the order in which they were asked for."""

    def __init__(
        self,
        state: _engine.StepState,
        start: Callable[[torch.Tensor], Started] = start_copy,
        max_under_way: int = 256,
    ):
        """``state`` is told how many are under way."""
        self._state = state
        self._start = start
        self._max = max_under_way
        self._under_way: List[Tuple[Callable[[str, Any], None], str, Started]] = []

    @property
    def is_busy(self) -> bool:
        return bool(self._under_way)

    def save(self, save: Callable[[str, Any], None], name: str, tensor: torch.Tensor) -> None:
        """Calls ``save(name, value)`` once the value is here: now, if it is and nothing waits before it."""
        self._under_way.append((save, name, self._start(tensor)))
        self._state.copies = len(self._under_way)
        self._deliver(is_last_chance=False)
        while len(self._under_way) > self._max:
            self._deliver_first()

    def flush(self) -> None:
        """Delivers everything, waiting for what has not come yet."""
        self._deliver(is_last_chance=True)

    def _deliver(self, is_last_chance: bool) -> None:
        while self._under_way and (is_last_chance or self._under_way[0][2][1]()):
            self._deliver_first()
        self._state.copies = len(self._under_way)

    def _deliver_first(self) -> None:
        save, name, (host, _, wait) = self._under_way.pop(0)
        wait()
        save(name, host)
