"""Rows about collections: built-in and custom ones, their members, and what becomes of them."""

import inspect
import re

import pytest

pytest.importorskip("torch")
pytest.importorskip("tornasole.pytorch")

import tornasole.pytorch as ts  # noqa: E402
from tornasole.core.collection import Collection  # noqa: E402
from tornasole.core.collection_manager import CollectionManager  # noqa: E402
from training import BIASES, GRADIENTS, LOSS, RELU, WEIGHTS, Training, plain_hook, train  # noqa: E402

rows = pytest.mark.rows
XGBOOST_MEMBERS = {
    148: ("hyperparameters", "hyperparameters/max_depth"),
    149: ("predictions", "predictions"),
    150: ("labels", "labels"),
    151: ("feature_importance", "feature_importance/weight/f0"),
    152: ("average_shap", "average_shap/f0"),
    153: ("full_shap", "full_shap/f0"),
    154: ("trees", "trees/Node"),
}


@rows(30, 82, 120, 128, 156, 274)
def test_a_collection_has_members_schedule_and_form_of_its_own(tmp_path, saved):
    hook = ts.Hook(tmp_path / "run", include_collections=["mine"])
    form, schedule = ts.ReductionConfig(norms=["l2"]), ts.SaveConfig(save_interval=2)
    mine = ts.Collection("mine", ["^relu_output"], ["Net_fc1.bias"], form, schedule, False)
    hook.add_collection(mine)
    assert isinstance(hook.get_collection("losses"), ts.Collection) and mine.save_histogram is False
    train(hook, 2)
    assert saved()[0] == LOSS | {f"smdebug/reductions/l2/{n}" for n in ("relu_output_0", "Net_fc1.bias")}
    assert 1 not in saved()


@rows(31)
def test_a_collection_can_leave_names_out(tmp_path, saved):
    hook = ts.Hook(tmp_path / "run", include_collections=["weights"])
    hook.get_collection("weights").exclude("fc2")
    train(hook)
    assert saved()[0] == LOSS | {"Net_fc1.weight"}


@rows(33, 276)
def test_collections_are_there_in_analysis(tmp_path):
    train(ts.Hook(tmp_path / "run", include_collections=["weights", "biases"]))
    trial = ts.create_trial(str(tmp_path / "run"))
    assert set(trial.tensor_names(collection="weights")) == WEIGHTS
    assert {"weights", "biases", "losses"} <= set(trial.collections())


@rows(35, 109, 158, 278, 306, 307)
def test_a_missing_collection_is_made_and_matches_nothing(tmp_path, row):
    hook = ts.Hook(tmp_path / "run") if row != 35 else None
    collection = ts.get_collection("mine") if hook is None else hook.get_collection("mine")
    assert (collection.include_regex, collection.tensor_names) == ([], set())
    assert collection is (ts.get_collection("mine") if hook is None else hook.get_collection("mine"))
    ts.reset_collections()


@rows(309)
def test_a_new_collection_has_the_hooks_schedule_and_form(tmp_path):
    schedule, form = ts.SaveConfig(save_interval=3), ts.ReductionConfig(norms=["l1"])
    hook = ts.Hook(tmp_path / "run", save_config=schedule, reduction_config=form)
    hook.get_collection("mine").include("relu")
    Training(hook).run(1)
    assert hook.get_collection("mine").save_config == schedule and hook.get_collection("mine").reduction_config == form


@rows(36, 159)
def test_collections_by_name(tmp_path, row):
    hook = ts.Hook(tmp_path / "run") if row == 159 else None
    collections = ts.get_collections() if hook is None else hook.get_collections()
    assert all(collection.name == name for name, collection in collections.items()) and "weights" in collections


@rows(37, 38, 160)
def test_adding_through_a_function(tmp_path, row):
    hook = ts.Hook(tmp_path / "run", include_collections=["mine", "default"])
    if row == 37:
        ts.add_to_collection("mine", "relu_output_0")
    elif row == 38:
        ts.add_to_default_collection("relu_output_0")
    else:
        hook.add_to_collection("mine", ["relu_output_0"])
    changed = hook.get_collection("default" if row == 38 else "mine")
    other = ts.Collection("other")
    other.add("relu_output_0")
    assert changed.tensor_names == other.tensor_names == {"relu_output_0"}


@rows(39)
def test_collections_can_be_reset(tmp_path):
    ts.get_collection("mine").include("x")
    ts.reset_collections()
    assert "mine" not in ts.get_collections()


