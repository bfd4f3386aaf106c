"""A small Keras classifier: weights, gradients and layers every tenth step, out of a compiled training step.

    python examples/python/keras_classifier.py runs/keras
    tornasole ls runs/keras
"""

import os
import sys

os.environ.setdefault("TF_CPP_MIN_LOG_LEVEL", "2")

import numpy  # noqa: E402
import tensorflow as tf  # noqa: E402

import tornasole.tensorflow as smd  # noqa: E402


def main(out_dir):
    tf.keras.utils.set_random_seed(0)
    layers = [tf.keras.layers.Dense(32, activation="relu", name="hidden"), tf.keras.layers.Dense(4, name="scores")]
    model = tf.keras.Sequential([tf.keras.Input((20,)), *layers])
    model.compile("adam", tf.keras.losses.SparseCategoricalCrossentropy(from_logits=True), metrics=["accuracy"])

    hook = smd.KerasHook(
        out_dir=out_dir,
        save_config=smd.SaveConfig(save_interval=10),
        include_collections=["weights", "biases", "gradients", "layers"],
    )
    numbers = numpy.random.default_rng(0)
    labels = numbers.integers(0, 4, 640)
    inputs = (numbers.normal(size=(4, 20)) * 2)[labels] + numbers.normal(size=(640, 20))
    history = model.fit(inputs.astype("float32"), labels, batch_size=32, epochs=3, verbose=0, callbacks=[hook])
    hook.close()
    print(f"the last loss is {history.history['loss'][-1]:.3f}; 'tornasole ls {out_dir}' shows the run")


if __name__ == "__main__":
    main(sys.argv[1] if len(sys.argv) > 1 else "runs/keras")
