"""TensorReader: the tensors in bytes of an event file."""

from __future__ import annotations

from collections.abc import Iterator

from tornasole import _engine
from tornasole.modes import ModeKeys


class TensorReader:
    """Reads tensors from whole records."""

    def __init__(self, data: bytes) -> None:
        self.data = data

    def read_tensors(self, check="minimal") -> Iterator[tuple]:
        """``(name, global step, value, mode, step of the mode)`` of each tensor."""
        for name, step, value, mode, mode_step, _ in _engine.decode_events(bytes(self.data)):
            yield name, step, value, ModeKeys(mode), mode_step
