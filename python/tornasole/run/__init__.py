"""Zero script change: ``tornasole run train.py`` captures a training whose script knows nothing of it.

The script runs in a plain interpreter, started with one more directory on ``PYTHONPATH``; ``__main__``, ``sys.argv``,
pickling, child processes, signals and the exit status are those of ``python train.py``. When the script imports a
framework, the hook is attached to it. By environment alone the same happens to any program of an environment tornasole
is installed in, if ``TORNASOLE_CONFIG_FILE_PATH`` or ``SMDEBUG_CONFIG_FILE_PATH`` names a configuration.
"""

import os

# Handed from the command to the program it starts.
OUT_VARIABLE = "TORNASOLE_RUN_OUT"
PRESET_VARIABLE = "TORNASOLE_RUN_PRESET"
CONFIG_VARIABLES = ("TORNASOLE_CONFIG_FILE_PATH", "SMDEBUG_CONFIG_FILE_PATH")
PRESETS = ("light", "standard", "full")


def is_wanted() -> bool:
    """Whether the environment asks for capture: names a configuration or a preset, and ``USE_SMDEBUG`` is not off."""
    switch = os.environ.get("TORNASOLE_USE_SMDEBUG", os.environ.get("USE_SMDEBUG", "true")).strip().lower()
    if switch in ("0", "n", "no", "f", "false", "off"):
        return False
    return any(os.environ.get(name) for name in (PRESET_VARIABLE, *CONFIG_VARIABLES))
