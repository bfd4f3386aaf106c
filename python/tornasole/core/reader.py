"""FileReader: the tensors in one event file, without a trial around it."""

from __future__ import annotations

import re
from collections.abc import Iterator

from tornasole.exceptions import SMDebugNotImplementedError, SMDebugTypeError
from tornasole.core.tfevent.event_file_reader import EventFileReader


class FileReader:
    """Reads an event file.

    ``check`` in its methods is accepted; every checksum that a file has is always looked at.
    """

    def __init__(self, fname: str, wtype: str = "tfevent") -> None:
        if wtype != "tfevent":
            raise SMDebugNotImplementedError(f"a file of type {wtype!r} cannot be read; 'tfevent' can")
        self._reader = EventFileReader(fname=fname)

    def __enter__(self) -> FileReader:
        return self

    def __exit__(self, *exception) -> None:
        pass

    def read_tensors(self, check="minimal", read_data: bool = True) -> Iterator[tuple]:
        """``(name, global step, value, mode, step of the mode)`` of each tensor, in the order of the file."""
        return self._reader.read_tensors(check=check)

    def read_events(self, check="minimal", regex_list: list[str] | None = None) -> list[dict]:
        """A dict with ``timestamp``, ``step``, ``name`` and ``value`` for each tensor.

        With ``regex_list`` of those in whose name one of the patterns is found.
        """
        if regex_list is not None and not isinstance(regex_list, list):
            raise SMDebugTypeError(f"regex_list is a list of patterns, not {regex_list!r}")
        patterns = None if regex_list is None else [re.compile(pattern) for pattern in regex_list]
        return [
            {"timestamp": wall_time, "step": step, "name": name, "value": value}
            for name, step, value, _, _, wall_time in self._reader.read_all()
            if patterns is None or any(pattern.search(name) for pattern in patterns)
        ]
