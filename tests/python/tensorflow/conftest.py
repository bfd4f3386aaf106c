"""What the tests of the TensorFlow hooks share: a clean process, and what a directory holds."""

import json
import os
import pathlib
import sys

import pytest

os.environ.setdefault("TF_CPP_MIN_LOG_LEVEL", "3")
# A busy disk takes what is queued in its own time: a test that writes a run wants all of it.
os.environ.setdefault("TORNASOLE_CLOSE_WAIT_S", "120")
os.environ.setdefault("SMDEBUG_TRAINING_END_DELAY_REFRESH", "0")

import tensorflow as tf  # noqa: E402

from tornasole.core import singleton_utils  # noqa: E402
from tornasole.core.guard import guard  # noqa: E402

sys.path.insert(0, str(pathlib.Path(__file__).resolve().parents[3] / "python" / "smdebug_dropin"))


@pytest.fixture(autouse=True)
def fresh_process_state():
    """No test sees the hook, the shut-down guard or the models of another."""
    tf.keras.backend.clear_session()
    singleton_utils.del_hook()
    guard.disable_smdebug = False
    yield
    hook = singleton_utils.current_hook()
    if hook is not None:
        hook.close()
    singleton_utils.del_hook()
    guard.hook = None
    guard.disable_smdebug = False


@pytest.fixture
def saved(tmp_path):
    """What a run in ``<tmp_path>/run`` holds: step -> names, from its index files."""

    def read(directory=tmp_path / "run"):
        steps = {}
        for path in sorted(pathlib.Path(directory).glob("index/*/*.json")):
            content = json.loads(path.read_text())
            names = {entry["tensorname"] for entry in content["tensor_payload"]}
            steps.setdefault(int(path.name.split("_")[0]), set()).update(names)
        return steps

    return read
