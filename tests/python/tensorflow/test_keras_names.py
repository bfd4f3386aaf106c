"""What is captured of fit, evaluate and predict, and under which names, in eager and in compiled steps."""

import keras_models
import numpy
import pytest
import tensorflow as tf
from keras_models import batch, compiled

import tornasole.tensorflow as smd

WAYS = {"compiled": {"run_eagerly": False}, "eager": {"run_eagerly": True}, "jit": {"jit_compile": True}}
WEIGHTS = {"first/weights/first/kernel:0", "last/weights/last/kernel:0"}
BIASES = {"first/weights/first/bias:0", "last/weights/last/bias:0"}
GRADIENTS = {f"gradients/{layer}/{part}Grad" for layer in ("first", "last") for part in ("kernel", "bias")}
LAYERS = {f"{layer}/{side}" for layer in ("first", "relu", "last") for side in ("inputs", "outputs")}
LOGS = {"loss", "accuracy", "batch"}
EVERY_STEP = smd.SaveConfig(save_interval=1)


def fit(model, hook, **options):
    values, labels = batch()
    model.fit(values, labels, batch_size=8, verbose=0, shuffle=False, callbacks=[hook], **options)
    return values, labels


def is_optimizers(name):
    return "adam" in name.lower() or name in ("iteration:0", "learning_rate:0")


@pytest.mark.parametrize("way", WAYS)
def test_everything_of_a_step(way, tmp_path, saved):
    model = compiled(keras_models.dense(), **WAYS[way])
    hook = smd.KerasHook(tmp_path / "run", save_config=smd.SaveConfig(save_interval=2), save_all=True)
    before = [numpy.array(weight) for weight in model.get_weights()]
    values, labels = fit(model, hook)
    hook.close()
    assert hook.report()["errors"] == [] and hook.report()["uncaptured"] == []
    steps = saved()
    assert sorted(steps) == [0, 2]
    everything = WEIGHTS | BIASES | GRADIENTS | LAYERS | LOGS | {"inputs", "labels", "predictions"}
    for names in steps.values():
        assert {name for name in names if not is_optimizers(name)} == everything
        assert any(is_optimizers(name) for name in names)
    trial = smd.create_trial(str(tmp_path / "run"))
    assert trial.steps(mode=smd.modes.TRAIN) == [0, 2]
    assert numpy.array_equal(trial.tensor("inputs").value(0), values[:8])
    assert numpy.array_equal(trial.tensor("labels").value(0).ravel(), labels[:8])
    first = trial.tensor("first/outputs").value(0)
    numpy.testing.assert_allclose(first, values[:8] @ before[0] + before[1], rtol=1e-5, atol=1e-6)
    numpy.testing.assert_array_equal(trial.tensor("relu/outputs").value(0), numpy.maximum(first, 0))
    numpy.testing.assert_array_equal(trial.tensor("predictions").value(0), trial.tensor("last/outputs").value(0))
    for name, weight in zip(("first/weights/first/kernel:0", "first/weights/first/bias:0"), model.get_weights()):
        numpy.testing.assert_array_equal(trial.tensor(name).value(2), weight), "after the update"
    assert set(trial.tensor_names(collection="biases")) == BIASES
    assert set(trial.tensor_names(collection="weights")) == WEIGHTS
    assert set(trial.tensor_names(collection="gradients")) == GRADIENTS
    assert set(trial.tensor_names(collection="layers")) == LAYERS
    assert set(trial.tensor_names(collection="losses")) == {"loss"}
    assert set(trial.tensor_names(collection="metrics")) == {"accuracy", "batch"}


def test_gradients_are_those_of_the_loss(tmp_path):
    model = compiled(keras_models.dense(), optimizer="sgd")
    values, labels = batch()
    with tf.GradientTape() as tape:
        scores = model(values[:8], training=True)
        loss = tf.keras.losses.SparseCategoricalCrossentropy(from_logits=True)(labels[:8], scores)
    expected = tape.gradient(loss, model.trainable_variables)
    hook = smd.KerasHook(tmp_path / "run", include_collections=["gradients"])
    fit(model, hook)
    hook.close()
    trial = smd.create_trial(str(tmp_path / "run"))
    name = "gradients/first/kernelGrad"
    numpy.testing.assert_allclose(trial.tensor(name).value(0), expected[0].numpy(), rtol=1e-5, atol=1e-7)


def inside(names):
    return {name for name in names if "/inputs" in name or "/outputs" in name}


