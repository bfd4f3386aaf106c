"""Programs with sessions and estimators that know nothing of tornasole, captured by the command that starts them."""

import json
import os
import subprocess
import sys

import tensorflow as tf

import tornasole
import tornasole.tensorflow as smd

PACKAGE = os.path.dirname(os.path.dirname(os.path.abspath(tornasole.__file__)))

SESSIONS = """
import hashlib, numpy, tensorflow as tf
v1 = tf.compat.v1
v1.disable_eager_execution()

def by_hand(answer, wanted):
    return tf.reduce_mean((answer - wanted) ** 2, name="mine")

def train(make_session, loss_of=v1.losses.mean_squared_error):
    with tf.Graph().as_default():
        v1.set_random_seed(1)
        given = v1.placeholder(tf.float32, (None, 2), name="given")
        weight = v1.get_variable("weight", initializer=[[10.0], [10.0]])
        bias = v1.get_variable("bias", initializer=[0.5])
        loss = loss_of(tf.matmul(given, weight) + bias, tf.reduce_sum(given, 1, keepdims=True))
        train = v1.train.AdamOptimizer(0.1).minimize(loss, v1.train.get_or_create_global_step())
        numbers = numpy.random.RandomState(0)
        with make_session() as session:
            for _ in range(9):
                session.run(train, {given: numbers.rand(5, 2)})
            print(hashlib.sha256(session.run(weight).tobytes()).hexdigest())

"""
TRAININGS = """
train(v1.train.MonitoredSession)
train(v1.train.SingularMonitoredSession, by_hand)
train(lambda: v1.train.MonitoredTrainingSession(hooks=[v1.train.StopAtStepHook(num_steps=100)]))
"""
OWN_HOOK = """
import tornasole.tensorflow as smd
hook = smd.SessionHook("mine", save_config=smd.SaveConfig(save_interval=4))
train(lambda: v1.train.MonitoredSession(hooks=[hook]))
"""

ESTIMATOR = """
import hashlib, sys, numpy, tensorflow as tf
v1 = tf.compat.v1

class Scaled(v1.train.Optimizer):
    # One optimizer around another.
    def __init__(self, inner):
        super().__init__(use_locking=False, name="Scaled")
        self.inner = inner

    def compute_gradients(self, *arguments, **options):
        return self.inner.compute_gradients(*arguments, **options)

    def apply_gradients(self, pairs, *arguments, **options):
        return self.inner.apply_gradients([(0.5 * g, v) for g, v in pairs], *arguments, **options)

def model_fn(features, labels, mode):
    scores = v1.layers.dense(features["x"], 2, name="scores", kernel_initializer=v1.constant_initializer(0.1))
    if mode == tf.estimator.ModeKeys.PREDICT:
        return tf.estimator.EstimatorSpec(mode, predictions={"scores": scores})
    loss = v1.losses.sparse_softmax_cross_entropy(labels, scores)
    train = None
    if mode == tf.estimator.ModeKeys.TRAIN:
        train = Scaled(v1.train.GradientDescentOptimizer(0.1)).minimize(loss, v1.train.get_global_step())
    return tf.estimator.EstimatorSpec(mode, loss=loss, train_op=train)

def data():
    values = numpy.random.RandomState(0).randn(16, 4).astype("float32")
    return tf.data.Dataset.from_tensor_slices(({"x": values}, numpy.zeros(16, "int32"))).batch(4).repeat()

config = tf.estimator.RunConfig(model_dir=sys.argv[1], tf_random_seed=3, save_checkpoints_steps=4)
estimator = tf.estimator.Estimator(model_fn, config=config)
estimator.train(data, steps=2)
estimator.evaluate(data, steps=2)
evaluation = tf.estimator.EvalSpec(data, steps=2, throttle_secs=0, start_delay_secs=0)
tf.estimator.train_and_evaluate(estimator, tf.estimator.TrainSpec(data, max_steps=10), evaluation)
print(next(estimator.predict(data))["scores"].tobytes().hex())
print(hashlib.sha256(estimator.get_variable_value("scores/kernel").tobytes()).hexdigest())
"""


