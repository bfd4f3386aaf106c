"""Collections: as objects, of a hook, and before there is a hook."""

import json

import pytest

from tornasole import CollectionKeys, ReductionConfig, SaveConfig, SaveConfigMode, modes
from tornasole.core.collection import Collection
from tornasole.core.collection_manager import CollectionManager
from tornasole.core.pending_collections import FrameworkCollections
from tornasole.exceptions import (
    InvalidCollectionConfiguration,
    SMDebugError,
    SMDebugRuntimeError,
    SMDebugTypeError,
    SMDebugValueError,
)

VALUES = {"fc.weight": [1.0, 2.0], "fc.bias": [0.5], "CrossEntropyLoss_output_0": [3.0], "relu_output_0": [0.0]}


# ---- the object


def test_include_takes_a_pattern_or_nested_lists():
    collection = Collection("c", include_regex="a")
    collection.include("b")
    collection.include(["c", ["d"]])
    assert collection.include_regex == ["a", "b", "c", "d"]


REFUSED = [
    ("a pattern that is no text", lambda c: c.include(3), SMDebugTypeError),
    ("a bad pattern, when it is set", lambda c: c.include("(?<"), SMDebugValueError),
    ("a bad pattern to be left out", lambda c: c.exclude("["), SMDebugValueError),
    ("names that are one text", lambda c: setattr(c, "tensor_names", "x"), SMDebugTypeError),
    ("a schedule of another type", lambda c: setattr(c, "save_config", 3), SMDebugTypeError),
    ("reductions of another type", lambda c: setattr(c, "reduction_config", "min"), SMDebugTypeError),
    ("a histogram switch that is a number", lambda c: setattr(c, "save_histogram", 1), SMDebugValueError),
    ("an object nobody has a name for", lambda c: c.add(object()), SMDebugTypeError),
    ("a list in the place of one name", lambda c: c.add_tensor_name(["a"]), SMDebugTypeError),
    ("a list taken out in the place of one name", lambda c: c.remove_tensor_name(["a"]), SMDebugTypeError),
    ("a list asked for in the place of one name", lambda c: c.has_tensor_name(["a"]), SMDebugTypeError),
]


@pytest.mark.parametrize("what, change, error", REFUSED, ids=[row[0] for row in REFUSED])
def test_refused_changes(what, change, error):
    collection = Collection("c", ["a"])
    with pytest.raises(error):
        change(collection)
    assert collection == Collection("c", ["a"]), "a refused change changes nothing"


def test_names_are_a_set_that_can_be_edited():
    collection = Collection("c", tensor_names=["b", "a"])
    collection.add(["c", ("d",)])
    collection.add_tensor_name("e")
    collection.remove_tensor_name("a")
    collection.remove_tensor_name("never there")
    assert collection.tensor_names == {"b", "c", "d", "e"}
    assert collection.has_tensor_name("e") and not collection.has_tensor_name("a")


def test_older_spellings():
    collection = Collection("c")
    collection.set_save_config({modes.TRAIN: SaveConfigMode(save_interval=10)})
    collection.set_reduction_config(ReductionConfig(norms=["l1"]))
    assert collection.save_config.get_save_config(modes.TRAIN).save_interval == 10
    assert Collection.load(collection.export()) == collection
    assert collection.get_tensor_names() == set()


def test_json_and_equality():
    collection = Collection("c", ["a"], ["y", "x"], ReductionConfig(["min"]), SaveConfig(save_interval=3), False)
    fields = json.loads(collection.to_json())
    configs = ["reduction_config", "save_config", "save_histogram"]
    assert list(fields) == ["name", "include_regex", "tensor_names", *configs]
    assert fields["tensor_names"] == ["x", "y"]
    assert Collection.from_json(collection.to_json()) == collection
    assert len({collection, Collection("c")}) == 2 and hash(collection) == hash(Collection("c"))
    for field, value in [("include_regex", ["b"]), ("save_histogram", True), ("save_config", None)]:
        other = Collection.from_json(collection.to_json())
        setattr(other, field, value)
        assert other != collection
    collection.exclude("z")
    assert json.loads(collection.to_json())["exclude_regex"] == ["z"]
    assert Collection.from_json(collection.to_json()).exclude_regex == ["z"]


