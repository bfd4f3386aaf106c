"""Batches of which nothing is due are counted by the engine alone; whatever asks for them, or changes them, sees all."""

import gc
import json
import weakref

import keras_models
import tensorflow as tf
from keras_models import batch, compiled

import tornasole.tensorflow as smd
from tornasole.core.guard import guard


def fit(model, *callbacks, batches=100, **options):
    values, labels = batch(2 * batches)
    return model.fit(values, labels, batch_size=2, verbose=0, callbacks=list(callbacks), **options)


class AtEnd(tf.keras.callbacks.Callback):
    """Runs something after some batches of the training."""

    def __init__(self, do, *batches):
        super().__init__()
        self._do, self._batches = do, batches

    def on_train_batch_end(self, number, logs=None):
        if number in self._batches:
            self._do()


def test_steps_that_are_due_are_saved_and_no_others(tmp_path, saved):
    hook = smd.KerasHook(tmp_path / "run", save_config=smd.SaveConfig(save_interval=37))
    fit(compiled(keras_models.dense()), hook, epochs=2)
    hook.close()
    assert [step for step, names in saved().items() if "batch" in names] == [0, 37, 74, 99, 111, 148, 185, 199]
    assert hook.mode_steps[smd.modes.TRAIN] == 199


def test_validation_between_them_is_counted_by_itself(tmp_path):
    intervals = {smd.modes.TRAIN: 30, smd.modes.EVAL: 7}
    config = {mode: smd.SaveConfigMode(save_interval=interval) for mode, interval in intervals.items()}
    hook = smd.KerasHook(tmp_path / "run", save_config=smd.SaveConfig(config))
    fit(compiled(keras_models.dense()), hook, batches=40, epochs=2, validation_data=batch(20), validation_batch_size=2)
    hook.close()
    trial = smd.create_trial(tmp_path / "run")
    assert trial.steps(mode=smd.modes.TRAIN) == [0, 30, 60]
    assert trial.steps(mode=smd.modes.EVAL) == [0, 7, 9, 14, 19]


def test_the_number_of_the_step_is_right_whenever_it_is_asked(tmp_path):
    hook = smd.KerasHook(tmp_path / "run", save_config=smd.SaveConfig(save_interval=1000, start_step=1))
    seen = []
    fit(compiled(keras_models.dense()), AtEnd(lambda: seen.append(hook.step), 3, 4, 50, 98), hook)
    assert seen == [3, 4, 50, 98]


def test_a_schedule_that_is_changed_holds_from_the_next_batch_on(tmp_path, saved):
    hook = smd.KerasHook(tmp_path / "run", save_config=smd.SaveConfig(save_interval=1000, start_step=1))

    def change():
        for name in ("losses", "metrics"):
            hook.get_collection(name).save_config = smd.SaveConfig(save_interval=1)

    fit(compiled(keras_models.dense()), AtEnd(change, 21), hook, batches=30)
    hook.close()
    assert sorted(saved()) == list(range(22, 30))


def test_what_is_handed_over_between_them_belongs_to_its_step(tmp_path):
    hook = smd.KerasHook(tmp_path / "run", save_config=smd.SaveConfig(save_interval=1000, start_step=1))
    hook.get_collection("mine").add_tensor_name("value")
    hook.get_collection("mine").save_config = smd.SaveConfig(save_steps=[26], save_interval=1000, start_step=1)

    def hand_over():
        hook.save_tensor("value", tf.constant([float(hook.step)]), "mine")

    fit(compiled(keras_models.dense()), AtEnd(hand_over, 25, 26, 27), hook, batches=30)
    hook.close()
    trial = smd.create_trial(tmp_path / "run")
    assert [(step, trial.tensor("value").value(step)[0]) for step in trial.tensor("value").steps()] == [(26, 26.0)]


def test_a_request_to_stop_is_seen_between_them(tmp_path):
    hook = smd.KerasHook(tmp_path / "run", save_config=smd.SaveConfig(save_interval=100))

    def ask():
        (tmp_path / "run" / "stop_request.json").write_text(json.dumps({"reason": "enough", "rule": "mine"}))

    fit(compiled(keras_models.dense()), AtEnd(ask, 50), hook, batches=3000)
    hook.close()
    assert hook.stop_requested and 100 <= hook.step < 2999


def test_callbacks_of_a_subclass_are_called(tmp_path):
    called = []

    class Mine(smd.KerasHook):
        def on_train_batch_begin(self, number, logs=None):
            called.append(number)
            super().on_train_batch_begin(number, logs)

    hook = Mine(tmp_path / "run", save_config=smd.SaveConfig(save_interval=10))
    fit(compiled(keras_models.dense()), hook, batches=30)
    hook.close()
    assert called == list(range(30)) and hook.step == 29


def test_capture_that_is_switched_off_counts_nothing(tmp_path):
    hook = smd.KerasHook(tmp_path / "run", save_config=smd.SaveConfig(save_interval=1000, start_step=1))

    def switch_off():
        guard.disable_smdebug = True

    fit(compiled(keras_models.dense()), AtEnd(switch_off, 20), hook, batches=60)
    assert hook.step == 20


def test_a_hook_that_nobody_holds_is_collected(tmp_path):
    hook = smd.KerasHook(tmp_path / "run", save_config=smd.SaveConfig(save_interval=1000))
    fit(compiled(keras_models.dense()), hook, batches=20)
    hook.close()
    callbacks = [value for value in vars(hook).values() if type(value).__name__ == "BatchBegin"]
    assert len(callbacks) == 3
    gone = weakref.ref(hook)
    del hook, callbacks
    tf.keras.backend.clear_session()
    smd.del_hook()
    guard.hook = None
    gc.collect()
    assert gone() is None
