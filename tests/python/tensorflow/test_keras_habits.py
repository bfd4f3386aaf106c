"""What scripts written for smdebug rely on with Keras: names that stay, patterns that choose, trials that are there."""

import keras_models
import numpy
import pytest
import tensorflow as tf
from keras_models import batch, compiled

import tornasole.tensorflow as smd

EVERY_STEP = smd.SaveConfig(save_interval=1)
OLDER_ADAM = getattr(getattr(tf.keras.optimizers, "legacy", None), "Adam", None)
needs_older_optimizers = pytest.mark.skipif(keras_models.IS_KERAS_3, reason="Keras 3 has no older optimizers")


def fit(model, callbacks, **options):
    values, labels = batch()
    model.fit(values, labels, batch_size=8, verbose=0, shuffle=False, callbacks=callbacks, **options)


@needs_older_optimizers
@pytest.mark.parametrize("is_eager", [False, True], ids=["compiled", "eager"])
@pytest.mark.parametrize("is_scaled", [False, True], ids=["plain", "scaled"])
def test_looking_at_an_optimizer_does_not_name_its_variables(is_eager, is_scaled, tmp_path):
    names = {}
    for is_watched in (False, True):
        tf.keras.backend.clear_session()
        optimizer = OLDER_ADAM()
        if is_scaled:
            optimizer = tf.keras.mixed_precision.LossScaleOptimizer(optimizer)
        hooks = [smd.KerasHook(tmp_path / "run", save_config=EVERY_STEP, save_all=True)] if is_watched else []
        model = compiled(keras_models.dense(), run_eagerly=is_eager, optimizer=optimizer)
        fit(model, [hook for hook in hooks if hook.wrap_optimizer(optimizer) is optimizer])
        names[is_watched] = [variable.name for variable in optimizer.variables()]
    assert names[True] == names[False]
    seen = smd.create_trial(str(tmp_path / "run")).tensor_names(collection="optimizer_variables")
    held = ["beta_1:0", "beta_2:0", "decay:0", "iter:0", "learning_rate:0"]
    assert sorted(name.rpartition("/")[2] for name in seen) == held
    assert all(name.rpartition("/")[0].endswith("Adam") for name in seen)


@pytest.mark.parametrize(
    "collection, pattern, expected",
    [
        ("layers", "^first", {"first/inputs", "first/outputs"}),
        ("layers", "rst|last/out", {"first/inputs", "first/outputs", "last/outputs"}),
        ("gradients", "first", {"gradients/first/kernelGrad", "gradients/first/biasGrad"}),
        ("gradients", "gradients/last", {"gradients/last/kernelGrad", "gradients/last/biasGrad"}),
        ("mine", "^first/w", {"first/weights/first/kernel:0", "first/weights/first/bias:0"}),
    ],
)
def test_a_pattern_on_layers_or_gradients_takes_no_weight_in(collection, pattern, expected, tmp_path):
    hook = smd.KerasHook(tmp_path / "run", save_config=EVERY_STEP, include_collections=[collection])
    hook.get_collection(collection).include(pattern)
    fit(compiled(keras_models.dense()), [hook])
    hook.close()
    trial = smd.create_trial(str(tmp_path / "run"))
    assert set(trial.tensor_names(collection=collection)) == expected
    assert set(trial.tensor_names()) == expected | {"loss", "accuracy", "batch"}


@pytest.mark.parametrize("kind, mode", [("fit", "TRAIN"), ("evaluate", "EVAL"), ("predict", "PREDICT")])
def test_a_trial_is_there_when_keras_returns(kind, mode, tmp_path):
    hook = smd.KerasHook(tmp_path / "run", save_config=EVERY_STEP, include_collections=["weights"])
    model = compiled(keras_models.dense())
    values, labels = batch()
    given = (values,) if kind == "predict" else (values, labels)
    getattr(model, kind)(*given, batch_size=8, verbose=0, callbacks=[hook])
    trial = smd.create_trial(str(tmp_path / "run"))  # the hook is still open
    last = -(-len(values) // 8) - 1
    assert trial.steps(mode=smd.modes[mode]) == list(range(last + 1))
    assert trial.tensor("first/weights/first/kernel:0").value(last, mode=smd.modes[mode]).shape == (4, 3)


def test_what_is_wanted_can_be_asked_after_a_step_was_begun_by_hand(tmp_path):
    hook = smd.KerasHook(tmp_path / "run", save_config=smd.SaveConfig(save_interval=3), include_collections=["mine"])
    hook.get_collection("mine").include("first")
    assert not hook.should_save_tensor_or_collection("first", "layers")
    hook.set_mode(smd.modes.TRAIN)
    hook._prepare_collections()
    hook._increment_step()
    for kind in ("layers", "gradients"):
        assert hook.should_save_tensor_or_collection("first", kind)
        assert not hook.should_save_tensor_or_collection("last", kind)
    hook._increment_step()
    assert not hook.should_save_tensor_or_collection("first", "layers"), "not due in this step"


def test_a_version_that_is_not_supported_gets_no_hook(tmp_path, monkeypatch):
    import tornasole.tensorflow.utils as utils
    from tornasole.core.config_validator import reset_config_validator

    monkeypatch.setenv("USE_SMDEBUG", "true")  # changed below
    hook = smd.KerasHook(tmp_path / "run")
    assert smd.get_hook() is hook and utils.is_current_version_supported()
    assert utils.is_tf_version_2x() and utils.is_tf_version_greater_than_2_4_x() and not utils.is_tf_version_1_15_x()
    monkeypatch.setattr(utils, "TF_VERSION", "1.1")
    assert smd.get_hook() is None
    assert not utils.is_current_version_supported() and utils.is_current_version_supported("2.3.1")
    monkeypatch.undo()
    assert smd.get_hook() is None, "once it is decided"
    reset_config_validator()
    assert smd.get_hook() is hook


def test_every_type_of_tensorflow_has_a_name_in_event_files():
    from tensorflow.core.framework import types_pb2
    from tensorflow.python.framework.dtypes import _NP_TO_TF

    from tornasole.core.tfevent.util import _get_proto_dtype

    for kind, of_tensorflow in _NP_TO_TF.items():
        expected = types_pb2.DataType.Name(of_tensorflow.as_datatype_enum)
        assert _get_proto_dtype(kind) == (expected != "DT_STRING", expected), numpy.dtype(kind)
