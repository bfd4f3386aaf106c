"""Rows about reductions: what is computed, saved in the place of tensors, and read again."""

import inspect

import numpy
import pytest

pytest.importorskip("torch")
pytest.importorskip("tornasole.pytorch")

import tornasole.pytorch as ts  # noqa: E402
from training import LOSS, WEIGHTS, Training, plain_hook, train  # noqa: E402

rows = pytest.mark.rows
REDUCTIONS = ["min", "max", "median", "mean", "std", "variance", "sum", "prod"]
VALUE = numpy.array([[1.0, -2.0, 4.0], [3.0, 0.5, -8.0]])


def expected(name, of_absolute):
    """The number, by NumPy."""
    value = numpy.abs(VALUE) if of_absolute else VALUE
    norms = {"l1": lambda v: numpy.abs(v).sum(), "l2": lambda v: numpy.sqrt((v**2).sum()), "variance": numpy.var}
    return norms.get(name, getattr(numpy, name, None))(value)


def reduced(tmp_path, config):
    """A trial of one step in which one tensor was saved under this configuration."""
    hook = plain_hook("pytorch")(tmp_path / "run", include_regex=["^value$"], reduction_config=config)
    hook._begin_step()
    hook._engine_hook.save("value", VALUE)
    hook.close()
    return ts.create_trial(str(tmp_path / "run"))


@rows(14, 97, 187, 240)
def test_reductions_in_the_place_of_tensors(tmp_path, saved):
    form = ts.ReductionConfig(reductions=["max", "mean"])
    train(ts.Hook(tmp_path / "run", reduction_config=form, include_collections=["weights"]))
    assert saved()[0] == LOSS | {f"smdebug/reductions/{r}/{name}" for r in ("max", "mean") for name in WEIGHTS}


@rows(15, 44, 93, 163, 189, 243)
def test_a_collections_form_counts_for_it(tmp_path, saved):
    form = ts.ReductionConfig(reductions=["min"])
    hook = ts.Hook(tmp_path / "run", reduction_config=form, include_collections=["weights", "mine"])
    hook.get_collection("mine").include("^relu_output")
    hook.get_collection("mine").reduction_config = ts.ReductionConfig(norms=["l2"])
    assert hook.get_collection("mine").reduction_config == ts.ReductionConfig(norms=["l2"])
    train(hook)
    names = {f"smdebug/reductions/min/{name}" for name in WEIGHTS} | {"smdebug/reductions/l2/relu_output_0"}
    assert saved()[0] == LOSS | names


@rows(16)
def test_without_a_form_tensors_are_saved_whole(tmp_path, saved):
    hook = train(ts.Hook(tmp_path / "run", include_collections=["weights"]))
    assert hook.reduction_config == ts.ReductionConfig(save_raw_tensor=True) and saved()[0] == LOSS | WEIGHTS


@rows(52, 91)
def test_a_reduction_is_one_number_worked_out_in_training(tmp_path):
    trial = reduced(tmp_path, ts.ReductionConfig(reductions=["mean"]))
    assert trial.tensor("value").reduction_value(0, "mean") == pytest.approx(expected("mean", False))


@rows(53, 188, 241)
def test_in_analysis_reductions_belong_to_the_tensor(tmp_path):
    trial = reduced(tmp_path, ts.ReductionConfig(reductions=["min"], abs_norms=["l1"]))
    assert "value" in trial.tensor_names()
    assert trial.tensor("value").reduction_value(0, "min") == -8.0
    assert trial.tensor("value").reduction_value(0, "l1", abs=True) == pytest.approx(expected("l1", True))


@rows(54, 92)
def test_with_reductions_the_tensor_itself_is_not_there(tmp_path):
    from tornasole.exceptions import TensorUnavailableForStep

    trial = reduced(tmp_path, ts.ReductionConfig(reductions=["min"]))
    with pytest.raises(TensorUnavailableForStep):
        trial.tensor("value").value(0)


@rows(195, 242, 249)
def test_the_tensor_can_be_saved_along(tmp_path):
    trial = reduced(tmp_path, ts.ReductionConfig(reductions=["min"], save_raw_tensor=True))
    assert numpy.array_equal(trial.tensor("value").value(0), VALUE)
    assert trial.tensor("value").reduction_value(0, "min") == -8.0


