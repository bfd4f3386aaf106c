"""Programs that train with Keras and know nothing of tornasole, captured by the command that starts them."""

import os
import subprocess
import sys

import tornasole

PACKAGE = os.path.dirname(os.path.dirname(os.path.abspath(tornasole.__file__)))
PROGRAM = """
import hashlib, numpy, {imports}
keras.utils.set_random_seed(1)
layers = [keras.layers.Dense(6, activation="relu", name="hidden"), keras.layers.Dense(2, name="scores")]
model = keras.Sequential([keras.Input((4,)), *layers])
model.compile("adam", keras.losses.SparseCategoricalCrossentropy(from_logits=True), metrics=["accuracy"])
x = numpy.random.RandomState(0).randn(64, 4).astype("float32")
model.fit(x, (x[:, 0] > 0).astype("int32"), batch_size=8, verbose=0, validation_split=0.25)
model.predict(x, verbose=0)
print(hashlib.sha256(b"".join(weight.tobytes() for weight in model.get_weights())).hexdigest())
"""


def run(tmp_path, *under, imports="tensorflow as tf; keras = tf.keras", program=PROGRAM):
    script = tmp_path / "train.py"
    script.write_text(program.replace("{imports}", imports))
    clean = {key: value for key, value in os.environ.items() if not key.startswith(("TORNASOLE_", "SMDEBUG_"))}
    clean.update({"PYTHONPATH": PACKAGE, "TORNASOLE_CLOSE_WAIT_S": "120", "TF_CPP_MIN_LOG_LEVEL": "3"})
    command = [sys.executable, *(["-m", "tornasole", "run", *under] if under else []), str(script)]
    ran = subprocess.run(command, cwd=tmp_path, env=clean, capture_output=True, text=True, timeout=300, check=False)
    assert ran.returncode == 0, ran.stderr
    return ran


def told(ran):
    return [line for line in ran.stderr.splitlines() if "tornasole" in line]


def test_the_standard_preset(tmp_path, saved):
    plain = run(tmp_path)
    ran = run(tmp_path, "--out", "run")
    assert ran.stdout == plain.stdout, "the same weights, and the program's own output alone"
    assert "tornasole: capturing into" in ran.stderr
    steps = saved()
    assert all("loss" in steps[step] for step in range(6))
    assert {"scalar/learning_rate/0", "smdebug/reductions/l2/hidden/weights/hidden/kernel:0"} <= steps[1]
    assert "smdebug/reductions/mean/gradients/hidden/kernelGrad" in steps[1]
    assert "smdebug/reductions/mean/hidden/outputs" in steps[1]
    assert "derived/counts/hidden/outputs" in steps[1]


def test_keras_imported_by_itself(tmp_path, saved):
    run(tmp_path, "--out", "run", "--preset", "light", imports="keras")
    assert {"loss", "accuracy", "scalar/learning_rate/0"} <= saved()[0]


FOLDS = """
import hashlib, numpy, {imports}
keras.utils.set_random_seed(1)
x = numpy.random.RandomState(0).randn(32, 4).astype("float32")
def fit(model):
    return model.fit(x, x[:, :1], batch_size=8, verbose=0).history["loss"]
models = []
for fold in range(3):
    model = keras.Sequential([keras.Input((4,)), keras.layers.Dense(1, name="of_fold_%d" % fold)])
    model.compile("adam", "mse")
    print(fit(model), model.evaluate(x, x[:, :1], verbose=0))
    models.append(model)
print(fit(models[2]), fit(models[0]))
print(hashlib.sha256(b"".join(weight.tobytes() for one in models for weight in one.get_weights())).hexdigest())
"""


def test_each_model_that_is_fitted_has_a_trial(tmp_path, saved):
    plain = run(tmp_path, program=FOLDS)
    ran = run(tmp_path, "--out", "run", program=FOLDS)
    assert ran.stdout == plain.stdout
    assert [line.split("capturing into ")[1] for line in told(ran)] == [
        str(tmp_path / "run"), str(tmp_path / "run-2"), str(tmp_path / "run-3")
    ]
    for fold, (directory, count) in enumerate([("run", 5), ("run-2", 5), ("run-3", 13)]):
        steps = saved(tmp_path / directory)
        assert (tmp_path / directory / "training_job_end.ts").exists()
        assert len(steps) == count, "four of a fit, one of an evaluation; the last has models in turns, too"
        assert f"smdebug/reductions/mean/gradients/of_fold_{fold}/kernelGrad" in steps[1]


IN_TURNS = """
import hashlib, numpy, {imports}
keras.utils.set_random_seed(1)
judge = keras.Sequential([keras.Input((4,)), keras.layers.Dense(1, name="judge")])
judge.compile("adam", "mse")
maker = keras.Sequential([keras.Input((3,)), keras.layers.Dense(4, name="maker")])
noise = keras.Input((3,))
both = keras.Model(noise, judge(maker(noise)))
both.compile("adam", "mse")
random = numpy.random.RandomState(0)
for _ in range(4):
    numbers = random.randn(8, 3).astype("float32")
    made = maker.predict_on_batch(numbers)
    print(judge.train_on_batch(made, numpy.zeros((8, 1))), both.train_on_batch(numbers, numpy.ones((8, 1))))
later = keras.Sequential([keras.Input((4,)), keras.layers.Dense(1, name="later")])
later.compile("sgd", "mse")
for _ in range(60):
    print(later.train_on_batch(made, numpy.zeros((8, 1))))
weights = [*judge.get_weights(), *maker.get_weights(), *later.get_weights()]
print(hashlib.sha256(b"".join(weight.tobytes() for weight in weights)).hexdigest())
"""


