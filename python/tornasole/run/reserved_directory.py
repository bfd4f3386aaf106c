"""A directory that this process has for itself from the moment it chose it.

A hook takes its directory with the first thing it writes. Processes that begin at the same time would choose the same
one, and only the first to write would keep it.
"""

import contextlib
import os
import weakref
from typing import Optional

from tornasole.core.utils import is_s3
from tornasole.exceptions import RunDirectoryOccupied

try:
    import fcntl
except ImportError:  # a system without: whoever writes first has it
    fcntl = None  # type: ignore[assignment]


class Reservation:
    """Lasts until it is released or forgotten, or the process ends, however it does."""

    def __init__(self, descriptor: int, made: Optional[str]):
        self.release = weakref.finalize(self, _let_go, descriptor, made, os.getpid())


def _let_go(descriptor: int, made: Optional[str], owner: int) -> None:
    if made is not None and os.getpid() == owner:  # a forked process has a copy
        with contextlib.suppress(OSError):  # there is something in it
            os.rmdir(made)
    os.close(descriptor)


def reserve(directory: str) -> Optional[Reservation]:
    """Has a directory, made if need be, for this process alone. None if the system has no means to.

    RunDirectoryOccupied if another process, or this one, has it already.
    """
    if fcntl is None or is_s3(directory)[0]:
        return None
    made = None if os.path.isdir(directory) else directory
    try:
        os.makedirs(directory, exist_ok=True)
        descriptor = os.open(directory, os.O_RDONLY | os.O_DIRECTORY)
    except OSError:
        return None  # the hook will say what is wrong
    try:
        fcntl.flock(descriptor, fcntl.LOCK_EX | fcntl.LOCK_NB)
    except OSError as error:
        os.close(descriptor)
        if isinstance(error, BlockingIOError):
            raise RunDirectoryOccupied(f"{directory}: another process is about to write there") from None
        return None  # not in every file system
    return Reservation(descriptor, made)