def test_a_free_collection_has_no_schedule():
    assert Collection("c").save_config is None and Collection("c").reduction_config is None


def test_manager_keeps_loads_and_compares(tmp_path):
    manager = CollectionManager()
    manager.create_collection("default")
    manager.get("default").include("loss")
    manager.add(Collection("one"))
    manager.add("two")
    manager.set_num_workers(3)
    manager.export(str(tmp_path), "worker_0_collections.json")
    loaded = CollectionManager.load(str(tmp_path / "collections" / "000000000" / "worker_0_collections.json"))
    assert loaded == manager and loaded.get_num_workers() == 3 and list(loaded.collections) == ["default", "one", "two"]
    assert manager.get("bias") is manager.get("biases")
    with pytest.raises(SMDebugError):
        manager.get("three", create=False)
    with pytest.raises(SMDebugTypeError):
        manager.add(3)
    with pytest.raises(SMDebugValueError):
        CollectionManager.load_from_string('{"groups": {}}')


def test_keys_name_every_built_in_collection():
    named = {value for key, value in vars(CollectionKeys).items() if key.isupper()}
    for framework in ("pytorch", "mxnet", "tensorflow", "xgboost"):
        assert set(CollectionManager.for_framework(framework).collections) <= named


# ---- of a hook


def test_built_in_collections_and_patterns(hook_class, tmp_path):
    collections = hook_class(tmp_path / "run").get_collections()
    assert list(collections) == ["all", "default", "weights", "biases", "gradients", "losses"]
    assert collections["gradients"].include_regex == ["^gradient"]
    assert collections["losses"].include_regex == ["[Ll]oss_(?!input).*output"]


def test_the_schedule_of_a_collection_is_a_copy_of_the_hooks(hook_class, tmp_path, saved_names):
    hook = hook_class(tmp_path / "run", save_all=True, save_config=SaveConfig(save_interval=1))
    hook.get_collection("losses").save_config.end_step = 0
    hook.get_collection("all").save_config.end_step = 0
    assert hook.save_config == SaveConfig(save_interval=1)
    hook.get_collection("weights").save_config = SaveConfig(save_interval=2)
    hook.run(3, {"fc.weight": [1.0], "CrossEntropyLoss_output_0": [2.0]})
    hook.close()
    assert saved_names(tmp_path / "run") == {0: {"fc.weight"}, 2: {"fc.weight"}}


def test_after_preparation_collections_show_what_applies(hook_class, tmp_path):
    schedule, form = SaveConfig(save_interval=7), ReductionConfig(["min"])
    hook = hook_class(tmp_path / "run", save_config=schedule, reduction_config=form)
    losses = hook.get_collection("losses")
    losses.reduction_config = ReductionConfig(["max"])
    hook.get_collection("weights").save_config = {modes.EVAL: SaveConfigMode(save_interval=2)}
    hook.run(1)
    assert hook.prepared_collections
    weights = hook.get_collection("weights")
    assert [weights.save_config.get_save_config(mode).save_interval for mode in modes] == [7, 2, 7, 7]
    assert weights.reduction_config == ReductionConfig(["min"])
    assert losses.reduction_config == ReductionConfig(save_raw_tensor=True) and losses.save_histogram is False


def test_names_grow_as_patterns_match(hook_class, tmp_path):
    hook = hook_class(tmp_path / "run", include_collections=["weights"])
    hook.get_collection("weights").add("by hand")
    hook.run(1, VALUES)
    assert hook.get_collection("weights").tensor_names == {"by hand", "fc.weight"}
    assert hook.get_collection("losses").has_tensor_name("CrossEntropyLoss_output_0")


