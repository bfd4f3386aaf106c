"""The hook of a program that has none: what the attachments to all frameworks share."""

import json
import logging
import os
import sys
import tempfile
from typing import Any, Callable, Optional, Tuple

from tornasole.core.config_constants import DEFAULT_SAGEMAKER_OUTDIR
from tornasole.exceptions import RunDirectoryOccupied
from tornasole.run import CONFIG_VARIABLES, OUT_VARIABLE, PRESET_VARIABLE, PRESETS, is_wanted
from tornasole.run.program_stderr import LogToProgram, tell
from tornasole.run.reserved_directory import reserve

_MOST_OCCUPIED = 1000
MOST_TRAININGS = 100  # of one program, that have a trial each
# By which launchers tell a process how many there are. One that has not yet asked is no training of its own.
_WORKERS_VARIABLES = ("WORLD_SIZE", "OMPI_COMM_WORLD_SIZE", "PMI_SIZE", "SLURM_NTASKS")


def make_automatic_hook(hook_class, make_preset_hook: Callable[[str, Optional[str]], object], training: int = 1):
    """A hook from the configuration or the preset that the environment names.

    The second ``training`` of a program writes to ``<directory>-2``, and so on. Where another run lives already, of
    another process of the program or of an earlier call of ``tornasole run``, the next number is tried.

    ``make_preset_hook(name, out_dir)`` makes the one of a preset. ValueError for a name that is no preset; RuntimeError
    where another library captures by the same configuration, and for more trainings than have trials; whatever else is
    wrong with one is raised as the hook raises it.
    """
    if training > MOST_TRAININGS:
        raise RuntimeError(f"{MOST_TRAININGS} trainings of this program have trials already")
    out = os.environ.get(OUT_VARIABLE) or None
    preset = os.environ.get(PRESET_VARIABLE)
    if preset and preset not in PRESETS:
        raise ValueError(f"{preset!r} is not a preset; there are {', '.join(PRESETS)}")
    if not preset and not out and _is_configuration_of_another():
        raise RuntimeError(f"the program uses another smdebug, and {CONFIG_VARIABLES[1]} is its configuration")

    is_alone = out is not None and _is_alone(hook_class)

    def make(number: int):
        ending = "" if number == 1 else f"-{number}"
        reservation = reserve(out + ending) if is_alone else None
        hook = make_preset_hook(preset, out and out + ending) if preset else _hook_from_file(hook_class, out, ending)
        hook._reservation = reservation
        return hook

    hook, is_first = _first_that_is_free(make, training) if out else (make(training), True)
    hook._is_automatic = True
    _log_to_stderr()
    why = "" if is_first else f", since another run lives in {out}"
    tell(f"tornasole: capturing into {hook.out_dir}{why}")
    return hook


def _is_configuration_of_another() -> bool:
    """Whether the configuration is one that a program's own smdebug, not this one under that name, writes by."""
    module = sys.modules.get("smdebug")
    return not os.environ.get(CONFIG_VARIABLES[0]) and module is not None and not hasattr(module, "_OURS")


def _is_alone(hook_class) -> bool:
    """Whether no other process trains the same model, and would write to the same directory."""
    if any(os.environ.get(name, "1").strip() not in ("", "0", "1") for name in _WORKERS_VARIABLES):
        return False
    return hook_class.__new__(hook_class)._get_worker_rank()[1] == 1


def end_training(hook: Any) -> None:
    """Closes a hook that was made for one training: the next one has its own."""
    from tornasole.core.singleton_utils import current_hook, del_hook

    hook.close()
    if current_hook() is hook:
        del_hook()


def is_to_be_found(hook: Any) -> bool:
    """Whether an attachment has to look for a hook: it has none, or the script gave up the one there was."""
    from tornasole.core.singleton_utils import current_hook

    return hook is None or hook._engine_hook is None or (current_hook() is None and is_wanted())


def _first_that_is_free(make: Callable[[int], object], first: int) -> Tuple[object, bool]:
    """What is made for the first number whose directory no other run lives in, and whether that was ``first``."""
    for number in range(first, first + _MOST_OCCUPIED):
        try:
            return make(number), number == first
        except RunDirectoryOccupied:
            continue
    return make(first + _MOST_OCCUPIED), False


def tell_nothing_is_captured(error: Exception, is_begun: bool = False) -> None:
    """Says why a program runs without capture, or goes on without if that ``is_begun``; the program itself goes on."""
    what = "nothing more" if is_begun else "nothing"
    tell(f"tornasole: {what} will be captured: {type(error).__name__}: {error}")


def _log_to_stderr() -> None:
    """What the program prints is all there is on its standard output."""
    from tornasole.core.logger import get_logger

    for handler in get_logger().handlers:
        if isinstance(handler, logging.StreamHandler) and not isinstance(handler, logging.FileHandler):
            get_logger().removeHandler(handler)
            told = LogToProgram()
            told.setFormatter(logging.Formatter("tornasole: %(levelname)s: %(message)s"))
            told.setLevel(max(handler.level, logging.WARNING))
            get_logger().addHandler(told)


def _hook_from_file(hook_class, out: Optional[str], ending: str):
    """A hook from the configuration file of the environment, writing to ``out`` if that is given."""
    if out is None and not ending:
        return hook_class.create_from_json_file()
    path = next(filter(None, map(os.environ.get, CONFIG_VARIABLES)))
    with open(path, encoding="utf-8-sig") as file:
        settings = json.load(file)
    settings["LocalPath"] = (out or settings.get("LocalPath") or DEFAULT_SAGEMAKER_OUTDIR) + ending
    with tempfile.NamedTemporaryFile("w", suffix=".json", prefix="tornasole-", encoding="utf-8") as file:
        json.dump(settings, file)
        file.flush()
        return hook_class.create_from_json_file(file.name)