@rows(40, 42, 111, 162, 165, 311, 316)
def test_patterns_one_or_many_read_and_set(tmp_path):
    collection = ts.Hook(tmp_path / "run").get_collection("mine")
    collection.include("relu")
    collection.include(["weight", "bias"])
    assert collection.include_regex == ["relu", "weight", "bias"]
    collection.include_regex = ["other"]
    assert collection.include_regex == ["other"]


@rows(112)
def test_a_custom_collection_by_patterns(tmp_path, saved):
    hook = ts.Hook(tmp_path / "run", include_collections=["ReluActivation"])
    ts.get_collection("ReluActivation").include(["relu*", "input_*"])
    train(hook)
    assert saved()[0] == LOSS | RELU | {"Net_input_0", "fc1_input_0", "fc2_input_0"} | (
        {"CrossEntropyLoss_input_0", "CrossEntropyLoss_input_1"} & saved()[0]
    )


@rows(100, 101)
def test_the_older_name_of_biases(tmp_path, saved):
    hook = ts.Hook(tmp_path / "run", include_collections=["bias", "mine"])
    hook.get_collection("mine").include("relu_output")
    assert hook.get_collection("bias") is hook.get_collection("biases")
    assert {"weights", "gradients", "biases", "default"} <= set(hook.get_collections())
    train(hook)
    assert saved()[0] == LOSS | BIASES | {"relu_output_0"}


@rows(102)
def test_by_name_by_pattern_or_by_module(tmp_path, saved):
    hook = ts.Hook(tmp_path / "run", include_collections=["mine"])
    training = Training(hook)
    mine = hook.get_collection("mine")
    mine.add("Net_fc1.bias")
    mine.include("^relu_output")
    mine.add_module_tensors(training.model.fc2)
    training.run(1)
    hook.close()
    assert saved()[0] == LOSS | {"Net_fc1.bias", "relu_output_0", "fc2_output_0"}


@rows(104, 135)
def test_the_patterns_of_built_in_collections(tmp_path):
    collections = ts.Hook(tmp_path / "run").get_collections()
    assert collections["weights"].include_regex == ["^(?!gradient).*weight"]
    assert collections["biases"].include_regex == ["^(?!gradient).*bias"]
    assert collections["gradients"].include_regex == ["^gradient"]


@rows(110, 273)
def test_a_name_is_one_collections(tmp_path):
    hook = ts.Hook(tmp_path / "run")
    first, second = ts.Collection("mine"), ts.Collection("mine")
    hook.add_collection(first)
    hook.add_collection(second)
    assert hook.get_collection("mine") is second and list(hook.get_collections()).count("mine") == 1


FRAMEWORKS = {
    137: ("default", ("pytorch", "mxnet", "tensorflow", "xgboost")),
    138: ("weights", ("pytorch", "mxnet", "tensorflow")),
    139: ("biases", ("pytorch", "mxnet", "tensorflow")),
    140: ("gradients", ("pytorch", "mxnet", "tensorflow")),
    141: ("losses", ("pytorch", "mxnet", "tensorflow")),
    143: ("metrics", ("tensorflow", "xgboost")),
    147: ("optimizer_variables", ("tensorflow",)),
}


@rows(*FRAMEWORKS)
def test_who_has_which_collection(row):
    name, frameworks = FRAMEWORKS[row]
    assert getattr(ts.CollectionKeys, name.upper()) == name
    for framework in frameworks:
        assert name in CollectionManager.for_framework(framework).collections


@rows(277, 280)
def test_built_in_names_are_lower_case():
    for framework in ("pytorch", "mxnet", "tensorflow", "xgboost"):
        for name, collection in CollectionManager.for_framework(framework).collections.items():
            assert name == name.lower() == collection.name == getattr(ts.CollectionKeys, name.upper())


@rows(283, 284, 285, 286)
def test_what_the_built_in_collections_hold(tmp_path, saved, row):
    name, members = {
        283: ("weights", WEIGHTS),
        284: ("biases", BIASES),
        285: ("gradients", GRADIENTS),
        286: ("losses", LOSS),
    }[row]
    hook = train(ts.Hook(tmp_path / "run", include_collections=[name]))
    assert hook.get_collection(name).tensor_names == members and saved()[0] == LOSS | members


@rows(142)
def test_scalars_are_a_listing(tmp_path):
    hook = ts.Hook(tmp_path / "run")
    hook.save_scalar("rate", 1)
    assert hook.get_collection(ts.CollectionKeys.SCALARS).tensor_names == {"scalar/rate"}