CHANGES = [
    ("a pattern added", lambda c: c.include("relu"), {"fc.weight", "relu_output_0"}),
    ("a pattern added to the list itself", lambda c: c.include_regex.append("relu"), {"fc.weight", "relu_output_0"}),
    ("a pattern taken back", lambda c: setattr(c, "include_regex", ["bias"]), {"fc.bias"}),
    ("a name left out", lambda c: c.exclude("weight"), set()),
    ("a name added", lambda c: c.add("fc.bias"), {"fc.weight", "fc.bias"}),
    ("a schedule", lambda c: setattr(c.save_config, "end_step", 0), set()),
    ("a form", lambda c: c.set_reduction_config(ReductionConfig(["min"])), {"smdebug/reductions/min/fc.weight"}),
]


@pytest.mark.parametrize("what, change, names", CHANGES, ids=[row[0] for row in CHANGES])
def test_a_change_while_running_takes_effect_at_the_next_step(what, change, names, hook_class, tmp_path, saved_names):
    hook = hook_class(tmp_path / "run", include_collections=["mine"], save_config=SaveConfig(save_interval=1))
    hook.get_collection("losses").save_config.end_step = 0
    hook.get_collection("mine").include("fc.weight")
    hook.run(1, VALUES)
    change(hook.get_collection("mine"))
    hook.run(1, VALUES)
    hook.close()
    saved = saved_names(tmp_path / "run")
    assert saved[0] == {"fc.weight"} and saved.get(1, set()) == names


def test_the_hooks_own_schedule_can_be_changed_before_the_first_step(hook_class, tmp_path):
    hook = hook_class(tmp_path / "run")
    hook.save_config.save_interval = 2
    hook.include_collections.append("weights")
    assert hook.run(5) == [0, 2, 4]
    assert "weights" in hook._engine_hook.saved_collections()


def test_a_collection_made_while_running(hook_class, tmp_path, saved_names):
    hook = hook_class(tmp_path / "run", save_config=SaveConfig(save_interval=1))
    hook.run(1, VALUES)
    hook.get_collection("late")
    hook.run(1, VALUES)
    hook.add_collection(Collection("later", include_regex=["relu"]))
    hook.include_collections.append("later")
    hook.run(1, VALUES)
    hook.close()
    assert "relu_output_0" in saved_names(tmp_path / "run")[2]


def test_another_manager_in_the_place_of_the_hooks(hook_class, tmp_path):
    manager = CollectionManager()
    manager.get("mine").save_config = {modes.EVAL: SaveConfigMode(save_interval=20)}
    schedule = {modes.TRAIN: SaveConfigMode(save_interval=10)}
    hook = hook_class(tmp_path / "run", save_config=schedule, include_collections=["mine"])
    hook.collection_manager = manager
    with pytest.raises(InvalidCollectionConfiguration):
        hook._prepare_collections()
    manager.get("mine").include(".*")
    hook._prepare_collections()
    config = manager.get("mine").save_config
    assert [config.get_save_config(mode).save_interval for mode in (modes.TRAIN, modes.EVAL)] == [10, 20]
    assert manager.get("mine").reduction_config == ReductionConfig(save_raw_tensor=True)
    with pytest.raises(SMDebugTypeError):
        hook.collection_manager = {}


def test_adding_and_asking(hook_class, tmp_path):
    hook = hook_class(tmp_path / "run")
    hook.add_to_collection("mine", ["a", "b"])
    assert hook.get_collection("mine").tensor_names == {"a", "b"}
    replaced = Collection("mine", ["x"])
    hook.add_collection(replaced)
    assert hook.get_collection("mine") is replaced
    with pytest.raises(SMDebugTypeError):
        hook.add_collection("mine")
    with pytest.raises(SMDebugError):
        hook.get_collection("nowhere", create=False)


