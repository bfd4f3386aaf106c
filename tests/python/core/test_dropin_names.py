"""The package smdebug is tornasole under another name, and writes what tornasole reads."""

import importlib
import json
import os
import pathlib
import subprocess
import sys

import numpy
import pytest

import tornasole

sys.path.insert(0, str(pathlib.Path(__file__).resolve().parents[3] / "python" / "smdebug_dropin"))
smdebug = importlib.import_module("smdebug")

MODULES = [
    "exceptions",
    "core.access_layer",
    "core.access_layer.file",
    "core.access_layer.utils",
    "core.collection",
    "core.collection_manager",
    "core.config_constants",
    "core.config_validator",
    "core.error_handling_agent",
    "core.hook",
    "core.hook_utils",
    "core.json_config",
    "core.logger",
    "core.modes",
    "core.reduction_config",
    "core.reductions",
    "core.sagemaker_utils",
    "core.save_config",
    "core.singleton_utils",
    "core.utils",
    "core.writer",
]


@pytest.mark.parametrize("name", MODULES)
def test_a_module_is_the_same_object_under_both_names(name):
    ours = importlib.import_module(f"tornasole.{name}")
    assert importlib.import_module(f"smdebug.{name}") is ours
    assert ours.__name__ == ours.__spec__.name == f"tornasole.{name}"


def test_names_at_the_top():
    assert smdebug.__version__ == "1.0.34"
    for name in ("SaveConfig", "SaveConfigMode", "ReductionConfig", "CollectionKeys", "modes"):
        assert getattr(smdebug, name) is getattr(tornasole, name)


def test_what_is_not_there_is_not_found():
    with pytest.raises(ModuleNotFoundError, match="smdebug.nowhere"):
        importlib.import_module("smdebug.nowhere")


def test_a_module_runs_as_a_program():
    where = {**os.environ, "PYTHONPATH": os.pathsep.join(sys.path)}
    done = subprocess.run([sys.executable, "-m", "smdebug.rules.rule_invoker"], env=where, capture_output=True, text=True)
    assert (done.returncode, done.stdout, done.stderr) == (0, "", "")


def test_sets_of_collections():
    from smdebug.core import collection

    hook_collections = set(collection.CollectionKeys.__dict__.values())
    for framework in ("PYTORCH", "MXNET", "TF", "XGBOOST"):
        names = getattr(collection, f"DEFAULT_{framework}_COLLECTIONS")
        assert {"all", "default"} <= names <= hook_collections
    assert collection.NON_REDUCTION_COLLECTIONS == {
        *("losses", "metrics", "sm_metrics", "feature_importance", "average_shap", "tensorflow_summaries"),
    }


def test_a_step_written_by_hand(tmp_path, saved_names):
    from smdebug.core.access_layer.utils import has_training_ended, training_has_ended
    from smdebug.core.hook_utils import verify_and_get_out_dir
    from smdebug.core.modes import ModeKeys
    from smdebug.core.writer import FileWriter

    for step in (0, 1):
        with FileWriter(trial_dir=tmp_path / "run", step=step, worker="algo-1") as writer:
            writer.write_tensor(numpy.ones((2, 2)) * step, "foo", mode=ModeKeys.TRAIN, mode_step=step)
            writer.write_tensor(numpy.array(["a", "b"]), "text")
            writer.write_shape("seen", (3, 4))
            assert writer.name().endswith(f"00000000000{step}_algo-1.tfevents")
    assert saved_names(tmp_path / "run") == {0: {"foo", "text"}, 1: {"foo", "text"}}
    assert not has_training_ended(str(tmp_path / "run")) and not has_training_ended(tmp_path / "run")
    assert verify_and_get_out_dir(tmp_path / "run") == str(tmp_path / "run")
    training_has_ended(str(tmp_path / "run"))
    assert has_training_ended(str(tmp_path / "run")) and has_training_ended(tmp_path / "run")
    with pytest.raises(RuntimeError):
        verify_and_get_out_dir(str(tmp_path / "run"))


def test_a_step_made_by_hand_is_replaced_and_one_of_a_run_is_not(hook_class, tmp_path):
    from smdebug.core.reader import FileReader
    from smdebug.core.writer import FileWriter

    def write(directory, value, step=3):
        with FileWriter(tmp_path / directory, step=step) as writer:
            writer.write_tensor([value], "x")
        return writer.name()

    write("made", 1.0)
    (record,) = FileReader(write("made", 2.0)).read_tensors()
    assert list(record[2]) == [2.0]
    hook = hook_class(tmp_path / "run", save_all=True)
    hook.run(1, {"x": [5.0]})
    hook.close()
    with pytest.raises(tornasole.exceptions.SMDebugError, match="not replaced"):
        write("run", 1.0, step=0)
    (path,) = (tmp_path / "run").glob("events/*/*.tfevents")
    (record,) = FileReader(str(path)).read_tensors()
    assert list(record[2]) == [5.0], "what is not replaced is still there"


