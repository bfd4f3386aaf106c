import os
import subprocess
import sys

import pytest

import tornasole

PACKAGE = os.path.dirname(os.path.dirname(os.path.abspath(tornasole.__file__)))


@pytest.fixture
def run_program(tmp_path):
    """Runs a program text, plainly or under ``tornasole run``; both from a directory of their own."""

    def run(text, *arguments, under=None, name="train.py", environment=None, timeout=300):
        script = tmp_path / name
        script.write_text(text)
        command = [sys.executable, *([] if under is None else ["-m", "tornasole", "run", *under]), str(script)]
        clean = {key: value for key, value in os.environ.items() if not key.startswith(("TORNASOLE_", "SMDEBUG_"))}
        clean.update({"PYTHONPATH": PACKAGE, "OMP_NUM_THREADS": "1", "TORNASOLE_LOG_LEVEL": "warning"})
        clean["TORNASOLE_CLOSE_WAIT_S"] = "120"  # a busy disk takes what is queued in its own time
        clean.update(environment or {})
        command += arguments
        return subprocess.run(
            command, cwd=tmp_path, env=clean, capture_output=True, text=True, timeout=timeout, check=False
        )

    return run