def test_should_save_tensor_or_collection(hook_class, tmp_path):
    schedule = SaveConfig(save_steps=[1], save_interval=9)
    hook = hook_class(tmp_path / "run", include_collections=["weights", "gradients"], save_config=schedule)
    assert hook.should_save_tensor_or_collection("fc.weight", "weights") is False, "not before preparation"
    hook._begin_step(modes.TRAIN)
    assert hook.should_save_tensor_or_collection("fc.weight", "weights") is True
    assert hook.should_save_tensor_or_collection("fc.weight", "biases") is True, "another due collection takes it"
    assert hook.should_save_tensor_or_collection("relu", "weights") is False
    assert hook.should_save_tensor_or_collection("dense/kernel:0", "gradients") is True
    hook._begin_step(modes.EVAL)
    assert hook.should_save_tensor_or_collection("dense/kernel:0", "gradients") is False, "no gradients in evaluation"
    hook._begin_step(modes.TRAIN)
    hook._begin_step(modes.TRAIN)
    assert hook.should_save_tensor_or_collection("fc.weight", "weights") is False, "nothing is due"


# ---- before there is a hook


def test_pending_collections_are_adopted_by_the_next_hook(hook_class, tmp_path):
    module = FrameworkCollections(hook_class)
    early = module.get_collection("early")
    early.include("relu")
    module.add_to_default_collection("mine")
    module.add_to_collection("early", "by hand")
    assert module.get_collections()["early"] is early
    hook = hook_class(tmp_path / "run", include_collections=["early"], include_regex=["extra"])
    assert hook.get_collection("early") is early and module.get_collection("early") is early
    assert hook.get_collection("default").tensor_names == {"mine"}
    assert hook.get_collection("default").include_regex == ["extra"]
    hook.run(1, VALUES)
    assert early.tensor_names == {"by hand", "relu_output_0"}
    with pytest.raises(SMDebugRuntimeError):
        module.reset_collections()


def test_reset_collections(hook_class, tmp_path):
    module = FrameworkCollections(hook_class)
    module.get_collection("early")
    module.reset_collections()
    assert "early" not in module.get_collections()
    hook = hook_class(tmp_path / "run")
    module.get_collection("mine").include("x")
    module.get_collection("weights").include("y")
    module.reset_collections()
    assert list(hook.get_collections()) == ["all", "default", "weights", "biases", "gradients", "losses"]
    assert hook.get_collection("weights").include_regex == ["^(?!gradient).*weight"]
    hook.run(1, VALUES)
    assert hook.prepared_collections


def test_collections_are_reset_for_the_next_hook_once_the_last_one_is_closed(hook_class, tmp_path):
    module = FrameworkCollections(hook_class)
    first = hook_class(tmp_path / "first", include_collections=["mine"])
    module.get_collection("mine").include("relu")
    first.run(1, VALUES)
    first.close()
    assert module.get_collection("mine") is first.get_collection("mine"), "what was captured can still be looked at"
    module.reset_collections()
    assert "mine" not in module.get_collections()
    module.get_collection("other").include("relu")
    assert "other" not in first.get_collections()
    second = hook_class(tmp_path / "second", include_collections=["other"])
    assert second.get_collection("other").include_regex == ["relu"]
    assert module.get_collection("other") is second.get_collection("other")


def test_a_collection_named_in_a_file_gets_its_pattern_from_the_script(hook_class, tmp_path, saved_names):
    named = [{"CollectionName": "mine"}, {"CollectionName": "left", "CollectionParameters": {"include_regex": "fc"}}]
    file = {"LocalPath": str(tmp_path / "run"), "CollectionConfigurations": named}
    (tmp_path / "hook.json").write_text(json.dumps(file))
    hook = hook_class.create_from_json_file(tmp_path / "hook.json")
    hook.get_collection("mine").include("relu")
    hook.get_collection("left").exclude("bias")
    hook.run(1, VALUES)
    hook.close()
    assert hook.get_collection("mine").tensor_names == {"relu_output_0"}
    assert hook.get_collection("left").tensor_names == {"fc.weight"}


@pytest.mark.parametrize("name", [3, None, b"x", "\ud800"])
def test_the_name_of_a_collection_is_a_text(name, hook_class, tmp_path):
    hook = hook_class(tmp_path / "run")
    for ask in (hook.get_collection, hook.collection_manager.create_collection):
        with pytest.raises(SMDebugTypeError, match="name of a collection"):
            ask(name)
