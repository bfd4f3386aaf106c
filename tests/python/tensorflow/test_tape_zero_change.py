"""Loops with tapes, and graphs of Keras, in programs that know nothing of tornasole, captured by the command."""

import json
import os
import subprocess
import sys

import keras_models
import pytest

import tornasole
import tornasole.tensorflow as smd

PACKAGE = os.path.dirname(os.path.dirname(os.path.abspath(tornasole.__file__)))
COLLECTIONS = ["weights", "biases", "gradients", "layers", "inputs", "outputs", "optimizer_variables"]

LOOP = """
import hashlib, numpy, tensorflow as tf
keras = tf.keras
keras.utils.set_random_seed(1)
inner = keras.Sequential([keras.Input((4,)), keras.layers.Dense(6, activation="relu", name="hidden")], name="inner")
model = keras.Sequential([keras.Input((4,)), inner, keras.layers.Dense(2, name="scores")], name="model")
optimizer = keras.optimizers.Adam(0.01)
loss_of = keras.losses.SparseCategoricalCrossentropy(from_logits=True)
x = numpy.random.RandomState(0).randn(64, 4).astype("float32")
y = (x[:, 0] > 0).astype("int32")

def step(given, wanted):
    with tf.GradientTape(persistent=True) as tape:
        with tf.GradientTape() as inside:  # no step of its own
            inside.watch(given)
            size = tf.reduce_sum(given * given)
        slope = inside.gradient(size, given)
        loss = loss_of(wanted, model(given, training=True)) + 0.01 * tf.reduce_mean(slope)
    gradients = tape.gradient(loss, model.trainable_variables)
    optimizer.apply_gradients(zip(gradients, model.trainable_variables))

{more}
for start in range(0, 64, 8):
    step(tf.constant(x[start : start + 8]), y[start : start + 8])
model.compile(optimizer, loss_of)
model.fit(x, y, batch_size=16, verbose=0)
print(hashlib.sha256(b"".join(weight.tobytes() for weight in model.get_weights())).hexdigest())
"""

GRAPH = """
import hashlib, numpy, tensorflow as tf
tf.compat.v1.disable_eager_execution()
keras = tf.keras
keras.utils.set_random_seed(1)
x = numpy.random.RandomState(0).randn(64, 4).astype("float32")
y = (x[:, 0] > 0).astype("int32")
for optimizer in (keras.optimizers.legacy.RMSprop(), tf.compat.v1.train.RMSPropOptimizer(0.1)):
    model = keras.Sequential([keras.Input((4,)), keras.layers.Dense(2, "softmax")])
    model.compile(optimizer, "sparse_categorical_crossentropy")
    model.fit(x, y, batch_size=16, verbose=0, shuffle=False)
    print(hashlib.sha256(b"".join(weight.tobytes() for weight in model.get_weights())).hexdigest())
"""


def run(tmp_path, program, *under):
    (tmp_path / "train.py").write_text(program)
    parts = [{"CollectionName": name} for name in COLLECTIONS]
    settings = {"LocalPath": str(tmp_path / "run"), "HookParameters": {"save_interval": "3"}}
    (tmp_path / "hook.json").write_text(json.dumps({**settings, "CollectionConfigurations": parts}))
    clean = {key: value for key, value in os.environ.items() if not key.startswith(("TORNASOLE_", "SMDEBUG_"))}
    clean.update({"PYTHONPATH": PACKAGE, "TORNASOLE_CLOSE_WAIT_S": "120", "TF_CPP_MIN_LOG_LEVEL": "3"})
    started = [sys.executable, *(["-m", "tornasole", "run", *under] if under else []), "train.py"]
    ran = subprocess.run(started, cwd=tmp_path, env=clean, capture_output=True, text=True, timeout=300, check=False)
    assert ran.returncode == 0, ran.stderr
    assert "nothing will be captured" not in ran.stderr, ran.stderr
    return ran