def test_a_file_part_by_part(tmp_path):
    from smdebug.core.collection_manager import CollectionManager
    from smdebug.core.json_config import (
        add_collections_to_manager,
        collect_hook_config_params,
        get_include_collections,
        get_json_config_as_dict,
    )

    entry = {"CollectionName": "weights", "CollectionParameters": {"include_regex": "w,v", "save_histogram": "False"}}
    hook = {"save_all": "true", "include_workers": "one", "save_interval": "7", "reductions": "min", "dry_run": False}
    content = {"LocalPath": str(tmp_path / "run"), "HookParameters": hook, "CollectionConfigurations": [entry]}
    (tmp_path / "config.json").write_text(json.dumps(content))
    params = get_json_config_as_dict(str(tmp_path / "config.json"))
    assert params == content and get_include_collections(params) == ["weights"]
    collected = collect_hook_config_params(params)
    assert (collected["save_all"], collected["include_workers"], collected["tensorboard_dir"]) == (True, "one", None)
    assert collected["reduction_config"] == tornasole.ReductionConfig(["min"])
    assert collected["save_config_modes"][tornasole.modes.EVAL]["save_interval"] == 7
    manager = CollectionManager()
    add_collections_to_manager(manager, params, collected)
    assert manager.get("weights").include_regex == ["w", "v"] and manager.get("weights").save_histogram is False
    with pytest.raises(FileNotFoundError):
        get_json_config_as_dict(str(tmp_path / "none.json"))


@pytest.mark.parametrize(
    "path, answer",
    [
        ("a/b", (False, None, None)),
        ("s3://a/b/c", (True, "a", "b/c")),
        ("s3://a", (True, "a", "")),
        ("s3://a/", (True, "a", "")),
    ],
)
def test_s3_paths(path, answer):
    from smdebug.core.utils import is_s3

    assert is_s3(path) == answer


def test_reduction_names_and_numbers():
    from smdebug.core.reductions import get_numpy_reduction, get_reduction_tensor_name, reverse_reduction_tensor_name

    name = get_reduction_tensor_name("dense/w:0", "max", True)
    assert name == "smdebug/reductions/abs_max/dense/w"
    assert reverse_reduction_tensor_name(name) == ("dense/w", "max", True)
    assert get_numpy_reduction("max", numpy.array([1.0, -5.0]), abs=True) == 5.0


@pytest.mark.parametrize("texts, truth", [("1 t True YES on y", True), ("0 f False NO off n", False)])
def test_truth_values_of_a_command_line(texts, truth):
    import argparse

    from smdebug.profiler.utils import str2bool

    parser = argparse.ArgumentParser()
    parser.add_argument("--gpu", type=str2bool, default=not truth)
    for text in texts.split():
        assert parser.parse_args(["--gpu", text]).gpu is truth
    assert str2bool(truth) is truth
    with pytest.raises(ValueError, match="'perhaps' is no truth value"):
        str2bool("perhaps")


def test_a_script_that_asks_about_profiling():
    from smdebug.core.utils import FRAMEWORK
    from smdebug.profiler.profiler_config_parser import (
        MetricsCategory,
        get_profiler_config_parser,
        reset_profiler_config_parser,
    )
    from smdebug.profiler.profiler_constants import CONVERT_TO_MICROSECS, DEFAULT_PREFIX

    parser = get_profiler_config_parser(FRAMEWORK.PYTORCH)
    assert parser is get_profiler_config_parser(FRAMEWORK.PYTORCH) and parser.framework is FRAMEWORK.PYTORCH
    parser.load_config()
    assert parser.profiling_enabled is False and parser.config is None
    assert parser.should_save_metrics(MetricsCategory.DETAILED_PROFILING, 5) is False
    reset_profiler_config_parser()
    assert get_profiler_config_parser(FRAMEWORK.PYTORCH) is not parser
    assert (CONVERT_TO_MICROSECS, DEFAULT_PREFIX) == (1_000_000, "framework/pevents")


def test_times_in_other_units():
    import datetime

    from smdebug.profiler import utils
    from smdebug.profiler.utils import TimeUnits

    assert utils.convert_utc_timestamp_to_nanoseconds(1.5, TimeUnits.SECONDS) == 1_500_000_000
    assert utils.convert_utc_timestamp_to_microseconds(1.5, TimeUnits.MILLISECONDS) == 1500
    assert utils.convert_utc_timestamp_to_microseconds(1500, TimeUnits.NANOSECONDS) == 1.5
    assert utils.convert_utc_timestamp_to_seconds(1_999_999) == 1
    moment = datetime.datetime(2024, 1, 31, 12, tzinfo=datetime.timezone.utc)
    assert utils.convert_utc_datetime_to_microseconds(moment) == 1_706_702_400_000_000
    assert utils.us_since_epoch_to_human_readable_time(1_706_702_400_000_001) == "2024-01-31T12:00:00:000001"
    assert utils.ns_since_epoch_to_human_readable_time(1_706_702_400_000_000_000) == "2024-01-31T12:00:00:000000"
