"""What is remembered beside a training's checkpoints, for those who keep such a state without a hook.

A hook does this itself, in the engine: it writes a record whenever the checkpoints changed, and counts on from the
newest when the training goes on.
"""

from __future__ import annotations

import json
import os
from typing import Any

from tornasole import _engine
from tornasole.core.access_layer.file import TSAccessFile
from tornasole.core.config_constants import (
    CHECKPOINT_CONFIG_FILE_PATH_ENV_VAR,
    CHECKPOINT_DIR_KEY,
    DEFAULT_CHECKPOINT_CONFIG_FILE,
    LATEST_GLOBAL_STEP_SEEN,
    METADATA_FILENAME,
)
from tornasole.core.logger import get_logger
from tornasole.exceptions import SMDebugRuntimeError


def _step_seen(state: Any) -> int:
    step = state.get(LATEST_GLOBAL_STEP_SEEN) if isinstance(state, dict) else None
    return step if isinstance(step, int) else -1


class StateStore:
    """The states in the file beside the checkpoints.

    The directory of the checkpoints is the ``LocalPath`` in the JSON file that ``CHECKPOINT_CONFIG_FILE_PATH`` names
    (``/opt/ml/input/config/checkpointconfig.json`` if it is not set). Without one there are no checkpoints to watch.
    """

    def __init__(self) -> None:
        self._saved_states: list[Any] = []
        self._states_file: str | None = None
        self._files = None
        self._checkpoint_dir = self._configured_directory()
        if self._checkpoint_dir is not None:
            self._states_file = os.path.join(self._checkpoint_dir, METADATA_FILENAME)
            self._saved_states = self._read_states()
            self._files = _engine.CheckpointFiles(self._checkpoint_dir)
            self._files.have_changed()  # those there are now are no news
            self._files.accept()

    @staticmethod
    def _configured_directory() -> str | None:
        file_name = os.environ.get(CHECKPOINT_CONFIG_FILE_PATH_ENV_VAR, DEFAULT_CHECKPOINT_CONFIG_FILE)
        if not os.path.exists(file_name):
            return None
        with open(file_name, encoding="utf-8") as file:
            directory = json.load(file).get(CHECKPOINT_DIR_KEY)
        return None if directory is None else os.path.expanduser(directory)

    def _read_states(self) -> list[Any]:
        try:
            with open(self._states_file, encoding="utf-8") as file:
                states = json.load(file)
        except FileNotFoundError:
            return []
        except ValueError as error:
            get_logger().warning("%s is damaged, so there is no earlier state: %s", self._states_file, error)
            return []
        return sorted(states, key=_step_seen) if isinstance(states, list) else []

    def is_checkpoint_updated(self) -> bool:
        """Whether a checkpoint was added, removed, resized or touched since the last time this was true."""
        if self._files is None or not self._files.have_changed():
            return False
        self._files.accept()
        return True

    def get_last_saved_state(self) -> Any:
        """The state with the latest step; None if there is none."""
        return self._saved_states[-1] if self._saved_states else None

    def update_state(self, ts_state: Any) -> None:
        """Appends a state and rewrites the file, which appears whole."""
        if self._states_file is None:
            raise SMDebugRuntimeError(
                f"no directory of checkpoints to keep a state in; name a JSON file with {CHECKPOINT_DIR_KEY} in "
                f"{CHECKPOINT_CONFIG_FILE_PATH_ENV_VAR}"
            )
        self._saved_states.append(ts_state)
        with TSAccessFile(self._states_file, "w") as file:
            file.write(json.dumps(self._saved_states))
