"""Files that appear whole: written under a temporary name and renamed when they are closed."""

from __future__ import annotations

import os

from tornasole.core.utils import ensure_dir

SMDEBUG_TEMP_PATH_SUFFIX = ".tmp"
WRITE_MODES = ["w", "w+", "wb", "wb+", "a", "a+", "ab", "ab+"]


def get_temp_path(file_path: str) -> str:
    """The name a file has until it is complete."""
    return file_path + SMDEBUG_TEMP_PATH_SUFFIX


class TSAccessFile:
    """A file opened for writing, which gets its name when it is closed, or for reading."""

    def __init__(self, path: str, mode: str) -> None:
        self.path = path
        self.mode = mode
        ensure_dir(path)
        self.temp_path = get_temp_path(path) if mode in WRITE_MODES else path
        self._file = open(self.temp_path, mode)

    def write(self, _str) -> tuple[int, int]:
        """Appends, and returns where that begins and how long it is."""
        start = self._file.tell()
        return start, self._file.write(_str)

    def read(self, n: int = -1):
        """The next ``n`` characters or bytes."""
        return self._file.read(n)

    def flush(self) -> None:
        """Hands what was written to the system."""
        self._file.flush()

    def close(self) -> None:
        """Closes the file; one that was written gets its name now."""
        if self._file.closed:
            return
        self._file.close()
        if self.temp_path != self.path:
            os.replace(self.temp_path, self.path)

    def __enter__(self) -> TSAccessFile:
        return self

    def __exit__(self, *error) -> None:
        self.close()
