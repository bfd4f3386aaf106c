"""The examples run and leave a trial that holds what they say."""

import os
import subprocess
import sys

import pytest
from trial_dump import TrialDump

import tornasole

EXAMPLES = os.path.join(os.path.dirname(__file__), "..", "..", "..", "examples", "python")
ROWS = [
    (
        "torch_mlp.py",
        ["{python}", "{example}", "{out}"],
        ["Sequential_0.weight", "gradient/Sequential_2.bias", "scalar/accuracy"],
    ),
    (
        "torch_cnn.py",
        ["{python}", "{example}", "{out}"],
        ["gradient/Net_conv1.weight", "conv1_output_0", "nll_loss_output_0"],
    ),
    (
        "torch_transformer.py",
        ["{python}", "-m", "tornasole", "run", "--out", "{out}", "{example}", "--steps", "5"],
        ["Transformer_head.weight", "gradient/Transformer_head.bias", "cross_entropy_output_0", "scalar/grad_norm"],
    ),
]


@pytest.mark.parametrize("example, command, names", ROWS, ids=[row[0] for row in ROWS])
def test_example(example, command, names, tmp_path):
    places = {"python": sys.executable, "example": os.path.join(EXAMPLES, example), "out": str(tmp_path / "run")}
    package = os.path.dirname(os.path.dirname(os.path.abspath(tornasole.__file__)))
    ran = subprocess.run(
        [part.format(**places) for part in command],
        env={**os.environ, "PYTHONPATH": package, "OMP_NUM_THREADS": "1"},
        capture_output=True,
        text=True,
        timeout=300,
        check=False,
    )
    assert ran.returncode == 0, ran.stderr
    assert "the last loss is" in ran.stdout
    assert set(names) <= set(TrialDump(tmp_path / "run").names)
