"""What the tests of the hook share: a hook with PyTorch's collections but without PyTorch, and a clean process."""

import json
import logging
import os
import pathlib

import numpy
import pytest

from tornasole.core import singleton_utils
from tornasole.core.guard import guard
from tornasole.core.hook import BaseHook
from tornasole.core.logger import get_logger

# A busy disk takes what is queued in its own time: a test that writes a run wants all of it.
os.environ.setdefault("TORNASOLE_CLOSE_WAIT_S", "120")


class PlainHook(BaseHook):
    """Begins and ends steps as the test says."""

    _framework = "pytorch"

    def run(self, steps, values=None, mode=None):
        """So many steps, each with the same values; the numbers of those in which something was due."""
        due = []
        for _ in range(steps):
            if self._begin_step(mode):
                due.append(self.mode_steps[self.mode])
                for name, value in (values or {}).items():
                    self._engine_hook.save(name, numpy.asarray(value))
            self._end_step()
        return due


@pytest.fixture(autouse=True)
def clean_process():
    """No hook, no shut-down, and no pending collections from another test."""
    yield
    hook = singleton_utils.current_hook()
    if hook is not None:
        hook.close()
    singleton_utils.del_hook()
    guard.hook = None
    guard.disable_smdebug = False


@pytest.fixture
def hook_class():
    """The class, for tests that build their own."""
    return PlainHook


@pytest.fixture
def saved_names():
    """What a directory holds: step -> names, from its index files."""

    def read(out_dir):
        steps = {}
        for path in sorted(pathlib.Path(out_dir).glob("index/*/*.json")):
            content = json.loads(path.read_text())
            steps[int(path.name.split("_")[0])] = {entry["tensorname"] for entry in content["tensor_payload"]}
        return steps

    return read


@pytest.fixture
def log_lines():
    """The messages that the package logs during the test."""
    lines = []

    class Keep(logging.Handler):
        def emit(self, record):
            lines.append((record.levelname, record.getMessage()))

    logger, handler = get_logger(), Keep()
    filters, logger.filters = logger.filters, []
    logger.addHandler(handler)
    yield lines
    logger.removeHandler(handler)
    logger.filters = filters
