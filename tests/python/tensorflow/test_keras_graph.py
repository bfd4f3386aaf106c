"""Keras 2 with eager execution off: graph names, values fetched in the run of the batch, trainings left as they are."""

import json
import os
import pathlib
import subprocess
import sys

import keras_models
import numpy
import pytest

pytestmark = pytest.mark.skipif(keras_models.IS_KERAS_3, reason="Keras 3 has no sessions")
SCRIPT = pathlib.Path(__file__).with_name("keras_graph_runs.py")

WEIGHTS = ["dense/weights/dense/kernel:0", "last/weights/last/kernel:0"]
BIASES = ["dense/weights/dense/bias:0", "last/weights/last/bias:0"]
SOFTMAX = "last/outputs/last/Softmax:0"
HELD = ["beta_1:0", "beta_2:0", "decay:0", "iter:0", "learning_rate:0"]
LOGS = ["accuracy", "batch", "loss", "size"]


@pytest.fixture(scope="module")
def runs(tmp_path_factory):
    """What each training of the script left."""
    environment = {**os.environ, "TORNASOLE_STRICT": "1", "TORNASOLE_CLOSE_WAIT_S": "120"}
    command = [sys.executable, str(SCRIPT), str(tmp_path_factory.mktemp("runs"))]
    result = subprocess.run(command, env=environment, capture_output=True, text=True, timeout=600)
    assert result.returncode == 0, result.stderr[-3000:]
    return json.loads(result.stdout.splitlines()[-1])


@pytest.mark.parametrize("what", ["all", "generator"])
def test_everything_of_a_batch_under_the_names_of_the_graph(what, runs):
    got = runs[what]
    assert got["weights"] == WEIGHTS and got["errors"] == [] and got["left"] == [0] * len(got["left"])
    assert got["biases"] == BIASES
    assert got["outputs"] == [SOFTMAX]
    assert len(got["gradients"]) == 4 and all("/gradients/" in name for name in got["gradients"])
    assert [name.rpartition("Adam/")[2] for name in got["optimizer_variables"]] == HELD
    assert [name.partition("/outputs/")[0] for name in got["layers"]] == ["dense", "drop", "flat", "last"]
    parts = WEIGHTS + BIASES + got["gradients"] + got["optimizer_variables"] + got["layers"] + LOGS
    assert set(got["names"]) <= set(parts) and set(parts) - set(got["names"]) <= {"size"}
    assert got["steps"] == {"TRAIN": [0, 2, 3], "EVAL": [0, 2], "PREDICT": [0, 2]}


def test_the_training_is_the_same_without_a_hook(runs):
    assert runs["default"]["names"] == LOGS
    assert runs["all"]["final"] == runs["default"]["final"] == runs["none"]["final"]


def test_a_pattern_gives_a_shared_tensor_the_first_name_that_it_matches(runs):
    got = runs["pattern"]
    wanted = {name.rpartition("/")[0] for name in got["names"] if name not in LOGS}
    assert {"dense/inputs/flat", "dense/outputs/dense", "dense/weights/dense"} <= wanted
    assert not any(name.startswith(("flat/", "last/outputs")) for name in got["names"])


@pytest.mark.parametrize("what", ["before", "after"])
def test_another_callback_fetches_too(what, runs):
    got = runs[what]
    assert got["seen"] >= 4 and got["errors"] == [] and got["left"] == [0] * len(got["left"])
    assert SOFTMAX in got["names"]


def test_gradients_of_an_optimizer_of_tensorflow_1(runs):
    assert len(runs["older"]["gradients"]) == 4


@pytest.mark.parametrize("what", ["ends", "ends of data"])
def test_inputs_labels_and_predictions_if_their_collections_are_named(what, runs):
    got = runs[what]
    assert got["inputs"] == ["inputs"] and got["outputs"] == ["labels", "predictions"]
    assert got["steps"] == {"TRAIN": [0, 2, 3], "EVAL": [0, 2], "PREDICT": [0, 2]}
    assert got["errors"] == [] and got["left"] == [0] * len(got["left"])
    assert got["final"] == runs["none"]["final"] or what == "ends of data"
    assert (SOFTMAX in got["layers"]) is (what == "ends of data")
    assert numpy.shape(got["values"]["inputs"]) == (4, 4) and numpy.shape(got["values"]["predictions"]) == (4, 2)


def test_the_inputs_are_those_of_the_batch(runs):
    got = runs["ends"]
    numpy.testing.assert_allclose(got["values"]["inputs"], got["given"][0], rtol=1e-6)
    assert numpy.ravel(got["values"]["labels"]).tolist() == got["given"][1]


def test_a_pattern_for_variables_of_the_optimizer_takes_in_no_gradient(runs):
    got = runs["of optimizer"]
    assert [name.rpartition("Adam/")[2] for name in got["mine"]] == HELD
    assert len(got["gradients"]) == 4


def test_tensors_of_the_graph_that_the_script_adds_to_collections(runs):
    got, relu = runs["added"], "dense/outputs/dense/Relu:0"
    assert got["mine"] == [relu] and got["other"] == [relu, "twice:0"]
    assert got["errors"] == [] and got["final"] == runs["none"]["final"] and got["left"] == runs["none"]["left"]


def test_tensors_of_the_graph_that_the_script_gives(runs):
    got = runs["given"]
    assert got["values"] == {"array": [0, 1, 2], "constant": [1, 2, 3], "variable": [4.0, 5.0]}
    assert got["uncaptured"] == ["random", "unfed"] and got["errors"] == []
    assert got["final"] == runs["none"]["final"]


def test_replicas_are_captured_under_the_names_of_their_own_graphs(runs):
    got = runs["replicas"]
    assert got["workers"] == ["worker_0"] and got["errors"] == got["uncaptured"] == []
    assert got["weights"] == WEIGHTS and got["biases"] == BIASES
    assert [name.rpartition("Adam/")[2] for name in got["optimizer_variables"]] == HELD
    modes, replicas = 3, 2
    assert len(got["gradients"]) == 4 * replicas and len(got["outputs"]) == modes * replicas
    assert len(got["layers"]) == 3 * modes * replicas
    assert sum("/replica_1/" in name for name in got["layers"]) == 3 * modes
    assert got["steps"] == {"TRAIN": [0, 2, 3], "EVAL": [0, 2], "PREDICT": [0, 2]}
    assert got["left"] == [0] * len(got["left"]) and len(got["left"]) >= modes
    assert got["final"] == runs["replicas alone"]["final"]


def test_what_the_first_replica_is_fed_and_predicts(runs):
    got = runs["ends of replicas"]
    assert got["inputs"] == ["inputs"] and got["outputs"] == ["labels", "predictions"] and got["errors"] == []
    numpy.testing.assert_allclose(got["values"]["inputs"], numpy.array(got["given"][0])[:2], rtol=1e-6)
    assert numpy.ravel(got["values"]["labels"]).tolist() == got["given"][1][:2]
    assert numpy.shape(got["values"]["predictions"]) == (2, 2)


def test_calls_of_a_shared_layer_and_of_a_model_inside(runs):
    got = runs["parts"]
    assert got["errors"] == [] and got["final"] == runs["parts alone"]["final"]
    assert sorted(name.partition("/outputs/")[0] for name in got["layers"]) == ["inner", "shared", "shared"]
    assert len(got["outputs"]) == 1 and len(got["gradients"]) == 6
