"""Rows about configuration files and the variables that name them."""

import json
import time

import pytest

from tornasole import ReductionConfig, SaveConfig, SaveConfigMode, modes
from tornasole.core.hook import BaseHook

rows = pytest.mark.rows


class PlainHook(BaseHook):
    _framework = "pytorch"


class KerasLikeHook(BaseHook):
    _framework = "tensorflow"


SAMPLE = """{
  "LocalPath": "%s",
  "HookParameters": {
    "save_all": false, "include_regex": "regex1,regex2", "save_interval": "100", "save_steps": "1,2,3,4",
    "start_step": "1", "end_step": "1000000", "reductions": "min,max,mean"
  },
  "CollectionConfigurations": [
    {
      "CollectionName": "collection_obj_name1",
      "CollectionParameters": {
        "include_regex": "regexe5*", "save_interval": 100, "save_steps": "1,2,3", "start_step": 1, "reductions": "min"
      }
    },
  ]
}"""


@rows(125, 198, 199, 200)
def test_the_job_names_the_file(tmp_path, monkeypatch, row):
    (tmp_path / "config.json").write_text(json.dumps({"LocalPath": str(tmp_path / "run")}))
    monkeypatch.setenv("SMDEBUG_CONFIG_FILE_PATH", str(tmp_path / "config.json"))
    if row == 200:
        monkeypatch.setenv("TRAINING_JOB_NAME", "job")
    hook = PlainHook.create_from_json_file()
    assert hook.out_dir == str(tmp_path / "run") and hook.include_collections == ["losses"]
    assert hook.save_config == SaveConfig() and hook.reduction_config == ReductionConfig(save_raw_tensor=True)


@rows(202)
def test_the_sample_with_its_trailing_comma(from_json, tmp_path):
    hook = from_json(PlainHook, SAMPLE % (tmp_path / "run"))
    assert set(hook.include_collections) == {"losses", "default", "collection_obj_name1"}
    assert hook.reduction_config == ReductionConfig(["min", "max", "mean"])
    named = hook.get_collection("collection_obj_name1")
    assert named.save_config == SaveConfig(save_interval=100, save_steps=[1, 2, 3], start_step=1, end_step=1000000)


@rows(203)
def test_save_all(from_json):
    assert from_json(PlainHook, {"HookParameters": {"save_all": True}}).save_all is True


@rows(204)
def test_patterns_as_a_comma_list(from_json):
    hook = from_json(PlainHook, {"HookParameters": {"include_regex": "conv, dense"}})
    assert hook.include_regex == ["conv", "dense"] == hook.get_collection("default").include_regex


@rows(205, 206, 239)
def test_schedules_as_texts(from_json):
    parameters = {"save_interval": "50", "start_step": "1", "end_step": "900", "save_steps": "3,5,8"}
    expected = SaveConfig(save_interval=50, start_step=1, end_step=900, save_steps=[3, 5, 8])
    own = {"CollectionName": "mine", "CollectionParameters": {"include_regex": "x", "save_interval": 9}}
    hook = from_json(PlainHook, {"HookParameters": parameters, "CollectionConfigurations": [own]})
    assert hook.save_config == expected
    assert hook.get_collection("mine").save_config.save_interval == 9


@rows(208, 321, 322, 323)
def test_collections_in_files(from_json, row):
    number = (lambda n: n) if row == 208 else str
    schedule = {"save_interval": number(7), "save_steps": "1,2"}
    parameters = {"include_regex": "relu,tanh", "save_histogram": "false", **schedule}
    entries = [{"CollectionName": "acts", "CollectionParameters": parameters}, {"CollectionName": "weights"}]
    hook = from_json(PlainHook, {"CollectionConfigurations": entries})
    acts = hook.get_collection("acts")
    assert set(hook.include_collections) == {"acts", "weights", "losses"}
    assert acts.include_regex == ["relu", "tanh"] and acts.save_histogram is False
    assert acts.save_config == SaveConfig(save_interval=7, save_steps=[1, 2])


@rows(304)
def test_an_end_of_zero_in_a_file(from_json, saved):
    entry = {"CollectionName": "metrics", "CollectionParameters": {"end_step": 0}}
    hook = from_json(KerasLikeHook, {"CollectionConfigurations": [entry]})
    assert hook.get_collection("metrics").save_config.end_step == 0
    hook.get_collection("metrics").add("accuracy")
    hook.get_collection("losses").add("loss")
    assert hook._begin_step() is True and not hook._engine_hook.wants("accuracy") and hook._engine_hook.wants("loss")