STRUCTURES = [
    (
        "a shared layer has two calls, a nested model shows its parts",
        keras_models.branches,
        {f"shared/{side}_{i}" for side in ("inputs", "outputs") for i in range(2)}
        | {"inner/inputs", "inner/outputs", "inner/part/inputs", "inner/part/outputs"}
        | {"both/inputs_0", "both/inputs_1", "both/outputs", "last/inputs", "last/outputs"},
    ),
    (
        "a layer of the user's own shows its parts",
        keras_models.Subclassed,
        {f"{name}/{side}" for name in ("block", "block/inside", "last") for side in ("inputs", "outputs")},
    ),
    (
        "a training step of the user's own",
        keras_models.OwnStep,
        {f"{name}/{side}" for name in ("block", "block/inside", "last") for side in ("inputs", "outputs")},
    ),
    (
        "a recurrent layer is one layer",
        keras_models.recurrent,
        {f"{name}/{side}" for name in ("reshape", "lstm", "dense") for side in ("inputs", "outputs")},
    ),
]


@pytest.mark.parametrize("way", ["compiled", "eager"])
@pytest.mark.parametrize("what, make, names", STRUCTURES, ids=[case[0] for case in STRUCTURES])
def test_structures(what, make, names, way, tmp_path, saved):
    model = compiled(make(), **WAYS[way])
    hook = smd.KerasHook(tmp_path / "run", include_collections=["layers", "gradients"])
    fit(model, hook)
    hook.close()
    assert inside(saved()[0]) == names
    gradients = [name for name in saved()[0] if name.startswith("gradients/")]
    assert len(gradients) == len(model.trainable_variables)
    assert hook.report()["uncaptured"] == []


def test_several_inputs_and_outputs(tmp_path, saved):
    one, two = tf.keras.Input((4,), name="one"), tf.keras.Input((4,), name="two")
    both = tf.keras.layers.Add(name="add")([one, two])
    left, right = tf.keras.layers.Dense(1, name="left")(both), tf.keras.layers.Dense(1, name="right")(both)
    model = tf.keras.Model([one, two], [left, right])
    model.compile("sgd", ["mse", "mse"])
    hook = smd.KerasHook(tmp_path / "run", include_collections=["inputs", "outputs"])
    values, _ = batch()
    model.fit([values, values], [values[:, :1], values[:, 1:2]], batch_size=8, verbose=0, callbacks=[hook])
    hook.close()
    names = {name for name in saved()[0] if name.split("_")[0] in ("inputs", "labels", "predictions")}
    assert names == {f"{name}_{i}" for name in ("inputs", "labels", "predictions") for i in range(2)}


def test_modes_steps_and_the_end_of_an_epoch(tmp_path, saved):
    model = compiled(keras_models.dense())
    schedule = smd.SaveConfig(save_interval=100)
    hook = smd.KerasHook(tmp_path / "run", save_config=schedule, include_collections=["layers"])
    values, labels = batch()
    evaluation = {"validation_data": (values[:8], labels[:8])}
    model.fit(values, labels, batch_size=8, epochs=2, verbose=0, callbacks=[hook], **evaluation)
    model.evaluate(values, labels, batch_size=8, verbose=0, callbacks=[hook])
    model.predict(values, batch_size=8, verbose=0, callbacks=[hook])
    hook.close()
    steps = saved()
    epoch = LOGS | {"val_loss", "val_accuracy"}
    assert steps[0] == LAYERS | LOGS
    assert steps[3] == LAYERS | epoch, "the first batch of the evaluation, which is the last of the epoch"
    assert steps[7] == epoch, "the end of an epoch, whatever the schedules say"
    assert steps[11] == LAYERS | {"batch"}
    assert sorted(steps) == [0, 3, 7, 11]
    assert hook.mode_steps[smd.modes.TRAIN] == 5 and hook.mode_steps[smd.modes.EVAL] == 4
    trial = smd.create_trial(str(tmp_path / "run"))
    assert trial.steps(mode=smd.modes.PREDICT) == [0] and trial.steps(mode=smd.modes.EVAL) == [0, 1]


def test_a_collection_that_is_switched_off_stays_so_at_the_end_of_an_epoch(tmp_path, saved):
    hook = smd.KerasHook(tmp_path / "run")
    hook.get_collection("metrics").save_config.end_step = 0
    fit(compiled(keras_models.dense()), hook)
    hook.close()
    assert saved() == {0: {"loss"}, 2: {"loss"}}


