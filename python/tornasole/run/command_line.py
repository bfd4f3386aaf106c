"""The command ``tornasole run``."""

import argparse
import os
import shutil
import sys
import time
from typing import Dict, List, Tuple

from tornasole.run import CONFIG_VARIABLES, OUT_VARIABLE, PRESET_VARIABLE, PRESETS

_EPILOG = """\
The program is a script (train.py), a module (-m package), or any other command that starts Python (torchrun ...).
Everything after it is handed to it unchanged. Without --config and --preset, the preset is 'standard'.

presets:
  light     losses at every step, learning rates at every step of the optimizer
  standard  besides, statistics of weights, gradients and activations at steps chosen so that they cost about 3 % of
            the time; after the first NaN or infinity, everything for two steps
  full      everything: all tensors whole, at every hundredth step and the first ten
"""


def _parser() -> argparse.ArgumentParser:
    parser = argparse.ArgumentParser(
        prog="tornasole run",
        usage="tornasole run [--out DIR] [--config FILE | --preset NAME] [-m] PROGRAM [ARGUMENT ...]",
        description="Runs a training program and captures it, without a change to the program.",
        epilog=_EPILOG,
        formatter_class=argparse.RawDescriptionHelpFormatter,
        allow_abbrev=False,
    )
    parser.add_argument("--out", metavar="DIR", help="where the trial goes (runs/<program>-<time>)")
    what = parser.add_mutually_exclusive_group()
    what.add_argument("--config", metavar="FILE", help="a hook configuration in JSON")
    what.add_argument("--preset", choices=PRESETS, help="a ready-made configuration")
    parser.add_argument("-m", dest="is_module", action="store_true", help="PROGRAM is a module, as with python -m")
    parser.add_argument("program", metavar="PROGRAM", nargs=argparse.REMAINDER)
    return parser


def default_out_dir(program: str, now: float) -> str:
    """A directory of its own for each run: runs/train-20260131-235959."""
    stem = os.path.splitext(os.path.basename(program.rstrip("/")))[0] or "run"
    stamp = time.strftime("%Y%m%d-%H%M%S", time.localtime(now))
    directory = os.path.join("runs", f"{stem}-{stamp}")
    taken = 1
    while os.path.exists(directory):
        taken += 1
        directory = os.path.join("runs", f"{stem}-{stamp}-{taken}")
    return directory


def plan_run(arguments: List[str], environment: Dict[str, str], now: float) -> Tuple[List[str], Dict[str, str], str]:
    """(command, environment, directory of the trial) of a run. Exits with status 2 for bad use."""
    parser = _parser()
    options = parser.parse_args(arguments)
    program = options.program
    if program and program[0] == "--":
        program = program[1:]
    if not program:
        parser.error("a program to run is missing: tornasole run train.py")
    if options.config is not None and not os.path.isfile(options.config):
        parser.error(f"the configuration {options.config} is not a file")
    environment = dict(environment)
    for name in (OUT_VARIABLE, PRESET_VARIABLE):
        environment.pop(name, None)
    out = options.out
    if options.config is not None:
        for name in CONFIG_VARIABLES:
            environment.pop(name, None)
        environment[CONFIG_VARIABLES[0]] = os.path.abspath(options.config)
    else:
        environment[PRESET_VARIABLE] = options.preset or "standard"
        out = out or default_out_dir(program[0], now)
    if out is not None:
        environment[OUT_VARIABLE] = out if "://" in out else os.path.abspath(os.path.expanduser(out))
    startup = os.path.join(os.path.dirname(os.path.abspath(__file__)), "startup")
    paths = [path for path in environment.get("PYTHONPATH", "").split(os.pathsep) if path and path != startup]
    environment["PYTHONPATH"] = os.pathsep.join([startup, *paths])
    return _command(parser, options.is_module, program), environment, out or ""


def _command(parser: argparse.ArgumentParser, is_module: bool, program: List[str]) -> List[str]:
    if is_module:
        return [sys.executable, "-m", *program]
    if program[0].endswith((".py", ".pyc", ".pyw")) or os.path.isdir(program[0]):
        if not os.path.exists(program[0]):
            parser.error(f"there is no {program[0]}")
        return [sys.executable, *program]
    found = shutil.which(program[0])
    if found is None:
        if os.path.isfile(program[0]):
            return [sys.executable, *program]
        parser.error(f"{program[0]} is neither a script nor a command on the PATH")
    return [found, *program[1:]]


def main(arguments: List[str]) -> int:
    """Replaces this process by the program, so that signals and the exit status are the program's own."""
    command, environment, _ = plan_run(arguments, dict(os.environ), time.time())
    sys.stdout.flush()
    sys.stderr.flush()
    try:
        os.execve(command[0], command, environment)
    except OSError as error:
        print(f"tornasole run: {command[0]} could not be started: {error.strerror}", file=sys.stderr)
        return 126
