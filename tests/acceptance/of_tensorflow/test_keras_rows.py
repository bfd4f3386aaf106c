"""The rows about TensorFlow, with trainings of it."""

import os

os.environ.setdefault("TF_CPP_MIN_LOG_LEVEL", "3")

import numpy  # noqa: E402
import pytest  # noqa: E402
import tensorflow as tf  # noqa: E402
from acceptance_rows import ELSEWHERE, IN_EACH  # noqa: E402
from framework_package import check_hook_classes, check_names  # noqa: E402

import tornasole.tensorflow as ts  # noqa: E402

rows = pytest.mark.rows


def train(hook):
    """A step of a small model; the model and what it was given."""
    tf.keras.backend.clear_session()
    layers = [tf.keras.layers.Dense(3, name="first"), tf.keras.layers.Dense(2, name="last")]
    model = tf.keras.Sequential([tf.keras.Input((4,)), *layers])
    model.compile("adam", tf.keras.losses.SparseCategoricalCrossentropy(from_logits=True), metrics=["accuracy"])
    values = numpy.random.default_rng(0).normal(size=(8, 4)).astype("float32")
    model.fit(values, numpy.zeros(8, "int32"), batch_size=8, verbose=0, callbacks=[hook])
    hook.close()
    return model, values


@rows(80)
def test_the_older_names(tmp_path):
    assert ts.TornasoleHook(str(tmp_path / "run"), dry_run=True).save_config.save_interval == 100
    assert issubclass(ts.TornasoleHook, ts.SessionHook) and ts.modes.TRAIN and ts.SaveConfigMode()
    assert ts.get_collection("weights") is ts.get_collections()["weights"]


@rows(117)
def test_a_callback_of_keras_and_a_hook_of_sessions(tmp_path, saved):
    train(ts.KerasHook(tmp_path / "run"))
    assert saved()[0] == {"loss", "accuracy", "batch"}
    with tf.Graph().as_default():
        loss = tf.compat.v1.losses.mean_squared_error([[1.0]], [[3.0]])
        hook = ts.SessionHook(tmp_path / "session")
        with tf.compat.v1.train.MonitoredSession(hooks=[hook]) as session:
            session.run(loss)
    hook.close()
    assert saved(tmp_path / "session") == {0: {loss.name}}


@rows(134)
def test_weights_are_found_by_themselves(tmp_path, saved):
    train(ts.KerasHook(tmp_path / "run", include_collections=["weights"]))
    assert {name for name in saved()[0] if "weights" in name} == {
        "first/weights/first/kernel:0",
        "last/weights/last/kernel:0",
    }


@rows(144)
def test_inputs_are_those_of_the_model(tmp_path, saved):
    _, values = train(ts.KerasHook(tmp_path / "run", include_collections=["inputs"]))
    assert saved()[0] == {"loss", "accuracy", "batch", "inputs"}
    saved_values = ts.create_trial(str(tmp_path / "run")).tensor("inputs").value(0)
    assert numpy.array_equal(numpy.sort(saved_values, 0), numpy.sort(values, 0))


@rows(145, 288)
def test_outputs_are_those_of_the_model(tmp_path, saved):
    train(ts.KerasHook(tmp_path / "run", include_collections=["outputs"]))
    assert saved()[0] == {"loss", "accuracy", "batch", "labels", "predictions"}


@rows(287)
def test_metrics_of_keras(tmp_path):
    train(ts.KerasHook(tmp_path / "run"))
    trial = ts.create_trial(str(tmp_path / "run"))
    assert set(trial.tensor_names(collection="metrics")) == {"accuracy", "batch"}


@rows(289)
def test_inputs_and_outputs_of_layers(tmp_path, saved):
    train(ts.KerasHook(tmp_path / "run", include_collections=["layers"]))
    layers = {f"{layer}/{side}" for layer in ("first", "last") for side in ("inputs", "outputs")}
    assert saved()[0] == {"loss", "accuracy", "batch"} | layers


@rows(291)
def test_variables_of_the_optimizer(tmp_path):
    model, _ = train(ts.KerasHook(tmp_path / "run", include_collections=["optimizer_variables"]))
    names = ts.create_trial(str(tmp_path / "run")).tensor_names(collection="optimizer_variables")
    variables = model.optimizer.variables
    assert len(names) == len(variables() if callable(variables) else variables)


@rows(166, 317)
def test_what_can_be_added_to_a_collection(row):
    with tf.Graph().as_default():
        one, two = tf.constant(1.0, name="one"), tf.constant(2.0, name="two")
        variable = tf.compat.v1.get_variable("variable", ())
        collection = ts.Collection("mine")
        for given in (one, variable, two.op, [tf.constant(3.0, name="three")], object()):
            collection.add(given)
        collection.add({"by_name"})
    assert collection.tensor_names == {"one:0", "variable:0", "two:0", "three:0", "by_name"}


@rows(167, 318)
def test_layers_can_be_added(tmp_path, saved, row):
    hook = ts.KerasHook(tmp_path / "run", include_collections=["mine", "both"])
    layer = tf.keras.layers.Dense(1, name="first")
    hook.get_collection("mine").add_keras_layer(layer)
    hook.get_collection("both").add_keras_layer(tf.keras.layers.Dense(1, name="last"), inputs=True, outputs=False)
    train(hook)
    assert saved()[0] == {"loss", "accuracy", "batch", "first/outputs", "last/inputs"}


@rows(116)
def test_the_package_under_both_names():
    check_names("tensorflow", ("KerasHook", "SessionHook", "EstimatorHook"))


@rows(126)
def test_the_classes_of_hooks(tmp_path):
    check_hook_classes("tensorflow", ("KerasHook", "SessionHook", "EstimatorHook"), tmp_path)


def test_every_row_of_this_folder_is_shown(request):
    shown = {item.callspec.params["row"] for item in request.session.items if hasattr(item, "callspec")}
    if not {80, 291} <= shown:
        pytest.skip("not the whole list was collected")
    assert shown == {*ELSEWHERE["of_tensorflow"], *IN_EACH}
