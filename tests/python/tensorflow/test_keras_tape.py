"""Custom loops: what a wrapped tape saves."""

import contextlib
import json

import keras_models
import numpy
import pytest
import tensorflow as tf
from keras_models import batch

import tornasole.tensorflow as smd

WEIGHTS = {"weights/first/kernel:0", "weights/last/kernel:0"}
BIASES = {"weights/first/bias:0", "weights/last/bias:0"}
GRADIENTS = {f"gradients/{layer}/{part}Grad" for layer in ("first", "last") for part in ("kernel", "bias")}
LAYERS = {f"{layer}/{side}" for layer in ("first", "relu", "last") for side in ("inputs", "outputs")}


def loop(hook, model, steps=3, optimizer=None, persistent=False, after=lambda step, loss: None):
    values, labels = batch()
    optimizer = optimizer or tf.keras.optimizers.SGD(0.1)
    loss_of = tf.keras.losses.SparseCategoricalCrossentropy(from_logits=True)
    for step in range(steps):
        tape = tf.GradientTape(persistent=persistent)
        with tape if hook is None else hook.wrap_tape(tape) as tape:
            loss = loss_of(labels, model(values, training=True))
        gradients = tape.gradient(loss, model.trainable_variables)
        if persistent:
            tape.gradient(loss, model.trainable_variables)
        optimizer.apply_gradients(zip(gradients, model.trainable_variables))
        after(step, loss)
    return [weight.tobytes() for weight in model.get_weights()]


def named(model):
    """In Keras 3 the names of variables begin with that of the model, which a tape does not know."""
    prefix = f"{model.name}/" if keras_models.IS_KERAS_3 else ""
    return [{name.replace("s/", f"s/{prefix}", 1) for name in names} for names in (WEIGHTS, BIASES, GRADIENTS)]


def test_everything_of_a_step(tmp_path, saved):
    tf.keras.utils.set_random_seed(5)
    bare = loop(None, keras_models.dense())
    tf.keras.utils.set_random_seed(5)
    model = keras_models.dense()
    hook = smd.KerasHook(tmp_path / "run", save_config=smd.SaveConfig(save_interval=2), save_all=True)
    before = model.get_weights()[0].copy()
    losses = []
    assert loop(hook, model, after=lambda step, loss: losses.append(float(loss))) == bare
    hook.close()
    weights, biases, gradients = named(model)
    assert saved() == {step: {"loss"} | weights | biases | gradients for step in (0, 2)}
    trial = smd.create_trial(str(tmp_path / "run"))
    assert trial.steps(mode=smd.modes.TRAIN) == [0, 2]
    assert set(trial.tensor_names(collection="weights")) == weights
    assert set(trial.tensor_names(collection="biases")) == biases
    assert set(trial.tensor_names(collection="gradients")) == gradients
    assert trial.tensor_names(collection="losses") == ["loss"]
    assert [float(trial.tensor("loss").value(step)) for step in (0, 2)] == [losses[0], losses[2]]
    kernel = next(name for name in weights if "first" in name)
    assert numpy.array_equal(trial.tensor(kernel).value(0), before), "before the update"


def test_the_calls_of_a_profiler_around_steps_change_nothing(tmp_path, saved):
    def run(name, calls_profiler):
        tf.keras.backend.clear_session()  # so that both models have the same names
        tf.keras.utils.set_random_seed(5)
        hook = smd.KerasHook(tmp_path / name, save_config=smd.SaveConfig(save_interval=2), save_all=True)
        model = keras_models.dense()
        with hook.profiler() if calls_profiler else contextlib.nullcontext():
            loop(hook, model, steps=2)
        if calls_profiler:
            hook.profiling_start_batch()
            hook.profiling_end_batch(mode=smd.modes.TRAIN)
        with hook.profiler(mode=smd.modes.EVAL) if calls_profiler else contextlib.nullcontext():
            loop(hook, model, steps=1)
        if calls_profiler:
            hook.profiling_end()
            with pytest.raises(RuntimeError, match="of the step"), hook.profiler():
                raise RuntimeError("of the step")
        hook.close()
        return saved(tmp_path / name)

    assert run("profiled", True) == run("plain", False)


def test_a_registered_model_shows_its_layers(tmp_path, saved):
    model = keras_models.dense()
    hook = smd.KerasHook(tmp_path / "run", include_collections=["layers", "inputs", "outputs", "weights"])
    hook.register_model(model)
    loop(hook, model)
    hook.close()
    assert saved() == {0: LAYERS | {"inputs", "predictions", "loss"} | WEIGHTS}


