"""Trainings of Keras 2 with eager execution off, in a process of their own; what each left, as JSON."""

import json
import os
import sys

os.environ.setdefault("TF_CPP_MIN_LOG_LEVEL", "3")
import numpy  # noqa: E402
import tensorflow as tf  # noqa: E402

import tornasole.tensorflow as smd  # noqa: E402

tf.compat.v1.disable_eager_execution()
tf.config.set_logical_device_configuration(
    tf.config.list_physical_devices("CPU")[0], [tf.config.LogicalDeviceConfiguration()] * 2
)
layers, optimizers = tf.keras.layers, tf.keras.optimizers.legacy


class AlsoFetches(tf.keras.callbacks.Callback):
    """Another callback that fetches tensors of the batch."""

    def __init__(self):
        super().__init__()
        self.seen = 0

    def _count(self, value):
        self.seen += 1

    def on_train_batch_begin(self, batch, logs=None):
        for tensor in self.model.outputs:
            self.model.train_function.fetches.append(tensor)
            self.model.train_function.fetch_callbacks[tensor] = self._count

    def on_train_batch_end(self, batch, logs=None):
        for tensor in self.model.outputs:
            self.model.train_function.fetches.remove(tensor)
            del self.model.train_function.fetch_callbacks[tensor]


RUNS = {
    "all": {"save_all": True},
    "default": {},
    "pattern": {"include_regex": ["dense"]},
    "before": {"save_all": True},
    "after": {"save_all": True},
    "generator": {"save_all": True},
    "older": {"include_collections": ["gradients"]},
    "ends": {"include_collections": ["inputs", "outputs"]},
    "ends of data": {"include_collections": ["inputs", "outputs", "layers"]},
    "of optimizer": {"include_collections": ["mine", "gradients"]},
    "given": {"include_collections": ["mine"]},
    "added": {"include_collections": ["mine", "other"]},
    "none": None,
    "replicas": {"save_all": True, "include_workers": "all"},
    "ends of replicas": {"include_collections": ["inputs", "outputs"]},
    "replicas alone": None,
    "parts": {"save_all": True},
    "parts alone": None,
}


def give_tensors(hook):
    """Tensors of the graph, and one that has a value."""
    hook.save_tensor("constant", tf.constant([1, 2, 3]), "mine")
    hook.save_tensor("variable", tf.Variable([4.0, 5.0]), ["mine"])
    hook.save_tensor("array", numpy.arange(3), "mine")
    hook.save_tensor("random", tf.random.uniform((2,)), "mine")
    hook.save_tensor("unfed", tf.compat.v1.placeholder(tf.float32, ()) * 2.0, "mine")


def make_model(what):
    parts = [layers.Flatten(input_shape=(4,), name="flat"), layers.Dense(3, "relu", name="dense")]
    parts += [layers.Dropout(0.5, name="drop"), layers.Dense(2, "softmax", name="last")]
    if "replicas" in what:  # the draws of a dropout depend on which of two operations is run first
        del parts[2]
    if "parts" not in what:
        return tf.keras.Sequential(parts)
    given = tf.keras.Input((4,))
    shared = layers.Dense(4, name="shared")
    return tf.keras.Model(given, tf.keras.Sequential(parts, name="inner")(shared(shared(given))))


def run(what, directory):
    tf.keras.backend.clear_session()
    tf.keras.utils.set_random_seed(3)
    numbers = numpy.random.RandomState(0)
    values, labels = numbers.rand(16, 4), numbers.randint(0, 2, 16)
    is_mirrored = "replicas" in what
    strategy = tf.distribute.MirroredStrategy(["CPU:0", "CPU:1"]) if is_mirrored else tf.distribute.get_strategy()
    with strategy.scope():
        model = make_model(what)
    hook = None
    optimizer = tf.compat.v1.train.RMSPropOptimizer(0.1) if what == "older" else optimizers.Adam()
    if RUNS[what] is not None:
        hook = smd.KerasHook(directory, save_config=smd.SaveConfig(save_interval=2), **RUNS[what])
        assert hook.wrap_optimizer(optimizer) is optimizer
    if what == "of optimizer":
        hook.get_collection("mine").include("Adam")
    if what == "given":
        give_tensors(hook)
    if what == "added":
        hook.get_collection("mine").add_for_mode([model.layers[1].output], mode=smd.modes.TRAIN)
        hook.get_collection("mine").include("nothing that is there")
        hook.get_collection("other").add(model.layers[1].output)
        hook.get_collection("other").add(tf.identity(model.layers[1].output * 2.0, name="twice"))
    with strategy.scope():
        model.compile(optimizer, "sparse_categorical_crossentropy", metrics=["accuracy"])
    other = AlsoFetches() if what in ("before", "after") else None
    callbacks = [one for one in ([other, hook] if what == "before" else [hook, other]) if one is not None]
    if what in ("generator", "ends of data") or is_mirrored:
        data = tf.data.Dataset.from_tensor_slices((values, labels)).batch(4).repeat()
        model.fit(data, steps_per_epoch=4, verbose=0, callbacks=callbacks)
    else:
        model.fit(values, labels, batch_size=4, verbose=0, shuffle=False, callbacks=callbacks)
    model.evaluate(values, labels, batch_size=4, verbose=0, callbacks=[hook] if hook else [])
    model.predict(values, batch_size=4, verbose=0, callbacks=[hook] if hook else [])
    replicas = getattr(model, "_distributed_model_cache", {}).values()
    functions = [one._distributed_function for one in replicas] if is_mirrored else []
    functions += [model.train_function, model.test_function, model.predict_function]
    left = [len(f.fetches) + len(f.fetch_callbacks) for f in functions if hasattr(f, "fetches")]
    answer = {"left": left, "seen": other.seen if other else 0}
    answer["final"] = [weight.tobytes().hex() for weight in model.get_weights()]
    if hook is not None:
        hook.close()
        answer["errors"] = hook.report()["errors"]
        answer["uncaptured"] = hook.report()["uncaptured"]
        trial = smd.create_trial(directory)
        answer["names"], answer["workers"] = trial.tensor_names(), trial.workers()
        answer["steps"] = {mode.name: trial.steps(mode=mode) for mode in trial.modes()}
        for collection in ("weights", "biases", "gradients", "layers", "outputs", "optimizer_variables", "losses"):
            answer[collection] = trial.tensor_names(collection=collection)
        for collection in ("inputs", "mine", "other"):
            answer[collection] = trial.tensor_names(collection=collection)
        if what.startswith("ends"):
            answer["given"] = values[8:12].tolist(), labels[8:12].tolist()
            answer["values"] = {n: trial.tensor(n).value(2).tolist() for n in ("inputs", "labels", "predictions")}
        if what == "given":
            answer["values"] = {n: trial.tensor(n).value(0).tolist() for n in answer["mine"]}
    return answer


if __name__ == "__main__":
    print(json.dumps({what: run(what, f"{sys.argv[1]}/{what}") for what in RUNS}))
