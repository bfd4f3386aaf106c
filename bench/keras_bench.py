"""What capture costs a Keras training: steps with nothing due, losses and metrics at every step, and statistics of all.

    PYTHONPATH=build/py311/python .venvs/tensorflow/bin/python bench/keras_bench.py [--steps 800]

In one ``fit`` the hook is told of every other block of steps. Each line: processor time of the training thread in a step
that it is not told of, and what a step that it is told of takes more than such steps next to it; each as the median.
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


BLOCK = 8  # steps; the first of them does not count


class Turns(tf.keras.callbacks.Callback):
    """The time of each step, from one that begins to the next; the hook is told of every other block of steps."""

    _supports_tf_logs = True
    async_safe = True

    def __init__(self, hook):
        super().__init__()
        self._hook = hook
        self._times = []
        self._last = None

    def set_model(self, model):
        super().set_model(model)
        self._hook.set_model(model)

    def on_train_begin(self, logs=None):
        self._hook.on_train_begin(logs)

    def on_train_end(self, logs=None):
        self._hook.on_train_end(logs)

    def on_train_batch_begin(self, batch, logs=None):
        now = time.thread_time()
        if self._last is not None:
            self._times.append(now - self._last)
        self._last = now
        if self._is_told(batch):
            self._hook.on_train_batch_begin(batch, logs)

    def on_train_batch_end(self, batch, logs=None):
        if self._is_told(batch):
            self._hook.on_train_batch_end(batch, logs)

    @staticmethod
    def _is_told(batch):
        return batch // BLOCK % 2 == 1

    def medians(self):
        """(of a step without the hook, of what the hook adds to one), in seconds."""
        blocks = [statistics.median(self._times[i + 1 : i + BLOCK]) for i in range(0, len(self._times) - BLOCK, BLOCK)]
        added = [blocks[i] - (blocks[i - 1] + blocks[i + 1]) / 2 for i in range(1, len(blocks) - 1, 2)]
        return statistics.median(blocks[::2]), statistics.median(added)


def make_model():
    sizes = [256, 256, 128]
    layers = [tf.keras.layers.Dense(size, activation="relu") for size in sizes]
    model = tf.keras.Sequential([tf.keras.Input((256,)), *layers, tf.keras.layers.Dense(10)])
    model.compile("adam", tf.keras.losses.SparseCategoricalCrossentropy(from_logits=True), metrics=["accuracy"])
    return model


def main():
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--steps", type=int, default=800)
    options = parser.parse_args()
    numbers = numpy.random.default_rng(0)
    values, labels = numbers.normal(size=(64, 256)).astype("float32"), numbers.integers(0, 10, 64)
    data = tf.data.Dataset.from_tensors((values, labels)).repeat(options.steps)
    model = make_model()
    model.fit(data.take(20), verbose=0)
    for name, settings in SCENARIOS.items():
        directory = tempfile.mkdtemp(prefix="keras-bench-")
        hook = smd.KerasHook(directory + "/run", **settings)
        turns = Turns(hook)
        model.fit(data, verbose=0, callbacks=[turns])
        hook.close()
        shutil.rmtree(directory, ignore_errors=True)
        bare, added = (round(1e6 * seconds, 1) for seconds in turns.medians())
        print(json.dumps({"scenario": name, "bare_us": bare, "tornasole_us": added}), flush=True)


if __name__ == "__main__":
    main()