def test_metrics_tensors_and_scalars_of_a_loop(tmp_path, saved):
    hook = smd.KerasHook(tmp_path / "run", save_config=smd.SaveConfig(save_interval=2), include_collections=["mine"])
    hook.get_collection("mine").include("^mine")

    def after(step, loss):
        hook.record_tensor_value("accuracy", tf.constant(0.5))
        hook.save_tensor("mine_too", tf.constant([1.0, 2.0]), "mine")
        hook.save_scalar("rate", 0.1 * step)

    loop(hook, keras_models.dense(), after=after)
    hook.close()
    assert saved() == {step: {"loss", "accuracy", "mine_too", "scalar/rate"} for step in (0, 2)}


def test_a_persistent_tape_and_an_optimizer(tmp_path, saved):
    hook = smd.KerasHook(tmp_path / "run", include_collections=["optimizer_variables"])
    optimizer = tf.keras.optimizers.Adam()
    assert hook.wrap_optimizer(optimizer) is optimizer
    loop(hook, keras_models.dense(), optimizer=optimizer, persistent=True, steps=1)
    hook.close()
    assert any("iter" in name for name in saved()[0])


def function_loop(hook, is_compiled):
    """Eight steps of a program that has compiled its step, or has not; the weights in the end."""
    tf.keras.utils.set_random_seed(5)
    model = keras_models.dense()
    values, labels = map(tf.constant, batch())
    optimizer = tf.keras.optimizers.SGD(0.1, name="SGD")
    loss_of = tf.keras.losses.SparseCategoricalCrossentropy(from_logits=True)
    table = tf.Variable(tf.ones((4, 2)), name="table")
    noise = tf.random.Generator.from_seed(3)  # its state is a variable
    traced = []

    def step(given, wanted):
        traced.append(1)
        with tf.GradientTape() if hook is None else hook.wrap_tape(tf.GradientTape()) as tape:
            scores = model(given + 0.1 * noise.normal(tf.shape(given)), training=True)
            loss = loss_of(wanted, scores) + tf.reduce_mean(tf.gather(table, wanted) ** 2)
        sources = [*model.trainable_variables, table]
        gradients = tape.gradient(loss, sources)
        optimizer.apply_gradients(zip(gradients[:-1], sources[:-1]))
        table.assign_sub(0.1 * tf.convert_to_tensor(gradients[-1]))

    if hook is not None:
        hook.register_model(model)
        hook.wrap_optimizer(optimizer)
    step = tf.function(step) if is_compiled else step
    for _ in range(6):
        step(values, labels)
    for _ in range(2):
        step(values[:3], labels[:3])  # traced anew
    state = [*model.get_weights(), table.numpy(), noise.state.numpy()]
    return [array.tobytes() for array in state], len(traced)


def test_a_step_that_the_program_compiled(tmp_path, saved):
    bare = function_loop(None, is_compiled=True)
    trials = {}
    for name, is_compiled in (("run", True), ("eager", False)):
        schedule = smd.SaveConfig(save_interval=3, save_steps=[7])
        hook = smd.KerasHook(tmp_path / name, save_config=schedule, save_all=True)
        ended = function_loop(hook, is_compiled)
        hook.close()
        assert hook.report()["uncaptured"] == []
        assert not is_compiled or ended == bare, "the same bits, the state of random numbers too, traced no more often"
        smd.del_hook()
        trials[name] = smd.create_trial(str(tmp_path / name))
    steps = saved(tmp_path / "eager")
    assert sorted(steps) == [0, 3, 6, 7]
    assert {**saved(), 0: steps[0]} == steps and steps[0] <= saved()[0], "tracing makes the optimizer's variables"
    assert {"loss", "gradients/tableGrad", "weights/table:0", "first/outputs", "predictions"} <= saved()[7]
    for step, names in steps.items():
        for name in names:
            ours, eager = (trials[which].tensor(name).value(step) for which in ("run", "eager"))
            assert ours.shape == eager.shape and numpy.allclose(ours, eager, atol=1e-6), (name, step)


