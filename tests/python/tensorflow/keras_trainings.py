"""Small Keras trainings, healthy and sick: `keras_trainings.py NAME` runs one."""

import sys

CENTRES_SEED = 99
FEATURES, CLASSES = 20, 4


def samples(count, seed, noise=1.0):
    """Points around one centre for each class."""
    import numpy

    random = numpy.random.default_rng(seed)
    centres = numpy.random.default_rng(CENTRES_SEED).normal(size=(CLASSES, FEATURES)) * 1.2
    labels = random.integers(0, CLASSES, count)
    return (centres[labels] + noise * random.normal(size=(count, FEATURES))).astype("float32"), labels


def dense(activation="relu", units=64, **settings):
    import keras

    hidden = [keras.layers.Dense(units, activation=activation, **settings) for _ in range(2)]
    return keras.Sequential([keras.layers.Input((FEATURES,)), *hidden, keras.layers.Dense(CLASSES)])


def fit(model, optimizer, data=None, epochs=6):
    import keras

    loss = keras.losses.SparseCategoricalCrossentropy(from_logits=True)
    model.compile(optimizer, loss, metrics=["accuracy"])
    model.fit(*(data or samples(1000, 0)), epochs=epochs, verbose=0, validation_data=samples(300, 5))


def with_adam():
    import keras

    fit(dense(), keras.optimizers.Adam(1e-3))


def with_momentum():
    import keras

    fit(dense("tanh"), keras.optimizers.SGD(0.05, momentum=0.9))


def rate_too_high():
    import keras

    fit(dense(), keras.optimizers.SGD(50.0))


def dead_units():
    import keras

    fit(dense(bias_initializer=keras.initializers.Constant(-30)), keras.optimizers.SGD(0.01))


def zeros_that_stay():
    import keras

    fit(dense("tanh", kernel_initializer="zeros"), keras.optimizers.SGD(0.1))


def nan_in_the_data():
    """Rectifiers may make zeros of NaN, so that the loss stays a number."""
    import keras

    points, labels = samples(1000, 0)
    points[700, 3] = float("nan")
    fit(dense(), keras.optimizers.Adam(1e-3), (points, labels))


# training -> the rule that has to be named as a cause; none: nothing may be said
TRAININGS = {
    "with_adam": None,
    "with_momentum": None,
    "rate_too_high": "LearningRateSanity",
    "dead_units": "DeadRelu",
    "zeros_that_stay": "PoorWeightInitialization",
    "nan_in_the_data": "NonFiniteProvenance",
}

if __name__ == "__main__":
    import keras

    keras.utils.set_random_seed(1)
    globals()[sys.argv[1]]()
