"""Keras 3 on the PyTorch backend, through the hook that captures it on TensorFlow."""

import keras
import numpy
import pytest
import torch
from keras import layers

from tornasole import SaveConfig, modes
from tornasole.tensorflow import KerasHook
from tornasole.trials import create_trial

torch.set_num_threads(1)
RATE = 0.05


def samples():
    x = numpy.random.default_rng(0).normal(size=(96, 8)).astype("float32")
    return x, (x[:, 0] > 0).astype("float32")


def sequential():
    first, last = layers.Dense(6, activation="relu", name="first"), layers.Dense(1, name="last")
    model = keras.Sequential([keras.Input((8,)), first, layers.Dropout(0.3), last])
    model.compile(keras.optimizers.SGD(RATE), "mse", metrics=["mae"])
    return model, *samples()


def functional():
    a, b = keras.Input((8,), name="a"), keras.Input((8,), name="b")
    shared = layers.Dense(4, activation="tanh", name="shared")
    both = layers.Concatenate(name="both")([shared(a), shared(b)])
    model = keras.Model([a, b], {"p": layers.Dense(1, name="p")(both), "q": layers.Dense(1, name="q")(both)})
    model.compile(keras.optimizers.Adam(clipnorm=0.1), {"p": "mse", "q": "mae"})
    x, y = samples()
    return model, {"a": x, "b": 2 * x}, {"p": y, "q": x[:, :1]}


class Own(keras.Model):
    def __init__(self):
        super().__init__()
        self.hidden, self.out = layers.Dense(6, activation="relu", name="hidden"), layers.Dense(1, name="out")

    def call(self, x, training=False):
        return self.out(self.hidden(x))


def subclassed():
    model = Own()
    model.compile("adam", "mse")
    return model, *samples()


MODELS = [sequential, functional, subclassed]


def weights_after(make, callbacks=()):
    keras.utils.clear_session()
    keras.utils.set_random_seed(0)
    model, x, y = make()
    history = model.fit(x, y, epochs=2, batch_size=32, verbose=0, validation_split=0.25, callbacks=list(callbacks))
    return [*model.get_weights(), torch.rand(4).numpy()], history.history


@pytest.mark.parametrize("make", MODELS, ids=[make.__name__ for make in MODELS])
def test_bits_are_the_same(make, tmp_path):
    bare, bare_history = weights_after(make)
    hook = KerasHook(out_dir=str(tmp_path / "run"), save_all=True, save_config=SaveConfig(save_interval=2))
    hooked, history = weights_after(make, [hook])
    assert history == bare_history
    assert all((one == other).all() for one, other in zip(bare, hooked)) and len(bare) == len(hooked)
    assert hook.report()["uncaptured"] == []


def test_names_and_values(tmp_path):
    hook = KerasHook(out_dir=str(tmp_path / "run"), save_all=True, save_config=SaveConfig(save_interval=1))
    _, history = weights_after(sequential, [hook])
    hook.close()
    trial = create_trial(str(tmp_path / "run"))
    expected = {
        "losses": {"loss"},
        "metrics": {"mae", "batch"},
        "weights": {"first/weights/first/kernel:0", "last/weights/last/kernel:0"},
        "biases": {"first/weights/first/bias:0", "last/weights/last/bias:0"},
        "gradients": {f"gradients/{layer}/{what}Grad" for layer in ("first", "last") for what in ("kernel", "bias")},
        "layers": {f"{layer}/{side}" for layer in ("first", "dropout", "last") for side in ("inputs", "outputs")},
        "inputs": {"inputs"},
        "outputs": {"labels", "predictions"},
    }
    for collection, names in expected.items():
        assert names <= set(trial.tensor_names(collection=collection)), collection
    steps = trial.steps(mode=modes.TRAIN)
    assert len(steps) == 6 and len(trial.steps(mode=modes.EVAL)) == 2
    value = lambda name, step: trial.tensor(name).value(step, mode=modes.TRAIN)  # noqa: E731
    for layer in ("first", "last"):
        name = f"{layer}/weights/{layer}/kernel:0"
        for before, after in zip(steps, steps[1:]):
            change = value(name, before) - value(name, after)
            gradient = value(f"gradients/{layer}/kernelGrad", after)
            numpy.testing.assert_allclose(change, RATE * gradient, rtol=1e-3, atol=1e-7)
    numpy.testing.assert_array_equal(value("first/outputs", 0), value("dropout/inputs", 0))
    numpy.testing.assert_array_equal(value("last/outputs", 0), value("predictions", 0))
    assert value("loss", steps[-1]) == pytest.approx(history["loss"][-1], rel=1e-5)