def test_a_compiled_step_that_returns_its_loss_has_exactly_that(tmp_path):
    hook = smd.KerasHook(tmp_path / "run", save_config=smd.SaveConfig(save_interval=2))
    model = keras_models.dense()
    values, _ = batch()

    @tf.function
    def step():
        with hook.wrap_tape(tf.GradientTape()) as tape:
            loss = tf.reduce_mean(model(values) ** 2)
        for variable, slope in zip(model.trainable_variables, tape.gradient(loss, model.trainable_variables)):
            variable.assign(variable - 0.1 * slope)
        return None, {"others": tf.constant([1.0, 2.0]), "loss": loss}

    returned = [float(step()[1]["loss"]) for _ in range(4)]
    hook.close()
    kept = smd.create_trial(str(tmp_path / "run")).tensor("loss")
    assert {step: float(kept.value(step)) for step in kept.steps()} == {0: returned[0], 2: returned[2]}


def test_the_model_of_a_loop_is_described(tmp_path):
    model = keras_models.dense()
    optimizer = tf.keras.optimizers.SGD(0.1)
    hook = smd.KerasHook(tmp_path / "run", save_config=smd.SaveConfig(save_interval=1), save_all=True)
    hook.register_model(model)
    hook.wrap_optimizer(optimizer)
    values, labels = batch()
    for _ in range(2):
        with hook.wrap_tape(tf.GradientTape()) as tape:
            loss = tf.reduce_mean(model(values, training=True) ** 2)
        gradients = tape.gradient(loss, model.trainable_variables)
        optimizer.apply_gradients([(gradients[-1], model.trainable_variables[-1])])  # of the others, by mistake, nothing
    hook.close()
    told = json.loads((tmp_path / "run" / "tornasole" / "worker_0_model.json").read_text())
    assert set(told["parameters"]) == WEIGHTS | BIASES, "by the names they are saved by"
    assert told["parameters"]["weights/first/bias:0"]["module"] == "first"
    assert [name for name in ("first", "relu", "last") if "call_order" in told["modules"][name]] == ["first", "relu", "last"]
    if keras_models.IS_KERAS_3:
        assert told["optimizers"][0]["groups"] == [["weights/last/bias:0"]], "those that it updates"


def test_what_a_function_cannot_give_is_told_of(tmp_path, saved):
    hook = smd.KerasHook(tmp_path / "run", save_all=True, save_config=smd.SaveConfig(save_interval=1))
    model = keras_models.dense()
    values, _ = batch()
    data = tf.data.Dataset.from_tensors(values).repeat(8)
    batches = iter(data)

    def slopes(given):
        with hook.wrap_tape(tf.GradientTape()) as tape:
            loss = tf.reduce_mean(model(given))
        return loss, tape.gradient(loss, model.trainable_variables)

    @tf.function
    def from_data():
        return slopes(next(batches))

    @tf.function
    def over_data():
        for one in data:
            slopes(one)

    from_data(), from_data()
    _, biases, gradients = named(model)
    assert set(hook.report()["uncaptured"]) == gradients, "to have them a batch would have to be taken"
    assert sum(1 for _ in batches) == 6, "none was"
    over_data()
    hook.close()
    assert set(hook.report()["uncaptured"]) == gradients | {"loss"}
    assert sorted(saved()) == [0, 1] and all({"loss"} | biases <= names for names in saved().values())


@pytest.mark.parametrize("what", ["a text", None])
def test_what_cannot_be_wrapped_comes_back(what, tmp_path):
    hook = smd.KerasHook(tmp_path / "run")
    assert hook.wrap_tape(what) is what and hook.wrap_optimizer(what) is what


def test_closing_leaves_nothing_on_a_tape(tmp_path):
    call = tf.keras.layers.Layer.__call__
    hook = smd.KerasHook(tmp_path / "run")
    tape = hook.wrap_tape(tf.GradientTape())
    hook.close()
    assert type(tape) is tf.GradientTape
    assert tf.keras.layers.Layer.__call__ is call


def test_what_random_numbers_are_drawn_from_is_no_weight(tmp_path, saved):
    layers = [tf.keras.layers.Dense(4, name="first"), tf.keras.layers.Dropout(0.5), tf.keras.layers.Dense(3, name="last")]
    model = tf.keras.Sequential(layers)
    values, labels = batch()
    model(values)
    hook = smd.KerasHook(tmp_path / "run", save_config=smd.SaveConfig(save_interval=1), save_all=True)
    with hook.wrap_tape(tf.GradientTape()) as tape:
        loss = tf.keras.losses.SparseCategoricalCrossentropy(from_logits=True)(labels, model(values, training=True))
    tape.gradient(loss, model.variables)
    hook.close()
    weights, biases, gradients = named(model)
    assert saved()[0] == {"loss"} | weights | biases | gradients
