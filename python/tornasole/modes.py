"""The modes of a training program: what it is doing while a step is counted."""

from __future__ import annotations

from enum import Enum

from tornasole.exceptions import SMDebugValueError


class ModeKeys(Enum):
    """What the program is doing. ``GLOBAL`` is the mode before any was set; the numbers are those on disk."""

    TRAIN = 1
    EVAL = 2
    PREDICT = 3
    GLOBAL = 4


ALLOWED_MODES = list(ModeKeys)
ALLOWED_MODE_NAMES = [mode.name for mode in ALLOWED_MODES]
MODE_STEP_PLUGIN_NAME = "mode_step"
MODE_PLUGIN_NAME = "mode"


def str_to_mode_keys(mode_str: str) -> ModeKeys:
    """The mode of a name in any case: ``"train"`` is ``ModeKeys.TRAIN``."""
    mode = ModeKeys.__members__.get(mode_str.upper()) if isinstance(mode_str, str) else None
    if mode is None:
        raise SMDebugValueError(f"{mode_str!r} is not a mode; allowed: {', '.join(ALLOWED_MODE_NAMES)}")
    return mode
