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


def run(tmp_path, *under, imports="tensorflow as tf; keras = tf.keras"):
    script = tmp_path / "train.py"
    script.write_text(PROGRAM.format(imports=imports))
    clean = {key: value for key, value in os.environ.items() if not key.startswith(("TORNASOLE_", "SMDEBUG_"))}
    clean.update({"PYTHONPATH": PACKAGE, "TORNASOLE_CLOSE_WAIT_S": "120", "TF_CPP_MIN_LOG_LEVEL": "3"})
    command = [sys.executable, *(["-m", "tornasole", "run", *under] if under else []), str(script)]
    ran = subprocess.run(command, cwd=tmp_path, env=clean, capture_output=True, text=True, timeout=300, check=False)
    assert ran.returncode == 0, ran.stderr
    return ran


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
