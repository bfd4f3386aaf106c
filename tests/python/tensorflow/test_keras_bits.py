"""A Keras training ends with the same bits in its weights and in its random state, with the hook and without."""

import random

import keras_models
import numpy
import pytest
import tensorflow as tf
from keras_models import batch, compiled

import tornasole.tensorflow as smd


def everything(directory):
    return smd.KerasHook(directory, save_config=smd.SaveConfig(save_interval=2), save_all=True)


def statistics(directory):
    form = smd.ReductionConfig(reductions=["mean", "std"], norms=["l2"])
    inside = ["weights", "gradients", "biases", "optimizer_variables", "layers"]
    schedule = smd.SaveConfig(save_interval=3, start_step=1)
    return smd.KerasHook(directory, save_config=schedule, include_collections=inside, reduction_config=form)


def train(make_model, hook, fit=None, optimizer=lambda: "adam", **options):
    """What is left of a training: weights, variables of the optimizer, and random states."""
    tf.keras.backend.clear_session()
    tf.keras.utils.set_random_seed(11)
    model = compiled(make_model(), optimizer=optimizer(), **options)
    values, labels = batch(32)
    if fit is not None:
        fit(model, hook, values, labels)
    else:
        callbacks = [] if hook is None else [hook]
        model.fit(values, labels, batch_size=8, epochs=2, verbose=0, validation_data=(values, labels), callbacks=callbacks)
    if hook is not None:
        hook.close()
        assert hook.report()["errors"] == [], hook.report()["errors"]
    variables = model.optimizer.variables
    variables = variables() if callable(variables) else variables
    kept = [*model.get_weights(), *(numpy.asarray(variable) for variable in variables)]
    return [array.tobytes() for array in kept], (random.random(), numpy.random.rand(), float(tf.random.uniform([])))


def assert_same(bare, hooked):
    assert bare[0] == hooked[0], "the weights and the variables of the optimizer"
    assert bare[1] == hooked[1], "random numbers of Python, NumPy and TensorFlow"


WAYS = [
    ("compiled", keras_models.with_dropout, {}),
    ("eager", keras_models.with_dropout, {"run_eagerly": True}),
    ("jit", keras_models.dense, {"jit_compile": True}),
    ("several steps at once", keras_models.dense, {"steps_per_execution": 2}),
    ("built at the first step", keras_models.Subclassed, {}),
    ("a step of its own", keras_models.OwnStep, {}),
    ("shared and nested", keras_models.branches, {}),
    ("recurrent", keras_models.recurrent, {}),
]


@pytest.mark.parametrize("what, model, options", WAYS, ids=[way[0] for way in WAYS])
def test_ways_of_training(what, model, options, tmp_path):
    assert_same(train(model, None, **options), train(model, everything(tmp_path / "run"), **options))


def test_statistics_from_a_later_step_on(tmp_path):
    model = keras_models.with_dropout
    assert_same(train(model, None), train(model, statistics(tmp_path / "run")))


def test_mixed_precision(tmp_path):
    def model():
        tf.keras.mixed_precision.set_global_policy("mixed_bfloat16")
        return keras_models.dense()

    try:
        assert_same(train(model, None), train(model, everything(tmp_path / "run")))
    finally:
        tf.keras.mixed_precision.set_global_policy("float32")
    trial = smd.create_trial(str(tmp_path / "run"))
    outputs = numpy.asarray(trial.tensor("first/outputs").value(0), dtype=numpy.float32)
    assert not (outputs.view(numpy.uint32) & 0xFFFF).any(), "of bfloat16"
    assert trial.tensor("first/weights/first/kernel:0").value(0).dtype == numpy.float32


def test_a_scaled_loss(tmp_path):
    def optimizer():
        return tf.keras.mixed_precision.LossScaleOptimizer(tf.keras.optimizers.SGD(0.1))

    hook = everything(tmp_path / "run")
    assert_same(train(keras_models.dense, None, optimizer=optimizer), train(keras_models.dense, hook, optimizer=optimizer))
    index = next((tmp_path / "run" / "index").rglob("000000000000_worker_0.json")).read_text()
    assert '"grad_scale":32768' in index.replace(" ", "")


def single_batches(model, hook, values, labels):
    if hook is not None:
        hook.register_model(model)
    for start in range(0, 24, 8):
        model.train_on_batch(values[start : start + 8], labels[start : start + 8])
    model.test_on_batch(values, labels)
    model.predict_on_batch(values)


def test_single_batches(tmp_path, saved):
    hook = everything(tmp_path / "run")
    bare = train(keras_models.dense, None, fit=single_batches)
    assert_same(bare, train(keras_models.dense, hook, fit=single_batches))
    steps = saved()
    assert sorted(steps) == [0, 2, 3, 4]
    assert {"first/outputs", "gradients/first/kernelGrad", "loss", "first/weights/first/kernel:0"} <= steps[2]
    assert "loss" in steps[3] and "predictions" in steps[4]
