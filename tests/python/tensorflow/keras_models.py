"""Small Keras models of all kinds, with data for them."""

import numpy
import tensorflow as tf

layers = tf.keras.layers
IS_KERAS_3 = str(getattr(tf.keras, "__version__", "2")).startswith("3")


def dense(**options):
    """Two dense layers with a ReLU between them."""
    parts = [layers.Dense(3, name="first"), layers.ReLU(name="relu"), layers.Dense(2, name="last")]
    return tf.keras.Sequential([tf.keras.Input((4,)), *parts], **options)


def with_dropout():
    """Random numbers in training, and statistics kept by a layer."""
    parts = [layers.Dense(6), layers.BatchNormalization(), layers.Dropout(0.4), layers.Dense(2)]
    return tf.keras.Sequential([tf.keras.Input((4,)), *parts])


def branches():
    """A functional model with a shared layer and a nested model."""
    given = tf.keras.Input((4,))
    shared = layers.Dense(4, name="shared")
    inner = tf.keras.Sequential([layers.Dense(4, name="part")], name="inner")
    both = layers.Concatenate(name="both")([shared(given), shared(inner(given))])
    return tf.keras.Model(given, layers.Dense(2, name="last")(both))


class Block(layers.Layer):
    """A layer that is made of layers."""

    def __init__(self, **options):
        super().__init__(**options)
        self.inside = layers.Dense(4, name="inside")

    def call(self, values):
        return values + self.inside(values)


class Subclassed(tf.keras.Model):
    """A model whose layers are built at its first call."""

    def __init__(self):
        super().__init__()
        self.block = Block(name="block")
        self.last = layers.Dense(2, name="last")

    def call(self, values, training=False):
        return self.last(self.block(values))


class OwnStep(Subclassed):
    """A training step of its own, with control flow that autograph has to convert in Keras 2."""

    def train_step(self, data):
        values, labels = data[0], data[1]
        with tf.GradientTape() as tape:
            scores = self(values, training=True)
            loss = tf.reduce_mean(tf.keras.losses.sparse_categorical_crossentropy(labels, scores, from_logits=True))
        gradients = tape.gradient(loss, self.trainable_variables)
        self.optimizer.apply_gradients(zip(gradients, self.trainable_variables))
        return {"loss": loss}


class TwoOptimizers(Subclassed):
    """One optimizer for each layer; ``compile`` makes a third, which is not used."""

    def __init__(self, optimizers, is_holder):
        super().__init__()
        self.give = lambda: optimizers
        if is_holder:
            self.block_optimizer, self.last_optimizer = optimizers

    def train_step(self, data):
        with tf.GradientTape(persistent=True) as tape:
            scores = self(data[0], training=True)
            loss = tf.reduce_mean(tf.keras.losses.sparse_categorical_crossentropy(data[1], scores, from_logits=True))
        for layer, optimizer in zip((self.block, self.last), self.give()):
            gradients = tape.gradient(loss, layer.trainable_variables)
            optimizer.apply_gradients(zip(gradients, layer.trainable_variables))
        return {"loss": loss}


def recurrent():
    """A recurrent layer, whose cell runs in a loop."""
    parts = [layers.Reshape((2, 2)), layers.LSTM(3, name="lstm"), layers.Dense(2)]
    return tf.keras.Sequential([tf.keras.Input((4,)), *parts])


MODELS = [dense, branches, Subclassed, OwnStep, recurrent]


def batch(count=24, seed=0):
    """Values and labels."""
    random = numpy.random.RandomState(seed)
    return random.randn(count, 4).astype("float32"), random.randint(0, 2, count)


def compiled(model, optimizer="adam", **options):
    """The model, ready for ``fit``."""
    loss = tf.keras.losses.SparseCategoricalCrossentropy(from_logits=True)
    metrics = None if isinstance(model, OwnStep) else ["accuracy"]
    model.compile(optimizer, loss, metrics=metrics, **options)
    return model