@rows(146)
def test_the_older_name_of_sm_metrics(tmp_path):
    hook = plain_hook("tensorflow")(tmp_path / "run")
    assert hook.get_collection(ts.CollectionKeys.SEARCHABLE_SCALARS) is hook.get_collection("sm_metrics")


@rows(*XGBOOST_MEMBERS)
def test_the_collections_of_xgboost(tmp_path, saved, row):
    collection, name = XGBOOST_MEMBERS[row]
    assert getattr(ts.CollectionKeys, collection.upper()) == collection
    plain_hook("xgboost")(tmp_path / "run", include_collections=[collection]).run(1, [name, "train-rmse"])
    assert saved() == {0: {name, "train-rmse"}}


@rows(155)
def test_the_arguments_of_collection():
    parameters = inspect.signature(Collection).parameters
    defaults = {name: parameter.default for name, parameter in parameters.items() if name != "name"}
    assert list(parameters) == ["name", *defaults]
    assert list(defaults) == ["include_regex", "tensor_names", "reduction_config", "save_config", "save_histogram"]
    assert list(defaults.values()) == [None, None, None, None, True]
    given = ("mine", ["a"], ["x"], ts.ReductionConfig(["min"]), ts.SaveConfig(save_interval=2), False)
    assert ts.Collection(*given) == Collection(**dict(zip(parameters, given)))


@rows(161, 310)
def test_names_read_and_set():
    collection = ts.Collection("mine", tensor_names=["a"])
    collection.tensor_names = ["b", "c"]
    assert collection.tensor_names == {"b", "c"}


@rows(312, 313, 314)
def test_form_schedule_and_histogram_read_and_set(row):
    collection = ts.Collection("mine")
    field, value = {
        312: ("reduction_config", ts.ReductionConfig(["min"])),
        313: ("save_config", ts.SaveConfig(save_interval=3)),
        314: ("save_histogram", False),
    }[row]
    setattr(collection, field, value)
    assert getattr(collection, field) == value


@rows(168, 319)
def test_inputs_and_outputs_of_a_module(tmp_path, saved):
    for directory, arguments, names in (
        ("outputs", {}, {"fc1_output_0"}),
        ("inputs", {"inputs": True, "outputs": False}, {"fc1_input_0"}),
    ):
        hook = ts.Hook(tmp_path / directory, include_collections=["mine"])
        training = Training(hook)
        hook.get_collection("mine").add_module_tensors(training.model.fc1, **arguments)
        training.run(1)
        hook.close()
        assert saved(tmp_path / directory)[0] == LOSS | names


@rows(303, 305)
def test_an_end_of_zero_switches_a_collection_off(tmp_path, saved, row):
    hook = plain_hook("tensorflow")(tmp_path / "run")
    for name in ("metrics", "losses"):
        hook.get_collection(name).add(f"{name}/value")
    if row == 305:
        hook.get_collection("metrics").save_config.end_step = 0
    else:
        hook.get_collection("metrics").save_config = ts.SaveConfig(end_step=0)
    hook.run(1, ["metrics/value", "losses/value"])
    assert saved() == {0: {"losses/value"}}


def histogram_tags(directory):
    """The tags of histograms in TensorBoard's files, which hold them as plain text."""
    found = set()
    for path in directory.rglob("*.tfevents"):
        found |= {tag.decode() for tag in re.findall(rb"(?:weights|mine|losses|default)/[\w.]+", path.read_bytes())}
    return found


@rows(157, 315)
def test_histograms_only_with_tensorboard_and_never_of_losses(tmp_path):
    train(ts.Hook(tmp_path / "run", include_collections=["weights", "losses"]))
    assert not (tmp_path / "run" / "tensorboard").exists()
    hook = ts.Hook(tmp_path / "shown", export_tensorboard=True, include_collections=["weights", "losses"])
    hook.get_collection("losses").save_histogram = True
    train(hook)
    assert histogram_tags(tmp_path / "shown" / "tensorboard") == {f"weights/{name}" for name in WEIGHTS}
    hook = ts.Hook(tmp_path / "off", export_tensorboard=True, include_collections=["weights"])
    hook.get_collection("weights").save_histogram = False
    train(hook)
    assert histogram_tags(tmp_path / "off" / "tensorboard") == set()


@rows(308)
def test_a_new_collection_saves_histograms(tmp_path):
    hook = ts.Hook(tmp_path / "run", export_tensorboard=True, include_collections=["mine"])
    hook.get_collection("mine").include("relu_output")
    assert hook.get_collection("mine").save_histogram is True
    train(hook)
    assert histogram_tags(tmp_path / "run" / "tensorboard") == {"mine/relu_output_0"}