KINDS = {
    **dict.fromkeys((55, 95, 191, 245), ("reductions", REDUCTIONS)),
    **dict.fromkeys((56, 94, 192, 246), ("abs_reductions", REDUCTIONS)),
    **dict.fromkeys((57, 96, 193, 247), ("norms", ["l1", "l2"])),
    **dict.fromkeys((58, 194, 248), ("abs_norms", ["l1", "l2"])),
}


@rows(*KINDS)
def test_every_kind_and_name(row, tmp_path):
    kind, names = KINDS[row]
    tensor = reduced(tmp_path, ts.ReductionConfig(**{kind: names})).tensor("value")
    of_absolute = kind.startswith("abs_")
    for name in names:
        value = tensor.reduction_value(0, name, abs=of_absolute)
        assert value == pytest.approx(expected(name, of_absolute), rel=1e-9), name


@rows(122, 196, 250)
def test_the_documented_examples(tmp_path, row):
    if row == 122:
        config = ts.ReductionConfig(reductions=["min", "max", "mean"], norms=["l1"])
        wanted = {("min", False), ("max", False), ("mean", False), ("l1", False)}
    else:
        config = ts.ReductionConfig(reductions=["std", "variance"], abs_reductions=["mean"], norms=["l1"])
        wanted = {("std", False), ("variance", False), ("mean", True), ("l1", False)}
    tensor = reduced(tmp_path, config).tensor("value")
    assert {key: tensor.reduction_value(0, key[0], abs=key[1]) for key in wanted} == {
        key: pytest.approx(expected(*key)) for key in wanted
    }


@rows(190, 244)
def test_the_arguments_of_reductionconfig():
    names = list(inspect.signature(ts.ReductionConfig).parameters)
    assert names[:5] == ["reductions", "abs_reductions", "norms", "abs_norms", "save_raw_tensor"]
    config = ts.ReductionConfig()
    assert (config.reductions, config.abs_reductions, config.norms, config.abs_norms) == ([], [], [], [])
    assert config.save_raw_tensor is False


@rows(98, 99)
def test_a_custom_collection_with_setters(tmp_path, saved, row):
    hook = ts.Hook(tmp_path / "run", include_collections=["ReluActivation"])
    collection = hook.get_collection("ReluActivation")
    collection.include(["relu*"])
    collection.set_save_config(ts.SaveConfig(save_steps=[4, 5, 6]))
    form = {"reductions": ["min"], "abs_reductions": ["max"]} if row == 98 else {"norms": ["l1"], "abs_norms": ["l2"]}
    collection.set_reduction_config(ts.ReductionConfig(**form))
    Training(hook).run(6)
    hook.close()
    ops = ("min", "abs_max") if row == 98 else ("l1", "abs_l2")
    names = {f"smdebug/reductions/{op}/relu_{side}_0" for op in ops for side in ("input", "output")}
    assert [saved().get(step, set()) - LOSS for step in range(6)] == [names, set(), set(), set(), names, names]


IN_FILES = dict(zip(range(253, 273), [p + r for p in ("", "abs_") for r in (*REDUCTIONS, "l1", "l2")]))


@rows(*IN_FILES)
def test_every_name_in_a_file(row, from_json, saved):
    name = IN_FILES[row]
    hook = from_json(plain_hook("pytorch"), {"HookParameters": {"reductions": name, "include_regex": "value"}})
    hook.run(1, ["value"])
    assert saved() == {0: {f"smdebug/reductions/{name}/value"}}


@rows(207, 251, 252, 326)
def test_reductions_in_files(row, from_json, saved):
    content = {"HookParameters": {"reductions": "min,abs_l2_norm", "include_regex": "value"}}
    if row in (252, 326):
        parameters = {"include_regex": "value", "reductions": "min,abs_l2_norm"}
        content = {"CollectionConfigurations": [{"CollectionName": "mine", "CollectionParameters": parameters}]}
    from_json(plain_hook("pytorch"), content).run(1, ["value"])
    assert saved() == {0: {"smdebug/reductions/min/value", "smdebug/reductions/abs_l2/value"}}


@rows(327)
def test_the_tensor_along_in_files(from_json, saved):
    parameters = {"include_regex": "value", "reductions": "min", "save_raw_tensor": "true"}
    content = {"CollectionConfigurations": [{"CollectionName": "mine", "CollectionParameters": parameters}]}
    from_json(plain_hook("pytorch"), content).run(1, ["value"])
    assert saved() == {0: {"smdebug/reductions/min/value", "value"}}