def parameters_of(from_json, **parameters):
    """The collection ``mine`` as a file describes it with these parameters."""
    entry = {"CollectionName": "mine", "CollectionParameters": {"include_regex": "relu", **parameters}}
    return from_json(PlainHook, {"CollectionConfigurations": [entry]}).get_collection("mine")


@rows(324)
def test_parameter_include_regex(from_json):
    assert parameters_of(from_json).include_regex == ["relu"]


@rows(325)
def test_parameter_save_histogram(from_json):
    assert parameters_of(from_json, save_histogram=False).save_histogram is False


FIELDS = {"save_interval": (4, 4), "save_steps": ("2,9", [2, 9]), "start_step": (3, 3), "end_step": ("11", 11)}
BY_ROW = dict(zip(range(328, 348), [(p, f) for p in ("", "train.", "eval.", "predict.", "global.") for f in FIELDS]))


@rows(*BY_ROW)
def test_schedule_parameters_with_and_without_a_mode(row, from_json):
    prefix, field = BY_ROW[row]
    text, value = FIELDS[field]
    config = parameters_of(from_json, **{prefix + field: text}).save_config
    for mode in modes:
        is_meant = prefix in ("", mode.name.lower() + ".")
        expected = SaveConfigMode(**{field: value}) if is_meant else SaveConfigMode()
        assert config.get_save_config(mode) == expected


def tensorboard_file(tmp_path, monkeypatch):
    """SageMaker's TensorBoard file, named by its variable."""
    (tmp_path / "tensorboard.json").write_text(json.dumps({"LocalPath": str(tmp_path / "boards")}))
    monkeypatch.setenv("TENSORBOARD_CONFIG_FILE_PATH", str(tmp_path / "tensorboard.json"))


@rows(209, 211)
def test_the_tensorboard_file_says_where(from_json, tmp_path, monkeypatch, row):
    if row == 211:
        monkeypatch.setenv("TRAINING_JOB_NAME", "job")
    tensorboard_file(tmp_path, monkeypatch)
    assert from_json(PlainHook, {}).tensorboard_dir == str(tmp_path / "boards")


@rows(210, 213)
def test_without_that_file_the_hooks_own_parameters_count(from_json, tmp_path, monkeypatch, row):
    if row == 210:
        monkeypatch.setenv("TRAINING_JOB_NAME", "job")
    monkeypatch.setenv("TENSORBOARD_CONFIG_FILE_PATH", str(tmp_path / "none.json"))
    parameters = {"export_tensorboard": True, "tensorboard_dir": str(tmp_path / "own")}
    assert from_json(PlainHook, {"HookParameters": parameters}).tensorboard_dir == str(tmp_path / "own")


@rows(212)
def test_the_tensorboard_directory_in_code_and_in_files(from_json, tmp_path):
    assert PlainHook(tmp_path / "a", tensorboard_dir=tmp_path / "tb").tensorboard_dir == str(tmp_path / "tb")
    assert PlainHook(tmp_path / "b", export_tensorboard=True).tensorboard_dir == str(tmp_path / "b" / "tensorboard")
    assert PlainHook(tmp_path / "c").tensorboard_dir is None
    hook = from_json(PlainHook, {"HookParameters": {"export_tensorboard": "true"}})
    assert hook.tensorboard_dir == str(tmp_path / "run" / "tensorboard")


@rows(217)
def test_the_last_look_at_a_run_that_ended_is_delayed(tmp_path, monkeypatch):
    trials = pytest.importorskip("tornasole.trials")
    hook = PlainHook(tmp_path / "run", save_all=True)
    hook._begin_step()
    hook.save_tensor("x", 1.0)
    hook.close()

    def seconds():
        start = time.monotonic()
        trials.create_trial(str(tmp_path / "run"))
        return time.monotonic() - start

    monkeypatch.delenv("SMDEBUG_TRAINING_END_DELAY_REFRESH")
    assert seconds() >= 1.0, "a second by default"
    monkeypatch.setenv("TRAINING_END_DELAY_REFRESH", "0")
    assert any(seconds() < 1.0 for _ in range(30))
