"""The modes, where scripts look for them."""

from tornasole.modes import (
    ALLOWED_MODE_NAMES,
    ALLOWED_MODES,
    MODE_PLUGIN_NAME,
    MODE_STEP_PLUGIN_NAME,
    ModeKeys,
    str_to_mode_keys,
)

__all__ = [
    "ALLOWED_MODES",
    "ALLOWED_MODE_NAMES",
    "MODE_PLUGIN_NAME",
    "MODE_STEP_PLUGIN_NAME",
    "ModeKeys",
    "str_to_mode_keys",
]