def test_a_loop_with_tapes_and_a_fit_have_one_hook(tmp_path, saved):
    program = LOOP.format(more="")
    assert run(tmp_path, program, "--config", "hook.json").stdout == run(tmp_path, program).stdout, "the same weights"
    steps = saved()
    assert sorted(steps) == [0, 3, 6, 9, 11], "eight of the loop, four of fit, whose last one ends an epoch"
    assert {"loss", "inputs", "predictions", "scores/outputs", "inner/hidden/outputs"} <= steps[3]
    assert {"weights/scores/kernel:0", "gradients/scores/kernelGrad"} <= steps[3]
    assert {"scores/weights/scores/kernel:0", "gradients/scores/kernelGrad", "labels"} <= steps[9]
    trial = smd.create_trial(str(tmp_path / "run"))
    assert trial.steps(mode=smd.modes.TRAIN) == [0, 3, 6, 9, 11]
    held = trial.tensor_names(collection="optimizer_variables")
    assert held and all(3 in trial.tensor(name).steps() for name in held), "known from its first use on"


def test_a_step_inside_a_function_of_the_program(tmp_path, saved):
    program = LOOP.format(more="step = tf.function(step)")
    assert run(tmp_path, program, "--config", "hook.json").stdout == run(tmp_path, program).stdout, "the same weights"
    steps = saved()
    assert sorted(steps) == [0, 3, 6, 9, 11], "eight calls of the function, four steps of fit"
    for step in (0, 3, 6):
        assert {"loss", "inputs", "predictions", "scores/outputs", "inner/hidden/outputs"} <= steps[step]
        assert {"weights/scores/kernel:0", "gradients/scores/kernelGrad"} <= steps[step]
    held = smd.create_trial(str(tmp_path / "run")).tensor_names(collection="optimizer_variables")
    assert held, "the optimizer is known though it was used while the function was traced"


def test_presets_run_nothing_for_the_loss_alone(tmp_path, saved):
    program = LOOP.format(more="step = tf.function(step)")
    run(tmp_path, program, "--out", "run", "--preset", "light")
    assert ["loss" in saved()[step] for step in range(12)] == 8 * [False] + 4 * [True], "the function returns none"
    returned = program.replace("trainable_variables))\n\n", "trainable_variables))\n    return {'loss': loss}\n\n")
    run(tmp_path, returned, "--out", "other", "--preset", "light")
    assert all("loss" in names for names in saved(tmp_path / "other").values()) and len(saved(tmp_path / "other")) == 12


def test_tapes_of_layers_are_none_of_the_program(tmp_path):
    model = """
import numpy, tensorflow as tf
keras = tf.keras
given = keras.Input((4,))
model = keras.Model(given, keras.layers.Dense(1)(keras.layers.Lambda(lambda one: 2 * one, output_shape=(4,))(given)))
model(numpy.zeros((2, 4), "float32"))
{more}
"""
    assert "tornasole:" not in run(tmp_path, model.format(more=""), "--out", "run").stderr, "nothing is trained"
    fit = "model.compile('sgd', 'mse'); model.fit(numpy.ones((8, 4)), numpy.ones((8, 1)), verbose=0)"
    assert run(tmp_path, model.format(more=fit), "--out", "run").stderr.count("tornasole:") == 1


@pytest.mark.skipif(keras_models.IS_KERAS_3, reason="Keras 3 has no sessions")
def test_a_graph_of_keras(tmp_path, saved):
    assert run(tmp_path, GRAPH, "--config", "hook.json").stdout == run(tmp_path, GRAPH).stdout, "the same weights"
    steps = saved()
    assert sorted(steps) == [0, 3, 6, 7]
    for step in (0, 6):
        assert {"inputs", "labels", "predictions", "loss"} <= steps[step]
        assert sum("/gradients/" in name for name in steps[step]) == 2, "of each of the two optimizers"
    assert smd.create_trial(str(tmp_path / "run")).tensor_names(collection="optimizer_variables")
