"""TensorBoard and Keras: the graph of a model in our files, and a trial made of the files of Keras's own callback."""

import importlib.util
import json
import subprocess
import sys

import numpy
import pytest
import tensorflow as tf

import tornasole.tensorflow as smd
from tornasole.tensorflow.layer_graph import layer_graph

keras = tf.keras


def branched():
    """A model with a nested one and two branches."""
    parts = [keras.Input((4,)), keras.layers.Dense(3, name="one"), keras.layers.Dense(3, name="two")]
    given = keras.Input((4,), name="given")
    sides = [keras.Sequential(parts, name="inner")(given), keras.layers.Dense(3, name="beside")(given)]
    return keras.Model(given, keras.layers.Dense(2, name="last")(keras.layers.Add(name="sum")(sides)))


EDGES = {
    "given": ("InputLayer", []),
    "inner/one": ("Dense", ["given"]),
    "inner/two": ("Dense", ["inner/one"]),
    "beside": ("Dense", ["given"]),
    "sum": ("Add", ["inner/two", "beside"]),
    "last": ("Dense", ["sum"]),
}


def nodes_of(content):
    graph = tf.compat.v1.GraphDef()
    graph.ParseFromString(content)
    return {node.name: (node.op, list(node.input)) for node in graph.node}


def test_a_graph_has_a_node_for_each_layer():
    assert nodes_of(layer_graph(branched())) == EDGES


def test_a_model_of_ones_own_class_has_its_layers():
    class Own(keras.Model):
        def __init__(self):
            super().__init__()
            self.first = keras.layers.Dense(2, name="first")
            self.name_of_this_layer_is_long = keras.layers.Dense(2, name="x" * 300)

        def call(self, given):
            return self.name_of_this_layer_is_long(self.first(given))

    model = Own()
    model(tf.zeros((1, 2)))
    assert nodes_of(layer_graph(model)) == {"first": ("Dense", []), "x" * 300: ("Dense", [])}


def test_the_graph_is_in_our_files_once(tmp_path):
    model = branched()
    model.compile("sgd", "mse")
    hook = smd.KerasHook(tmp_path / "run", export_tensorboard=True, save_config=smd.SaveConfig(save_interval=1))
    model.fit(numpy.zeros((16, 4)), numpy.zeros((16, 2)), batch_size=4, verbose=0, callbacks=[hook])
    model.evaluate(numpy.zeros((4, 4)), numpy.zeros((4, 2)), verbose=0, callbacks=[hook])
    hook.close()
    files = sorted((tmp_path / "run" / "tensorboard").rglob("*tfevents*"))
    events = [event for path in files for event in tf.compat.v1.train.summary_iterator(str(path))]
    assert [nodes_of(event.graph_def) for event in events if event.graph_def] == [EDGES]
    assert hook.report()["errors"] == []


@pytest.mark.skipif(importlib.util.find_spec("tensorboard") is None, reason="TensorBoard is not in this environment")
def test_what_the_callback_of_keras_wrote_can_be_checked(tmp_path):
    model = keras.Sequential([keras.Input((4,)), keras.layers.Dense(8, activation="relu"), keras.layers.Dense(1)])
    model.compile(keras.optimizers.SGD(0.0), "mse")  # it cannot learn
    values = numpy.random.RandomState(0).randn(32, 4).astype("float32")
    board = keras.callbacks.TensorBoard(str(tmp_path / "logs"), histogram_freq=1)
    history = model.fit(
        values, values[:, :1], batch_size=32, epochs=40, verbose=0, validation_split=0.25, callbacks=[board]
    )

    def tornasole(*arguments, code):
        done = subprocess.run([sys.executable, "-m", "tornasole", *arguments], capture_output=True, text=True)
        assert done.returncode == code, done.stdout + done.stderr
        return done.stdout

    trial_dir = str(tmp_path / "trial")
    tornasole("import", "--from", "tensorboard", str(tmp_path / "logs"), "-o", trial_dir, code=0)
    trial = smd.create_trial(trial_dir)
    for mode, key in ((smd.modes.TRAIN, "loss"), (smd.modes.EVAL, "val_loss")):
        loss = trial.tensor("epoch_loss")
        assert loss.steps(mode=mode) == list(range(40))
        saved = [float(loss.value(step, mode=mode)[0]) for step in range(40)]
        numpy.testing.assert_allclose(saved, history.history[key], rtol=1e-6)
    assert any("kernel" in name for name in trial.tensor_names(collection="histograms"))
    report = json.loads(tornasole("rule", trial_dir, "LossNotDecreasing", "--json", code=10))
    assert "LossNotDecreasing" in json.dumps(report)
    tornasole("check", trial_dir, code=10)
