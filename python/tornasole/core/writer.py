"""One step of one worker, written by hand: for programs that make trials, and for tests of what reads them."""

from __future__ import annotations

import os
from collections.abc import Iterable
from typing import Any

from tornasole import _engine
from tornasole.core.query_arguments import tensor_name
from tornasole.core.utils import make_numpy_array
from tornasole.exceptions import SMDebugRuntimeError, SMDebugValueError
from tornasole.modes import ModeKeys


class FileWriter:
    """Writes the event and the index file of one step. They appear when it is closed, or with the end of its ``with``.

    All tensors of a step belong to one mode and mode step: those of the first one written. A step that was written by
    hand before is replaced; one of a run, which a hook wrote or which has ended, is not: that is an error.
    """

    def __init__(
        self,
        trial_dir,
        worker="worker_0",
        step=0,
        wtype="events",
        mode=ModeKeys.GLOBAL,
        max_queue=10,
        flush_secs=120,
        verbose=False,
        write_checksum=False,
    ) -> None:
        if wtype != "events":
            raise SMDebugValueError(f"wtype: {wtype!r} is not allowed; allowed: 'events'")
        self.trial_dir = os.fspath(trial_dir)
        self.worker = worker
        self.step = step
        self.mode = mode
        self._writer = None
        self._path: str | None = None

    def _open(self, mode: ModeKeys | None, mode_step: int | None):
        mode = ModeKeys.GLOBAL if mode is None else mode
        if not isinstance(mode, ModeKeys):
            raise SMDebugValueError(f"{mode!r} is not a mode; allowed: members of ModeKeys")
        if self._writer is None:
            if self._path is not None:
                raise SMDebugRuntimeError(f"{self._path}: the step is closed")
            place = (mode.value, self.step if mode_step is None else mode_step)
            self._writer = _engine.StepWriter.open(self.trial_dir, self.step, self.worker, *place, replace=True)
            self._path = self._writer.path
        return self._writer

    def write_tensor(
        self,
        tdata: Any,
        tname: str,
        write_index: bool = True,
        mode: ModeKeys | None = ModeKeys.GLOBAL,
        mode_step: int | None = None,
        timestamp: float | None = None,
    ) -> None:
        """Writes a value: an array, a tensor of whatever type of elements, or what can be made an array."""
        is_tensor = hasattr(tdata, "detach")  # NumPy has not all of its types of elements
        value = tdata.detach().cpu() if is_tensor else make_numpy_array(tdata)
        self._open(mode, mode_step).write(tensor_name(tname), value, timestamp)

    def write_shape(
        self,
        name: str,
        shape: Iterable[int],
        mode: ModeKeys | None = ModeKeys.GLOBAL,
        mode_step: int | None = None,
        original_name: str | None = None,
    ) -> None:
        """Records the shape of a tensor without its elements."""
        self._open(mode, mode_step).write_shape(tensor_name(name), list(shape))

    def name(self) -> str:
        """The path of the event file; an error before anything was written."""
        if self._path is None:
            raise SMDebugRuntimeError("the file has no name before something is written to it")
        return self._path

    def flush(self) -> None:
        """Nothing: a step appears whole, when it is closed."""

    def close(self) -> None:
        """Publishes the step."""
        if self._writer is not None:
            self._writer.close()
            self._writer = None

    def __enter__(self) -> FileWriter:
        return self

    def __exit__(self, *error) -> None:
        self.close()
