"""What the tests of Keras on PyTorch share: the backend, and a clean process."""

import os
import pathlib
import subprocess
import sys

import pytest

os.environ["KERAS_BACKEND"] = "torch"
os.environ.setdefault("TF_CPP_MIN_LOG_LEVEL", "3")
# A busy disk takes what is queued in its own time: a test that writes a run wants all of it.
os.environ.setdefault("TORNASOLE_CLOSE_WAIT_S", "120")
os.environ.setdefault("SMDEBUG_TRAINING_END_DELAY_REFRESH", "0")

import tornasole  # noqa: E402
from tornasole.core import singleton_utils  # noqa: E402

PACKAGE = str(pathlib.Path(tornasole.__file__).resolve().parents[1])


@pytest.fixture(autouse=True)
def fresh_process_state():
    """No test sees the hook of another."""
    singleton_utils.del_hook()
    yield
    hook = singleton_utils.current_hook()
    if hook is not None:
        hook.close()
    singleton_utils.del_hook()


@pytest.fixture
def run_program(tmp_path):
    """Runs a program text, plainly or under ``tornasole run``."""

    def run(text, *, under=None):
        script = tmp_path / "train.py"
        script.write_text(text)
        command = [sys.executable, *([] if under is None else ["-m", "tornasole", "run", *under]), str(script)]
        clean = {key: value for key, value in os.environ.items() if not key.startswith(("TORNASOLE_", "SMDEBUG_"))}
        clean.update({"PYTHONPATH": PACKAGE, "OMP_NUM_THREADS": "1", "TORNASOLE_CLOSE_WAIT_S": "120"})
        return subprocess.run(
            command, cwd=tmp_path, env=clean, capture_output=True, text=True, timeout=300, check=False
        )

    return run
