"""What capture costs a Keras training: steps with nothing due, losses and metrics at every step, and statistics of all.

    PYTHONPATH=build/py311/python .venvs/tensorflow/bin/python bench/keras_bench.py [--steps 400]

Each line: processor time of the training thread per step without the hook, as the lower quartile over rounds that take
turns, and what the hook adds to it.
"""

import argparse
import json
import os
import shutil
import statistics
import tempfile
import time

os.environ.setdefault("TF_CPP_MIN_LOG_LEVEL", "3")
os.environ.setdefault("TORNASOLE_LOG_LEVEL", "off")

import numpy
import tensorflow as tf

import tornasole.tensorflow as smd

SCENARIOS = {
    "nothing due": {"save_config": smd.SaveConfig(save_interval=10**9, start_step=1), "save_all": True},
    "losses and metrics": {"save_config": smd.SaveConfig(save_interval=1)},
    "statistics of all": {
        "save_config": smd.SaveConfig(save_interval=1),
        "include_collections": ["weights", "biases", "gradients", "layers"],
        "reduction_config": smd.ReductionConfig(reductions=["min", "max", "mean"], norms=["l2"]),
    },
}


class Clock(tf.keras.callbacks.Callback):
    """The time of each step, between one that begins and the next."""

    def __init__(self):
        super().__init__()
        self.times = []
        self._last = None

    def on_train_batch_begin(self, batch, logs=None):
        now = time.thread_time()
        if self._last is not None:
            self.times.append(now - self._last)
        self._last = now


def make_model():
    sizes = [256, 256, 128]
    layers = [tf.keras.layers.Dense(size, activation="relu") for size in sizes]
    model = tf.keras.Sequential([tf.keras.Input((256,)), *layers, tf.keras.layers.Dense(10)])
    model.compile("adam", tf.keras.losses.SparseCategoricalCrossentropy(from_logits=True), metrics=["accuracy"])
    return model


def steps_of(model, data, *callbacks):
    clock = Clock()
    model.fit(data, epochs=1, verbose=0, callbacks=[clock, *callbacks])
    return clock.times[5:]


def main():
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--steps", type=int, default=400)
    parser.add_argument("--rounds", type=int, default=3)
    options = parser.parse_args()
    numbers = numpy.random.default_rng(0)
    values, labels = numbers.normal(size=(64, 256)).astype("float32"), numbers.integers(0, 10, 64)
    data = tf.data.Dataset.from_tensors((values, labels)).repeat(options.steps)
    model = make_model()
    steps_of(model, data.take(20))
    for name, settings in SCENARIOS.items():
        directory = tempfile.mkdtemp(prefix="keras-bench-")
        hook = smd.KerasHook(directory + "/run", **settings)
        bare, hooked = [], []
        for _ in range(options.rounds):
            bare += steps_of(model, data)
            hooked += steps_of(model, data, hook)
        hook.close()
        shutil.rmtree(directory, ignore_errors=True)
        before, after = (statistics.quantiles(times, n=4)[0] for times in (bare, hooked))
        extra = 1e6 * (after - before)
        print(json.dumps({"scenario": name, "bare_us": round(1e6 * before, 1), "tornasole_us": round(extra, 1)}), flush=True)


if __name__ == "__main__":
    main()
