"""Files that another writer, or a hand, left in a trial: what the reference opens, opens here."""

import json
import os

import pytest

from trial_files import TrialFiles

from tornasole.exceptions import IndexReaderException, SMDebugValueError
from tornasole.modes import ModeKeys
from tornasole.trials import create_trial

INDEX = "index/000000000/000000000007_worker_0.json"
COLLECTIONS = "collections/000000000/worker_0_collections.json"


@pytest.fixture
def files(tmp_path):
    files = TrialFiles(tmp_path)
    files.write(7, mode="EVAL", mode_step=3, tensors={"a": [1.0, 2.0], "b": [3.0]})
    return files


def edit(files, name, change):
    path = os.path.join(files.path, name)
    with open(path, encoding="utf-8") as file:
        text = file.read()
    changed = change(text)
    assert changed != text
    with open(path, "w", encoding="utf-8") as file:
        file.write(changed)
    os.utime(path, (1, 1))  # a young file that cannot be read would be looked at again


SOUND = {
    "a byte-order mark": (INDEX, lambda text: "\ufeff" + text),
    "numbers that are not finite below unknown keys": (INDEX, lambda text: text[:-1] + ', "x": [NaN, -Infinity]}'),
    "a key that comes twice": (INDEX, lambda text: text.replace('"mode":', '"mode": "TRAIN", "mode":')),
    "a list that comes twice": (
        INDEX,
        lambda text: text.replace('"tensor_payload":', '"tensor_payload": [{"tensorname": "gone", '
                                  '"start_idx": 0, "length": 20}], "tensor_payload":'),
    ),
    "integers written as fractions": (
        INDEX,
        lambda text: text.replace('"mode_step": 3', '"mode_step": 3.0').replace('"start_idx": 0', '"start_idx": 0e1'),
    ),
    "space around the mode": (INDEX, lambda text: text.replace('"EVAL"', '" EVAL\\n"')),
    "a path with a dot and two slashes": (INDEX, lambda text: text.replace('"events/', '"./events//')),
    "a path that turns back": (INDEX, lambda text: text.replace('"events/', '"index/../events/')),
    "NaN in the collections": (COLLECTIONS, lambda text: text.replace('"_meta": {', '"_meta": {"x": NaN, ')),
    "workers in words of Python": (COLLECTIONS, lambda text: text.replace('"num_workers": 1', '"num_workers": " 1 "')),
}


@pytest.mark.parametrize("what", SOUND)
def test_what_the_reference_opens(files, what):
    edit(files, *SOUND[what])
    trial = create_trial(files.path)
    assert trial.tensor_names() == ["a", "b"]
    assert trial.steps(mode=ModeKeys.EVAL) == [3] and trial.global_step(ModeKeys.EVAL, 3) == 7
    assert trial.tensor("a").value(7).tolist() == [1.0, 2.0]
    assert trial.tensor("b").value(3, mode=ModeKeys.EVAL).tolist() == [3.0]


REFUSED = {
    "a mode step between two": (INDEX, ("3", "3.5"), r"mode_step is 3\.5, not an integer of at least 0"),
    "a mode step that is a text": (INDEX, ("3", '"3"'), r'mode_step is "3", not an integer of at least 0'),
    "a mode step that is no number": (INDEX, ("3", "NaN"), r"mode_step is NaN, not an integer of at least 0"),
}


@pytest.mark.parametrize("what", REFUSED)
def test_what_has_no_meaning_is_refused_by_name(files, what):
    name, (before, after), says = REFUSED[what]
    edit(files, name, lambda text: text.replace(f'"mode_step": {before}', f'"mode_step": {after}'))
    with pytest.raises(IndexReaderException, match=f"{name}: {says}"):
        create_trial(files.path)


def test_a_pattern_of_a_stored_collection_that_cannot_be_used(tmp_path):
    files = TrialFiles(tmp_path, collections={"broken": (["a", "(("], ["b"]), "sound": (["a"], [])})
    files.write(0, tensors={"a": [1.0], "b": [2.0]})
    trial = create_trial(files.path)
    assert trial.collection("broken").include_regex == ["a", "(("]
    assert trial.tensor_names(collection="sound") == ["a"]
    with pytest.raises(SMDebugValueError, match=r"\(\("):
        trial.tensor_names(collection="broken")
    trial.collection("broken").include_regex.remove("((")
    assert trial.tensor_names(collection="broken") == ["a", "b"]


def test_a_scalar_before_the_first_step_of_its_mode_is_read(tmp_path):
    """The reference writes -1 into the event, and the mode step of the other tensors into the index."""
    files = TrialFiles(tmp_path)
    files.write(0, mode="EVAL", mode_step=-1, tensors={"scalar/lr": [0.5]})
    index = os.path.join(files.path, "index/000000000/000000000000_worker_0.json")
    with open(index) as file:
        content = json.load(file)
    content["meta"]["mode_step"] = 0
    with open(index, "w") as file:
        json.dump(content, file)
    trial = create_trial(files.path)
    assert trial.tensor("scalar/lr").value(0, mode=ModeKeys.EVAL).tolist() == [0.5]


def test_steps_of_a_mode_that_come_again_keep_their_values(tmp_path):
    """As after a resumed run whose mode began anew: a global step is never answered with another one's value."""
    files = TrialFiles(tmp_path)
    for step, mode_step in enumerate([0, 1, 1, 0, 2]):
        files.write(step, mode="TRAIN", mode_step=mode_step, tensors={"a": [step]})
    files.end()
    tensor = create_trial(files.path).tensor("a")
    assert [tensor.value(step).tolist() for step in tensor.steps()] == [[0], [1], [2], [3], [4]]
    assert tensor.prev_steps(4, 2) == [3, 4]
    assert tensor.prev_steps(3, 3) == [1, 2, 3]


def test_a_value_that_has_a_shape_record_too(tmp_path):
    files = TrialFiles(tmp_path)
    files.write(0, tensors={"loss": [1.5, 2.5]}, shapes={"loss": ("loss", (2,))})
    files.end()
    tensor = create_trial(files.path).tensor("loss")
    assert tensor.value(0).tolist() == [1.5, 2.5]
    assert tensor.shape(0) == (2,)
    assert tensor.reduction_value(0, "mean") == 2


def test_a_mode_without_steps_has_no_names(files):
    trial = create_trial(files.path)
    assert trial.tensor_names(mode=ModeKeys.PREDICT) == []
    assert trial.tensor_names(step=9, mode=ModeKeys.EVAL) == []