def run(tmp_path, program, under=(), arguments=()):
    script = tmp_path / "train.py"
    script.write_text(program)
    clean = {key: value for key, value in os.environ.items() if not key.startswith(("TORNASOLE_", "SMDEBUG_"))}
    clean.update({"PYTHONPATH": PACKAGE, "TORNASOLE_CLOSE_WAIT_S": "120", "TF_CPP_MIN_LOG_LEVEL": "3"})
    started = [sys.executable, *(["-m", "tornasole", "run", *under] if under else []), str(script), *arguments]
    ran = subprocess.run(started, cwd=tmp_path, env=clean, capture_output=True, text=True, timeout=300, check=False)
    assert ran.returncode == 0, ran.stderr
    assert "nothing will be captured" not in ran.stderr, ran.stderr
    return ran.stdout


def test_every_session_has_the_hook_and_trains_as_without_it(tmp_path, saved):
    assert run(tmp_path, SESSIONS + TRAININGS, under=["--out", "run"]) == run(tmp_path, SESSIONS + TRAININGS)
    steps = saved()
    losses = ["mean_squared_error/value:0", "mine:0", "mean_squared_error/value:0"]
    for first, loss in zip((0, 10, 20), losses):
        named = [step for step in range(first, first + 10) if loss in steps.get(step, ())]
        assert named == list(range(first, first + 9)), "losses are there though the program does not fetch them"
    means = {name.removeprefix("smdebug/reductions/mean/") for name in steps[3]}
    assert {"weight:0", "bias:0"} <= means and "smdebug/reductions/mean/weight:0" not in steps[13]
    trial = smd.create_trial(str(tmp_path / "run"))
    assert len(trial.tensor_names(collection="gradients")) == 2
    assert trial.tensor_names(collection="losses") == ["mean_squared_error/value:0", "mine:0"]


def test_a_hook_that_the_program_makes_is_the_one(tmp_path, saved):
    run(tmp_path, SESSIONS + OWN_HOOK, under=["--out", "run"])
    assert sorted(saved(tmp_path / "mine")) == [0, 4, 8] and not (tmp_path / "run").exists()


def test_a_configuration(tmp_path, saved):
    collections = [{"CollectionName": "gradients"}, {"CollectionName": "optimizer_variables"}]
    settings = {"LocalPath": str(tmp_path / "run"), "HookParameters": {"save_interval": "4"}}
    (tmp_path / "hook.json").write_text(json.dumps({**settings, "CollectionConfigurations": collections}))
    run(tmp_path, SESSIONS + "train(v1.train.MonitoredSession)", under=["--config", "hook.json"])
    assert sorted(saved()) == [0, 4, 8]
    trial = smd.create_trial(str(tmp_path / "run"))
    assert len(trial.tensor_names(collection="gradients")) == 2
    assert "weight/Adam:0" in trial.tensor_names(collection="optimizer_variables")


def capture_an_estimator_in_its_modes(tmp_path):
    """Evaluations come after a training, and between the steps of another."""
    captured = run(tmp_path, ESTIMATOR, ["--out", "run"], [str(tmp_path / "captured")])
    assert captured == run(tmp_path, ESTIMATOR, (), [str(tmp_path / "plain")])
    trial = smd.create_trial(str(tmp_path / "run"))
    assert trial.steps(mode=smd.modes.TRAIN) == list(range(10))
    assert len(trial.steps(mode=smd.modes.EVAL)) >= 6 and trial.steps(mode=smd.modes.PREDICT) == [0]
    assert {mode.name for mode in trial.modes()} == {"TRAIN", "EVAL", "PREDICT"}
    (loss,) = trial.tensor_names(collection="losses")
    assert trial.tensor(loss).steps(mode=smd.modes.TRAIN) == list(range(10))
    assert trial.tensor_names(collection="weights") == ["scores/kernel:0"]
    gradients = trial.tensor_names(collection="gradients")
    assert {tuple(trial.tensor(name).steps(mode=smd.modes.TRAIN)) for name in gradients} == {tuple(range(10))}


if hasattr(tf, "estimator"):  # until TensorFlow 2.15
    test_an_estimator_in_its_modes = capture_an_estimator_in_its_modes
