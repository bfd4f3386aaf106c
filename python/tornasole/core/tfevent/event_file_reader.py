"""EventFileReader: the tensors in one event file."""

from __future__ import annotations

from collections.abc import Iterator

from tornasole import _engine
from tornasole.core.access_layer.whole_files import read_whole
from tornasole.exceptions import SMDebugValueError
from tornasole.modes import ModeKeys


class EventFileReader:
    """Reads an event file, once for every question."""

    def __init__(self, fname: str) -> None:
        self._filename = fname

    def read_all(self) -> list[tuple]:
        """``(name, global step, value, mode's number, step of the mode, wall time)`` of each tensor."""
        try:
            content = read_whole(self._filename)
        except OSError as error:
            raise SMDebugValueError(f"{self._filename} cannot be read: {error}") from error
        return _engine.decode_events(content)

    def read_tensors(self, check="minimal") -> Iterator[tuple]:
        """``(name, global step, value, mode, step of the mode)`` of each tensor, in the order of the file."""
        for name, step, value, mode, mode_step, _ in self.read_all():
            yield name, step, value, ModeKeys(mode), mode_step
