"""Where the files of a trial lie.

    <trial>/events/000000000010/000000000010_worker_0.tfevents       the values of step 10
    <trial>/index/000000000/000000000010_worker_0.json               where each of them lies
    <tensorboard folder>/TRAIN/000000000010_worker_0.tfevents        summaries for TensorBoard
"""

from __future__ import annotations

import os
import re
from abc import ABC, abstractmethod

STEP_NUMBER_FORMATTING_LENGTH = "012"

_EVENT_FILE = re.compile(r"(\d+)_(.+)\.tfevents")


class TensorLocation:
    """The place of one value in an event file."""

    def __init__(self, tname, mode, mode_step, event_file_name, start_idx, length, worker) -> None:
        self.tensorname = tname
        self.mode = mode
        self.mode_step = int(mode_step)
        self.event_file_name = event_file_name
        self.start_idx = start_idx
        self.length = length
        self.worker = worker

    def to_dict(self) -> dict:
        """As an index file has it."""
        return {"tensorname": self.tensorname, "start_idx": self.start_idx, "length": self.length}


class TensorShape:
    """The shape of one value, saved beside it or instead of it."""

    def __init__(self, name, mode, mode_step, shape, original_name=None) -> None:
        self.name = name
        self.original_name = name if original_name is None else original_name
        self.mode = mode
        self.mode_step = mode_step
        self.shape = tuple(shape)

    def to_dict(self) -> dict:
        """As an index file has it."""
        return {"tensorname": self.name, "originalname": self.original_name, "shape": self.shape}


class EventFileLocation(ABC):
    """An event file of one step and worker."""

    type: str | None = None

    def __init__(self, step_num, worker_name) -> None:
        self.step_num = int(step_num)
        self.worker_name = worker_name

    def get_step_num_str(self) -> str:
        """The step as it stands in names: twelve digits."""
        return format(self.step_num, STEP_NUMBER_FORMATTING_LENGTH)

    def get_filename(self) -> str:
        """The name of the file, without its folder."""
        return f"{self.get_step_num_str()}_{self.worker_name}.tfevents"

    @classmethod
    def load_filename(cls, s: str, print_error: bool = True):
        """The location that a file's name tells; None if it is not the name of an event file."""
        found = _EVENT_FILE.fullmatch(os.path.basename(s))
        return None if found is None else cls(step_num=int(found[1]), worker_name=found[2])

    @classmethod
    def match_regex(cls, s: str):
        """The same as :meth:`load_filename`."""
        return cls.load_filename(s, print_error=False)

    @abstractmethod
    def get_file_location(self):
        """The path of the file."""


class TensorFileLocation(EventFileLocation):
    """The event file with the values of one step and worker."""

    type = "events"

    @staticmethod
    def get_dir(trial_dir: str) -> str:
        """The folder of all event files of a trial."""
        return os.path.join(trial_dir, "events")

    def get_file_location(self, trial_dir: str = "") -> str:
        """The path of the file; without a trial relative to it."""
        return os.path.join(self.get_dir(trial_dir), self.get_step_num_str(), self.get_filename())

    @classmethod
    def get_step_dirs(cls, trial_dir: str) -> list[str]:
        """The names of the folders of steps."""
        return [entry.name for entry in os.scandir(cls.get_dir(trial_dir)) if entry.is_dir()]

    @classmethod
    def get_step_dir_path(cls, trial_dir: str, step_num: int) -> str:
        """The folder of one step."""
        return os.path.join(cls.get_dir(trial_dir), format(int(step_num), STEP_NUMBER_FORMATTING_LENGTH))


class TensorboardFileLocation(EventFileLocation):
    """A file for TensorBoard of one worker and mode."""

    type = "tensorboard"

    def __init__(self, step_num, worker_name, mode=None) -> None:
        super().__init__(step_num, worker_name)
        self.mode = mode

    def get_file_location(self, base_dir: str = "") -> str:
        """The path of the file; without a folder for all of them relative to the trial."""
        return os.path.join(base_dir or self.type, self.mode.name, self.get_filename())


class IndexFileLocationUtils:
    """Paths of index files; a thousand steps share a folder."""

    MAX_INDEX_FILE_NUM_IN_INDEX_PREFIX = 1000

    @staticmethod
    def get_index_prefix_for_step(step_num: int) -> str:
        """The folder of a step's index files."""
        return format(step_num // IndexFileLocationUtils.MAX_INDEX_FILE_NUM_IN_INDEX_PREFIX, "09")

    @staticmethod
    def next_index_prefix_for_step(step_num: int) -> str:
        """The folder after that of a step."""
        return format(step_num // IndexFileLocationUtils.MAX_INDEX_FILE_NUM_IN_INDEX_PREFIX + 1, "09")

    @staticmethod
    def get_index_key_for_step(trial_prefix: str, step_num: int, worker_name: str) -> str:
        """The path of the index file of a step and worker."""
        folder = IndexFileLocationUtils.get_index_prefix_for_step(step_num)
        return os.path.join(trial_prefix, "index", folder, f"{step_num:012}_{worker_name}.json")

    @staticmethod
    def parse_step_from_index_file_name(index_file_name: str) -> int:
        """The step that a file's name begins with."""
        return int(os.path.basename(index_file_name).split("_")[0])

    @staticmethod
    def get_index_path(path: str) -> str:
        """The folder of a trial's index."""
        return os.path.join(path, "index")

    @staticmethod
    def get_prefix_from_index_file(index_file: str) -> str:
        """The trial that an index file belongs to: what comes before ``/index/`` in its path."""
        return re.match(r"(.+)/index/.+$", index_file)[1]
