"""What `tornasole check` says of Keras trainings under `tornasole run` with its default preset."""

import json
import pathlib
import subprocess
import sys

import pytest
from keras_trainings import TRAININGS


@pytest.mark.parametrize("name, expected", TRAININGS.items(), ids=list(TRAININGS))
def test_what_check_says_of_a_training(name, expected, tmp_path):
    script = pathlib.Path(__file__).with_name("keras_trainings.py")
    command = [sys.executable, "-m", "tornasole"]
    ran = subprocess.run(
        [*command, "run", "--out", tmp_path / "run", script, name], capture_output=True, text=True, timeout=300
    )
    assert ran.returncode == 0, ran.stderr
    checked = subprocess.run([*command, "check", tmp_path / "run", "--json"], capture_output=True, text=True, timeout=60)
    report = json.loads(checked.stdout)
    verdicts = [verdict for verdict in report["verdicts"] if verdict["severity"] != "info"]
    causes = {verdict["rule"] for verdict in verdicts if verdict["symptom_of"] is None}
    assert expected in causes if expected else not verdicts, report