def test_patterns_choose_layers_and_gradients(tmp_path, saved):
    hook = smd.KerasHook(tmp_path / "run", include_collections=["layers", "gradients", "mine"])
    hook.get_collection("layers").include("relu")
    hook.get_collection("gradients").include("^gradients/last")
    hook.get_collection("mine").add_keras_layer(type("Named", (), {"name": "first"}))
    fit(compiled(keras_models.dense()), hook)
    hook.close()
    names = saved()[0] - LOGS
    assert names == {"relu/inputs", "relu/outputs", "first/outputs"} | {g for g in GRADIENTS if "last" in g}


def test_other_steps_want_other_tensors(tmp_path, saved):
    hook = smd.KerasHook(tmp_path / "run", save_config=EVERY_STEP, include_collections=["layers", "gradients"])
    hook.get_collection("gradients").save_config = smd.SaveConfig(save_interval=2, start_step=1)
    fit(compiled(keras_models.dense()), hook)
    hook.close()
    assert saved()[0] == saved()[1] == LAYERS | LOGS
    assert saved()[2] == LAYERS | LOGS | GRADIENTS


@pytest.mark.parametrize("way", ["compiled", "eager"])
def test_gradients_as_the_optimizer_sees_them(way, tmp_path, saved):
    model = compiled(keras_models.dense(), optimizer=tf.keras.optimizers.SGD(0.1, clipnorm=1e-3), **WAYS[way])
    hook = smd.KerasHook(tmp_path / "run", include_collections=["optimizer_gradients", "gradients"])
    fit(model, hook)
    hook.close()
    prefix = "smdebug/reductions/l2/optimizer_gradient/"
    assert {name for name in saved()[0] if name.startswith(prefix)} == {prefix + name for name in WEIGHTS | BIASES}
    trial = smd.create_trial(str(tmp_path / "run"))
    norm = trial.tensor("optimizer_gradient/first/weights/first/kernel:0").reduction_value(0, "l2")
    assert 0 < float(norm) <= 1.001e-3 < float(numpy.linalg.norm(trial.tensor("gradients/first/kernelGrad").value(0)))
    assert "scalar/learning_rate/0" in saved()[0]


@pytest.mark.parametrize("way", ["compiled", "eager"])
@pytest.mark.parametrize("is_holder", [True, False], ids=["attributes of the model", "elsewhere"])
def test_optimizers_that_the_step_uses_under_any_name(way, is_holder, tmp_path, saved):
    optimizers = tf.keras.optimizers.Adam(0.25, name="of_block"), tf.keras.optimizers.Adam(0.125, name="of_last")
    model = keras_models.TwoOptimizers(optimizers, is_holder)
    model(batch()[0])  # builds it
    model.compile(**WAYS[way])
    included = ["optimizer_gradients", "optimizer_variables"]
    hook = smd.KerasHook(tmp_path / "run", save_config=EVERY_STEP, include_collections=included)
    fit(model, hook)
    hook.close()
    assert hook.report()["errors"] == []
    names = saved()[2]
    for layer in ("inside", "last"):
        assert any("/optimizer_gradient/" in name and f"{layer}/kernel" in name for name in names)
    for optimizer in ("of_block", "of_last"):
        assert any(name.startswith(optimizer) and "kernel" in name for name in names), "what it holds for a weight"
    assert not any("rms" in name.lower() for name in names), "nobody uses it"
    trial = smd.create_trial(str(tmp_path / "run"))
    rates = [trial.tensor(f"scalar/learning_rate/{i}").value(2).item() for i in (0, 1)]
    assert rates == [0.25, 0.125] and "scalar/learning_rate/2" not in names


def test_several_steps_in_one_execution(tmp_path, saved):
    model = compiled(keras_models.dense(), steps_per_execution=3)
    inside = ["layers", "gradients", "inputs"]
    hook = smd.KerasHook(tmp_path / "run", save_config=EVERY_STEP, include_collections=inside)
    values, _ = fit(model, hook)
    hook.close()
    assert saved() == {0: LAYERS | LOGS | GRADIENTS | {"inputs"}}
    trial = smd.create_trial(str(tmp_path / "run"))
    assert numpy.array_equal(trial.tensor("inputs").value(0), values[16:]), "of the last batch of the execution"


def test_nothing_inside_is_wanted_and_the_own_function_runs(tmp_path):
    model = compiled(keras_models.dense())
    hook = smd.KerasHook(tmp_path / "run", save_config=EVERY_STEP, include_collections=["weights"])
    fit(model, hook)
    assert all(functions.tapped is None for functions in hook._functions.values())
    assert "train_step" not in model.__dict__
