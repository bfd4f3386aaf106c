"""Index files of a trial, for those who look at them without one. A trial itself reads them in the engine."""

from __future__ import annotations

from bisect import bisect_left

from tornasole.core.file_names import get_path_to_events_directory, list_files_in_directory
from tornasole.core.locations import IndexFileLocationUtils, TensorLocation
from tornasole.core.s3_utils import list_s3_objects
from tornasole.core.tfrecord.tensor_reader import TensorReader
from tornasole.exceptions import TensorUnavailableForStep


class ReadIndexFilesCache:
    """The names of index files that were read.

    Past ``cache_limit`` names, those before the key from which on files are still listed are forgotten first.
    """

    def __init__(self) -> None:
        self.lookup_set: set[str] = set()
        self.cache_limit = 1000

    def has_not_read(self, index_file: str) -> bool:
        """Whether the file is not among them."""
        return index_file not in self.lookup_set

    def add(self, index_file: str, start_after_key: str | None) -> None:
        """Notes a file; ``start_after_key`` is the key from which on files are still listed."""
        if len(self.lookup_set) > self.cache_limit and start_after_key is not None:
            self.lookup_set = {name for name in self.lookup_set if name >= start_after_key}
        self.lookup_set.add(index_file)


class LocalIndexReader:
    """Lists the files of a trial in a directory, and reads single values from their place."""

    def __init__(self, path: str) -> None:
        self.path = path

    def list_index_files(self) -> list[str]:
        """The index files, in the order of their steps."""
        folder = IndexFileLocationUtils.get_index_path(self.path)
        return sorted(list_files_in_directory(folder, file_regex=r".+\.(json|csv)$"))

    def list_event_files(self, start_after_key: str | None = None) -> list[str]:
        """The event files in the order of their steps, from a path on."""
        folder = get_path_to_events_directory(self.path)
        files = sorted(list_files_in_directory(folder, file_regex=r".+\.tfevents$"))
        return files if start_after_key is None else files[bisect_left(files, start_after_key) :]

    def fetch_tensor_value(self, tensor_location: TensorLocation):
        """The value at a place; :class:`TensorUnavailableForStep` if its file is not there."""
        try:
            with open(tensor_location.event_file_name, "rb") as file:
                file.seek(tensor_location.start_idx)
                record = file.read(tensor_location.length)
        except FileNotFoundError:
            missing = TensorUnavailableForStep(
                tensor_location.tensorname, tensor_location.mode_step, tensor_location.mode
            )
            missing.reason = "missing file"
            raise missing from None
        return next(TensorReader(record).read_tensors())[2]


class S3IndexReader:
    """Lists the files of a trial under ``s3://bucket/prefix``."""

    def __init__(self, path: str) -> None:
        self.path = path
        self.bucket_name, _, self.prefix_name = path.removeprefix("s3://").partition("/")

    def list_index_files(self, start_after_key: str | None = None) -> tuple[list[str], str | None]:
        """The index files, and the last of them."""
        folder = IndexFileLocationUtils.get_index_path(self.prefix_name)
        return list_s3_objects(self.bucket_name, folder, start_after_key)

    def list_event_files(self, start_after_key: str | None = None) -> list[str]:
        """The event files, after a key."""
        folder = get_path_to_events_directory(self.prefix_name)
        return list_s3_objects(self.bucket_name, folder, start_after_key)[0]