def test_batches_one_by_one_are_steps_of_one_model_at_a_time(tmp_path, saved):
    plain = run(tmp_path, program=IN_TURNS)
    ran = run(tmp_path, "--out", "run", program=IN_TURNS)
    assert ran.stdout == plain.stdout
    assert told(ran) == [f"tornasole: capturing into {tmp_path / 'run'}"]
    steps = saved()
    assert len(steps) == 4 + 11, "of the judge, and of the last model once that had been trained alone for a while"
    assert all("loss" in names for names in steps.values())
    assert {"smdebug/reductions/l2/judge/weights/judge/kernel:0", "scalar/learning_rate/0"} <= steps[1]
    assert {"smdebug/reductions/mean/gradients/judge/kernelGrad", "smdebug/reductions/mean/judge/outputs"} <= steps[1]
    assert any("smdebug/reductions/l2/later/weights/later/kernel:0" in names for names in steps.values())


STRANGE = """
import numpy, tensorflow as tf; keras = tf.keras
keras.mixed_precision.set_global_policy("mixed_float16")
words = keras.Input((1,), dtype="string", name="words")
numbers = keras.Input((2,), name="numbers")
looked_up = keras.layers.StringLookup(vocabulary=["a", "b"], output_mode="one_hot", dtype="float32")(words)
joined = keras.layers.Concatenate()([looked_up, numbers])
model = keras.Model([words, numbers], keras.layers.Dense(1, name="scores", dtype="float32")(joined))
model.compile("adam", "mse")
x = {"words": tf.constant([["a"], ["b"]] * 8), "numbers": tf.random.normal((16, 2), seed=1)}
data = tf.data.Dataset.from_tensor_slices((x, numpy.linspace(0.1, 0.9, 16, dtype="float32")[:, None])).batch(4)
model.fit(data, verbose=0)
"""


def test_nothing_is_told_of_what_nobody_asked_for(tmp_path, saved):
    ran = run(tmp_path, "--out", "run", program=STRANGE)
    assert told(ran) == [f"tornasole: capturing into {tmp_path / 'run'}"], "no classes of numbers, none of text"
    assert "smdebug/reductions/mean/gradients/scores/kernelGrad" in saved()[1], "of a scaled loss"


SEVERAL = """
import json, numpy, os, tensorflow as tf
import tornasole.tensorflow as smd
x = numpy.random.RandomState(0).randn(16, 4).astype("float32")
y = (x[:, 0] > 0).astype("int32")
loss_of = tf.keras.losses.SparseCategoricalCrossentropy(from_logits=True)

def fit():
    model.compile("sgd", loss_of)
    model.fit(x, y, batch_size=8, verbose=0)

def loop():
    optimizer = tf.keras.optimizers.SGD()
    for _ in range(2):
        with tf.GradientTape() as tape:
            loss = loss_of(y, model(x, training=True))
        gradients = tape.gradient(loss, model.trainable_variables)
        optimizer.apply_gradients(zip(gradients, model.trainable_variables))

for number, train in enumerate([fit, loop, fit, loop]):
    with open(os.environ["SMDEBUG_CONFIG_FILE_PATH"], "w") as file:
        json.dump({"LocalPath": f"run-{number}", "CollectionConfigurations": [{"CollectionName": "gradients"}]}, file)
    smd.del_hook()
    model = tf.keras.Sequential([tf.keras.Input((4,)), tf.keras.layers.Dense(2, name="scores")])
    train()
    smd.get_hook().close()
"""


def test_a_script_that_gives_up_its_hook_gets_another_at_its_next_training(tmp_path, saved):
    script, settings = tmp_path / "train.py", tmp_path / "settings.json"
    script.write_text(SEVERAL)
    settings.write_text("{}")
    clean = {key: value for key, value in os.environ.items() if not key.startswith(("TORNASOLE_", "SMDEBUG_"))}
    path = os.pathsep.join([os.path.join(PACKAGE, "tornasole", "run", "startup"), PACKAGE])
    clean.update({"PYTHONPATH": path, "TORNASOLE_CLOSE_WAIT_S": "120", "SMDEBUG_CONFIG_FILE_PATH": str(settings)})
    command = [sys.executable, str(script)]
    ran = subprocess.run(command, cwd=tmp_path, env=clean, capture_output=True, text=True, timeout=300, check=False)
    assert ran.returncode == 0, ran.stderr
    for number in range(4):
        assert "gradients/scores/kernelGrad" in saved(tmp_path / f"run-{number}")[0], number