def test_single_batches(tmp_path):
    keras.utils.clear_session()
    model, x, y = sequential()
    hook = KerasHook(out_dir=str(tmp_path / "run"), save_all=True, save_config=SaveConfig(save_interval=2))
    hook.register_model(model)
    for _ in range(4):
        model.train_on_batch(x[:32], y[:32])
    hook.close()
    trial = create_trial(str(tmp_path / "run"))
    assert trial.steps() == [0, 2]
    assert {"loss", "gradients/first/kernelGrad", "first/outputs"} <= set(trial.tensor_names(step=2))


def test_a_compiled_step_says_what_cannot_be_had(tmp_path):
    keras.utils.clear_session()
    model, x, y = sequential()
    model.compile("sgd", "mse", jit_compile=True)
    # Not compiled in fact, which would take long: the hook goes by what the model was told.
    own = lambda data: model.train_step(data[0])  # noqa: E731
    model.make_train_function = lambda force=False: setattr(model, "train_function", own)
    hook = KerasHook(out_dir=str(tmp_path / "run"), save_all=True, save_config=SaveConfig(save_interval=1))
    model.fit(x[:32], y[:32], verbose=0, callbacks=[hook])
    assert {"first/outputs", "gradients/first/kernelGrad"} <= set(hook.report()["uncaptured"])
    hook.close()
    assert {"loss", "first/weights/first/kernel:0"} <= set(create_trial(str(tmp_path / "run")).tensor_names())


HEAD = """
import keras, numpy, torch
from keras import layers
torch.set_num_threads(1)
keras.utils.set_random_seed(0)
x = numpy.random.default_rng(0).normal(size=(192, 8)).astype("float32")
y = (x[:, 0] > 0).astype("int32")
model = keras.Sequential([keras.Input((8,)), layers.Dense(16, activation="relu"), layers.Dense(2)])
"""
PROGRAMS = [
    (
        "fit",
        """
model.compile("adam", keras.losses.SparseCategoricalCrossentropy(from_logits=True), metrics=["accuracy"])
print(model.fit(x, y, epochs=3, verbose=0, validation_split=0.2).history)
""",
        {"loss", "val_loss", "accuracy", "gradients/dense/kernelGrad", "dense/outputs"},
    ),
    (
        "a loop in PyTorch's way",
        """
optimizer, loss = torch.optim.Adam(model.parameters(), 1e-2), torch.nn.CrossEntropyLoss()
for _ in range(40):
    optimizer.zero_grad()
    loss(model(torch.tensor(x)), torch.tensor(y).long()).backward()
    optimizer.step()
""",
        {"CrossEntropyLoss_output_0", "Sequential_output_0"},
    ),
]


@pytest.mark.parametrize("what, text, names", PROGRAMS, ids=[row[0] for row in PROGRAMS])
def test_programs_without_a_hook(what, text, names, run_program, tmp_path):
    text = HEAD + text + "print([float(abs(w).sum()) for w in model.get_weights()])\n"
    ran = run_program(text, under=["--out", "out"])
    assert ran.returncode == 0, ran.stderr
    assert ran.stdout == run_program(text).stdout
    assert "tornasole: WARNING" not in ran.stderr and "nothing was captured" not in ran.stderr
    assert not (tmp_path / "out-2").exists()
    assert names <= set(create_trial(str(tmp_path / "out")).tensor_names())
