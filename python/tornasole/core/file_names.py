"""The names of the files in a trial, and what they say: steps, workers, folders."""

from __future__ import annotations

import os
import re

from tornasole.exceptions import IndexReaderException

_WORKER_FILE = re.compile(r"(?P<step>\d+)_(?P<worker>.+)\.(json|csv|tfevents)")
_COLLECTIONS_FILE = re.compile(r"(?P<worker>.+)_collections\.json(\.ts)?")


def serialize_tf_device(device: str) -> str:
    """The name of a device as it can stand in a file's name."""
    return device.replace("/", "_").replace(":", "-")


def deserialize_tf_device(device_name: str) -> str:
    """The name of a device from its form in a file's name."""
    return device_name.replace("_", "/").replace("-", ":")


def _worker_name(in_file_name: str) -> str:
    # Only devices begin so: their names begin with a slash.
    return deserialize_tf_device(in_file_name) if in_file_name.startswith("_") else in_file_name


def parse_worker_name_from_file(filename: str) -> str:
    """The worker that wrote an index or event file: ``…/000000001230_worker_2.json`` is of ``worker_2``."""
    found = _WORKER_FILE.fullmatch(os.path.basename(filename))
    if found is None:
        raise IndexReaderException(f"{filename}: the name has no step and worker")
    return _worker_name(found["worker"])


def get_worker_name_from_collection_file(filename: str) -> str:
    """The worker that wrote a collections file: ``…/worker_0_collections.json`` is of ``worker_0``."""
    found = _COLLECTIONS_FILE.fullmatch(os.path.basename(filename))
    if found is None:
        raise IndexReaderException(f"{filename}: the name is not that of a collections file")
    return _worker_name(found["worker"])


def get_path_to_collections(directory: str) -> str:
    """The folder of a trial that holds its collections files."""
    return os.path.join(directory, "collections", "000000000", "")


def get_path_to_events_directory(path: str) -> str:
    """The folder of a trial that holds its values."""
    return os.path.join(path, "events", "")


def list_files_in_directory(directory: str, file_regex: str | re.Pattern | None = None) -> list[str]:
    """The files in a folder and below; with a pattern those whose name begins with a match of it."""
    pattern = None if file_regex is None else re.compile(file_regex)
    return [
        os.path.join(folder, name)
        for folder, _, names in os.walk(directory)
        for name in names
        if pattern is None or pattern.match(name)
    ]


def list_collection_files_in_directory(directory: str) -> list[str]:
    """The collections files in a folder and below."""
    return list_files_in_directory(directory, file_regex=r".+_collections\.json$")


def step_in_range(range_steps: tuple[int | None, int | None], step: int) -> bool:
    """Whether ``begin <= step < end``; a bound that is None is open."""
    begin, end = range_steps
    return (begin is None or int(begin) <= int(step)) and (end is None or int(step) < int(end))
