"""Every trial the original debugger wrote, through Python, against what is recorded beside it."""

import hashlib
import json
import pathlib

import pytest

from tornasole.exceptions import IndexReaderException, MissingCollectionFiles, TensorUnavailableForStep
from tornasole.modes import ModeKeys
from tornasole.trials import create_trial

GOLDEN = pathlib.Path(__file__).resolve().parents[2] / "golden" / "smdebug"
FIXTURES = sorted(path.parent.relative_to(GOLDEN).as_posix() for path in GOLDEN.rglob("expected.json"))


def test_all_fixtures_are_there():
    assert len(FIXTURES) == 45


@pytest.fixture(autouse=True)
def no_waiting(monkeypatch):
    monkeypatch.setenv("SMDEBUG_MISSING_EVENT_FILE_RETRY_LIMIT", "0")
    monkeypatch.setenv("SMDEBUG_TRAINING_END_DELAY_REFRESH", "0")


def digest(array):
    if array.dtype.kind == "U":
        return hashlib.sha256(b"".join(text.encode() + b"\0" for text in array.reshape(-1).tolist())).hexdigest()
    return hashlib.sha256(array.tobytes()).hexdigest()


def check_value(read, expected):
    if expected is None or expected["status"] != "ok":
        with pytest.raises(TensorUnavailableForStep) as caught:
            read()
        assert caught.value.reason
        return
    array = read()
    assert ("string" if array.dtype.kind == "U" else array.dtype.name) == expected["dtype"]
    assert list(array.shape) == expected["shape"]
    assert digest(array) == expected["sha256"]


def check_reduction(number, expected):
    assert expected["size"] == 1
    wanted = float(expected["data"][0])
    assert number == wanted or (number != number and wanted != wanted)


def check_trial(trial, expected):
    assert trial.loaded_all_steps == expected["training_ended"]
    assert trial.num_workers == expected["num_workers"]
    assert trial.workers() == expected["workers"]
    assert {mode.name for mode in trial.modes()} == set(expected["modes"])
    for mode, steps in expected["steps"].items():
        assert trial.steps(mode=ModeKeys[mode]) == steps
    for mode, steps in expected["steps_including_incomplete"].items():
        assert trial.steps(mode=ModeKeys[mode], show_incomplete_steps=True) == steps
    assert trial.last_complete_step == expected["last_complete_step"]
    for step, at in trial._global_to_mode.items():
        assert at == trial.mode_modestep(step)
    for mode, steps in trial._mode_to_global.items():
        assert list(steps) == expected["steps_including_incomplete"][mode.name]
    for step, mode, mode_step in expected["global_step_to_mode_step"]:
        assert (trial.mode(step), trial.mode_step(step)) == (ModeKeys[mode], mode_step)
        assert trial.global_step(ModeKeys[mode], mode_step) == step
    assert trial.tensor_names() == expected["tensor_names"]
    for mode, names in expected["tensor_names_by_mode"].items():
        assert trial.tensor_names(mode=ModeKeys[mode]) == names
    for step, names in expected["tensor_names_by_global_step"].items():
        assert trial.tensor_names(step=int(step)) == names


def check_collections(trial, expected):
    assert trial.collections().keys() >= expected.keys()
    for name, fields in expected.items():
        collection = trial.collection(name)
        assert collection.name == name
        assert collection.include_regex == fields["include_regex"]
        assert collection.save_histogram == fields["save_histogram"]
        if trial.num_workers == 1:
            assert collection.tensor_names >= set(fields["tensor_names"])
        assert trial.tensor_names(collection=name) == fields["saved_tensors"]
        assert trial.tensor_names(collection=collection) == fields["saved_tensors"]


def check_tensor(trial, expected):
    tensor = trial.tensor(expected["name"])
    assert tensor.original_name == expected["original_name"]
    for mode, steps in expected["steps"].items():
        assert tensor.steps(mode=ModeKeys[mode], show_incomplete_steps=True) == steps
    for entry in expected["entries"]:
        mode, worker = ModeKeys[entry["mode"]], entry["worker"]
        assert worker in tensor.workers(entry["global_step"])
        value = entry.get("true_value", entry.get("value"))
        check_value(lambda: tensor.value(entry["global_step"], worker=worker), value)
        check_value(lambda: tensor.value(entry["mode_step"], mode=mode, worker=worker), value)
        shape = entry.get("true_shape", entry.get("shape"))
        if isinstance(shape, list):
            assert tensor.shape(entry["mode_step"], mode=mode, worker=worker) == tuple(shape)
        stored = tensor.reduction_values(entry["mode_step"], mode=mode, worker=worker)
        assert {("abs_" if of_abs else "") + name for name, of_abs in stored} == set(entry["reductions"])
        for (name, of_abs), number in stored.items():
            check_reduction(number, entry["reductions"][("abs_" if of_abs else "") + name])
            again = tensor.reduction_value(entry["mode_step"], name, mode=mode, worker=worker, abs=of_abs)
            assert again == number or number != number


@pytest.mark.parametrize("name", FIXTURES)
def test_a_trial_of_the_reference_is_read_as_recorded(name):
    expected = json.loads((GOLDEN / name / "expected.json").read_text())
    path = str(GOLDEN / name / "trial")
    if "open" in expected:
        with pytest.raises((IndexReaderException, MissingCollectionFiles)) as caught:
            create_trial(path, timeout=0)
        assert str(caught.value)
        assert create_trial(path, timeout=0, on_damage="skip").damage
        return
    trial = create_trial(path, timeout=0)
    check_trial(trial, expected["trial"])
    check_collections(trial, expected["collections"])
    for tensor in expected["tensors"]:
        check_tensor(trial, tensor)


def test_values_read_in_one_pass_are_those_read_one_by_one():
    trial = create_trial(str(GOLDEN / "pytorch_mlp" / "trial"))
    for name in trial.tensor_names():
        tensor = trial.tensor(name)
        for mode in (ModeKeys.GLOBAL, ModeKeys.TRAIN, ModeKeys.EVAL):
            values = tensor.values(mode=mode)
            assert list(values) == tensor.steps(mode=mode)
            assert {step: digest(tensor.value(step, mode=mode)) for step in values} == {
                step: digest(value) for step, value in values.items()
            }
            assert tensor.shapes(mode=mode) == {step: value.shape for step, value in values.items()}
