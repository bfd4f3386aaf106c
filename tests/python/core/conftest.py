"""What the tests of the hook share: a hook with PyTorch's collections but without PyTorch, and a clean process."""

import json
import logging
import os
import pathlib

import pytest
from plain_hook import PlainHook

from tornasole.core import singleton_utils
from tornasole.core.guard import guard
from tornasole.core.logger import get_logger

# A busy disk takes what is queued in its own time: a test that writes a run wants all of it.
os.environ.setdefault("TORNASOLE_CLOSE_WAIT_S", "120")


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
