"""A Keras training survives what goes wrong: in it, on the disk, and in the hook."""

import copy
import json
import pickle

import keras_models
import numpy
import pytest
import tensorflow as tf
from keras_models import batch, compiled

import tornasole.tensorflow as smd

EVERY_STEP = smd.SaveConfig(save_interval=1)


def fit(model, *callbacks, **options):
    values, labels = batch(32)
    return model.fit(values, labels, batch_size=8, verbose=0, callbacks=list(callbacks), **options)


class Raise(tf.keras.callbacks.Callback):
    """An error of the script, in the middle of an epoch."""

    def on_train_batch_end(self, number, logs=None):
        if number >= 1:
            raise RuntimeError("mine")


def test_an_error_of_the_script_comes_through_and_the_model_is_as_it_was(tmp_path, saved):
    model = compiled(keras_models.dense())
    hook = smd.KerasHook(tmp_path / "run", save_config=EVERY_STEP, save_all=True)
    with pytest.raises(RuntimeError, match="mine"):
        fit(model, hook, Raise())
    hook.close()
    assert "train_step" not in model.__dict__ and model.train_function.__name__ != "run_and_capture"
    assert len(fit(model).history["loss"]) == 1
    assert {"loss", "first/outputs"} <= saved()[0]


def test_an_error_inside_the_step_is_the_users_own(tmp_path):
    model = compiled(keras_models.dense())
    hook = smd.KerasHook(tmp_path / "run", save_config=EVERY_STEP, save_all=True)
    with pytest.raises(Exception) as bare:
        model.fit(numpy.ones((8, 3), "float32"), numpy.zeros(8), verbose=0)
    model = compiled(keras_models.dense())
    with pytest.raises(type(bare.value)):
        model.fit(numpy.ones((8, 3), "float32"), numpy.zeros(8), verbose=0, callbacks=[hook])
    hook.close()


def test_a_directory_that_cannot_be_written(tmp_path):
    tf.keras.utils.set_random_seed(3)
    bare = compiled(keras_models.dense())
    fit(bare)
    tf.keras.utils.set_random_seed(3)
    model = compiled(keras_models.dense())
    hook = smd.KerasHook(tmp_path / "file" / "run", save_config=EVERY_STEP, save_all=True)
    (tmp_path / "file").write_text("where its directory was to be")
    fit(model, hook)
    hook.close()
    assert hook.report()["errors"]
    assert [w.tobytes() for w in model.get_weights()] == [w.tobytes() for w in bare.get_weights()]


def test_somebody_asks_the_training_to_stop(tmp_path):
    class Ask(tf.keras.callbacks.Callback):
        def on_train_batch_end(self, number, logs=None):
            (tmp_path / "run").mkdir(exist_ok=True)
            (tmp_path / "run" / "stop_request.json").write_text(json.dumps({"rule": "test", "reason": "enough"}))
            hook._wait_until_written(5)

    hook = smd.KerasHook(tmp_path / "run", save_config=EVERY_STEP)
    history = fit(compiled(keras_models.dense()), hook, Ask(), epochs=50)
    hook.close()
    assert hook.stop_requested and len(history.history["loss"]) < 50


def test_a_model_with_a_hook_can_be_saved_and_copied(tmp_path):
    model = compiled(keras_models.dense())
    hook = smd.KerasHook(tmp_path / "run", save_config=EVERY_STEP, save_all=True)
    hook.register_model(model)
    fit(model, hook)
    model.save(tmp_path / "model.keras")
    assert copy.copy(hook)._engine_hook is None and pickle.loads(pickle.dumps(hook))._engine_hook is None
    hook.close()
    assert "train_on_batch" not in model.__dict__
    assert len(tf.keras.models.load_model(tmp_path / "model.keras").get_weights()) == 4


def test_a_step_that_cannot_be_tapped_is_told_of(tmp_path, saved):
    class Awkward(keras_models.Subclassed):
        def train_step(self, data):
            if "tornasole" in getattr(self.__dict__.get("train_step"), "__module__", "") or tapped:
                raise TypeError("no taps, please")
            return super().train_step(data)

    tapped = []
    model = compiled(Awkward())
    model(batch(8)[0])
    hook = smd.KerasHook(tmp_path / "run", save_config=EVERY_STEP, include_collections=["layers"])
    values, labels = batch(32)
    model.fit(values, labels, batch_size=8, verbose=0)
    tapped.append(True)
    model.fit(values, labels, batch_size=8, verbose=0, callbacks=[hook])
    hook.close()
    assert "last/outputs" in hook.report()["uncaptured"] and "loss" in saved()[0]


def test_other_strategies_switch_the_hook_off(tmp_path, saved):
    class Elsewhere(keras_models.Subclassed):
        distribute_strategy = property(lambda self: type("TPUStrategy", (), {})())

    hook = smd.KerasHook(tmp_path / "run", save_all=True)
    hook.set_model(Elsewhere())
    hook.on_train_begin()
    hook.on_train_batch_begin(0)
    hook.on_train_batch_end(0, {"loss": 1.0})
    assert hook.step == -1
    hook.close()
    assert saved() == {}
