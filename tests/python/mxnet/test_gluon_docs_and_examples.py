"""The page about MXNet runs as printed, and so does the example."""

import os
import pathlib
import subprocess
import sys

import pytest
from trial_dump import TrialDump

import tornasole

ROOT = pathlib.Path(__file__).resolve().parents[3]
sys.path.insert(0, str(ROOT / "tests" / "python" / "core"))
from test_docs_snippets import pages  # noqa: E402
from test_docs_snippets import test_snippets_of_a_page_run_as_printed as run_page  # noqa: E402

PACKAGE = os.path.dirname(os.path.dirname(os.path.abspath(tornasole.__file__)))


@pytest.mark.parametrize("snippets", list(pages(of="mxnet")))
def test_the_page_runs_as_printed(snippets, tmp_path):
    run_page(snippets, tmp_path)


def test_there_is_a_page():
    assert list(pages(of="mxnet"))


def test_the_example(tmp_path):
    example = ROOT / "examples" / "python" / "gluon_mlp.py"
    command = [sys.executable, str(example), str(tmp_path / "run")]
    environment = {**os.environ, "PYTHONPATH": PACKAGE}
    ran = subprocess.run(command, env=environment, capture_output=True, text=True, timeout=300, check=False)
    assert ran.returncode == 0, ran.stderr
    assert "the last loss is" in ran.stdout
    trial = TrialDump(tmp_path / "run")
    assert {"dense0_weight", "gradient/dense1_bias", "softmaxcrossentropyloss0_output_0"} <= set(trial.names)
    assert trial.steps["TRAIN"] == [0, 10, 20, 30, 40]
