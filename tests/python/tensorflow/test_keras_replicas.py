"""Keras on several devices: what is inside the step of the first replica, and a training that is left as it is."""

import json
import os
import pathlib
import subprocess
import sys

import numpy
import pytest

SCRIPT = pathlib.Path(__file__).with_name("keras_replica_runs.py")
WAYS = ["compiled", "eager", "built at the first step", "a step of its own"]
IN_FIRST_REPLICA = 4  # of a batch of eight


@pytest.fixture(scope="module")
def runs(tmp_path_factory):
    """What each training of the script left."""
    environment = {**os.environ, "TORNASOLE_STRICT": "1", "TORNASOLE_CLOSE_WAIT_S": "120"}
    command = [sys.executable, str(SCRIPT), str(tmp_path_factory.mktemp("runs"))]
    result = subprocess.run(command, env=environment, capture_output=True, text=True, timeout=600, check=False)
    assert result.returncode == 0, result.stderr[-3000:]
    return json.loads(result.stdout.splitlines()[-1])


@pytest.mark.parametrize("what", WAYS)
def test_the_training_is_the_same_without_a_hook(what, runs):
    assert runs[what]["is_same"] and runs[what]["errors"] == []


@pytest.mark.parametrize("what", WAYS)
def test_everything_is_had_and_one_worker_writes_it(what, runs):
    got = runs[what]
    assert got["uncaptured"] == [] and got["workers"] == ["worker_0"] and got["steps"] == [0, 2, 4, 5]
    names = got["names"]
    trained = len(names["weights"]) + len(names["biases"]) - (2 if what == "compiled" else 0)  # statistics of a layer
    assert len(names["gradients"]) == trained and all(name.startswith("gradients/") for name in names["gradients"])
    assert len(names["optimizer_variables"]) >= 2 * trained
    assert names["inputs"] == ["inputs"] and names["outputs"] == ["labels", "predictions"]
    assert len(names["layers"]) >= 4 and all(name.endswith(("/inputs", "/outputs")) for name in names["layers"])


@pytest.mark.parametrize("what", WAYS)
def test_the_values_are_those_of_the_first_replica(what, runs):
    values, labels = runs["given"]
    got = runs[what]["values"]
    numpy.testing.assert_array_equal(numpy.float32(got["inputs"]), numpy.float32(values[:IN_FIRST_REPLICA]))
    assert numpy.ravel(got["labels"]).tolist() == labels[:IN_FIRST_REPLICA]
    assert all(len(value) == IN_FIRST_REPLICA for value in got.values())
    assert any(got["predictions"] == value for name, value in got.items() if name.endswith("/outputs"))
