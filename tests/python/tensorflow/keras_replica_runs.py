"""Keras trainings on two devices, in a process of their own: with a hook and without; what each left, as JSON."""

import json
import os
import sys

os.environ.setdefault("TF_CPP_MIN_LOG_LEVEL", "3")
import keras_models  # noqa: E402
import numpy  # noqa: E402
import tensorflow as tf  # noqa: E402

import tornasole.tensorflow as smd  # noqa: E402

tf.config.set_logical_device_configuration(
    tf.config.list_physical_devices("CPU")[0], [tf.config.LogicalDeviceConfiguration()] * 2
)
# One for all trainings: TensorFlow takes the reductions of a second one for those of the first.
STRATEGY = tf.distribute.MirroredStrategy(["CPU:0", "CPU:1"])

RUNS = {
    "compiled": (keras_models.with_dropout, {}),
    "eager": (keras_models.dense, {"run_eagerly": True}),
    "built at the first step": (keras_models.Subclassed, {}),
    "a step of its own": (keras_models.OwnStep, {}),
}
VALUES, LABELS = keras_models.batch(20)  # the last batch of eight has four, the second replica none of some


def train(what, hook):
    tf.keras.backend.clear_session()
    tf.keras.utils.set_random_seed(5)
    make, options = RUNS[what]
    with STRATEGY.scope():
        model = keras_models.compiled(make(), **options)
    callbacks = [] if hook is None else [hook]
    history = model.fit(VALUES, LABELS, batch_size=8, epochs=2, verbose=0, shuffle=False, callbacks=callbacks)
    losses = [model.evaluate(VALUES, LABELS, batch_size=8, verbose=0, callbacks=callbacks)]
    scores = model.predict(VALUES, batch_size=8, verbose=0, callbacks=callbacks)
    variables = model.optimizer.variables
    kept = [*model.get_weights(), *(variables() if callable(variables) else variables), scores]
    return [numpy.asarray(one).tobytes().hex() for one in kept], str([history.history, losses])


def read(hook, directory):
    hook.close()
    report, trial = hook.report(), smd.create_trial(directory)
    answer = {key: report[key] for key in ("errors", "uncaptured")}
    answer["workers"], answer["steps"] = trial.workers(), trial.steps(mode=smd.modes.TRAIN)
    collections = ("weights", "biases", "gradients", "layers", "inputs", "outputs", "optimizer_variables")
    answer["names"] = {one: trial.tensor_names(collection=one) for one in collections}
    names = [name for one in collections[3:6] for name in answer["names"][one]]
    answer["values"] = {name: trial.tensor(name).value(0).tolist() for name in names}
    return answer


def run(what, directory):
    alone = train(what, None)
    hook = smd.KerasHook(
        directory, save_config=smd.SaveConfig(save_interval=2), save_all=True, include_workers="all"
    )
    watched = train(what, hook)
    return {**read(hook, directory), "is_same": alone == watched}


if __name__ == "__main__":
    answers = {what: run(what, f"{sys.argv[1]}/{number}") for number, what in enumerate(RUNS)}
    print(json.dumps({"given": [VALUES.tolist(), LABELS.tolist()], **answers}))
