"""Every line of the documents that begins with ``tornasole run`` runs as printed, and leaves a run that opens."""

import os
import pathlib
import re
import shlex
import subprocess
import sys

import pytest
import tornasole

from tornasole.trials import create_trial

pytest.importorskip("torch")

ROOT = pathlib.Path(__file__).resolve().parents[3]
PACKAGE = os.path.dirname(os.path.dirname(os.path.abspath(tornasole.__file__)))
TRAINING = """\
import argparse
import torch

parser = argparse.ArgumentParser()
parser.add_argument("--epochs", type=int, default=2)
epochs = parser.parse_args().epochs
torch.manual_seed(0)
model, criterion = torch.nn.Linear(3, 1), torch.nn.MSELoss()
optimizer = torch.optim.SGD(model.parameters(), lr=0.1)
for epoch in range(epochs):
    optimizer.zero_grad()
    criterion(model(torch.ones(4, 3)), torch.zeros(4, 1)).backward()
    optimizer.step()
print("epochs", epochs)
"""


def documented_runs():
    for page in [ROOT / "README.md", *sorted((ROOT / "docs").rglob("*.md"))]:
        for block in re.findall(r"^```\w*\n(.*?)^```$", page.read_text(), re.DOTALL | re.MULTILINE):
            for line in re.findall(r"^tornasole (run .*)$", block, re.MULTILINE):
                yield pytest.param(shlex.split(line, comments=True), id=f"{page.name}: {line.split('#')[0].strip()}")


RUNS = list(documented_runs())


def test_the_documents_show_how_to_run_a_script():
    assert len(RUNS) >= 3


@pytest.mark.parametrize("words", RUNS)
def test_the_command_runs_as_printed(words, tmp_path):
    (tmp_path / "package").mkdir()
    for path in (tmp_path / "train.py", tmp_path / "package" / "train.py"):
        path.write_text(TRAINING)
    environment = {key: value for key, value in os.environ.items() if not key.startswith(("TORNASOLE_", "SMDEBUG_"))}
    environment.update({"PYTHONPATH": PACKAGE, "OMP_NUM_THREADS": "1", "TORNASOLE_CLOSE_WAIT_S": "120"})
    done = subprocess.run(
        [sys.executable, "-m", "tornasole", *words],
        cwd=tmp_path,
        env=environment,
        capture_output=True,
        text=True,
        timeout=300,
        check=False,
    )
    assert done.returncode == 0, done.stderr
    assert done.stdout == f"epochs {words[words.index('--epochs') + 1] if '--epochs' in words else 2}\n"
    marks = list(tmp_path.rglob("training_job_end.ts"))
    assert len(marks) == 1, done.stderr
    if "--out" in words:
        assert marks[0].parent == tmp_path / words[words.index("--out") + 1]
    trial = create_trial(str(marks[0].parent), timeout=0)
    assert trial.steps() and any("weight" in name for name in trial.tensor_names())
