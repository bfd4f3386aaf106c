"""Which steps are complete, available or to come: runs of one to three workers, ended or not."""

import numpy
import pytest

from trial_files import TrialFiles

from tornasole.analysis.utils import no_refresh, refresh
from tornasole.core.collection_manager import CollectionManager
from tornasole.core.tensor import StepState
from tornasole.core.writer import FileWriter
from tornasole.exceptions import NoMoreData, StepUnavailable
from tornasole.modes import ModeKeys
from tornasole.trials import create_trial

YES, NO, LATER = StepState.AVAILABLE, StepState.UNAVAILABLE, StepState.NOT_YET_AVAILABLE


@pytest.fixture(autouse=True)
def no_delay_at_the_end(monkeypatch):
    monkeypatch.setenv("SMDEBUG_TRAINING_END_DELAY_REFRESH", "0")


def each(steps, workers):
    return {step: workers for step in steps}


# name: workers, step -> who wrote it, ended, complete steps, last complete step, states
SCENARIOS = {
    "one worker, all steps, ended": ("a", each(range(7), "a"), True, range(7), 6, {3: YES, 8: NO}),
    "one worker, all steps, running": ("a", each(range(7), "a"), False, range(7), 6, {3: YES, 8: LATER}),
    "one worker passes over a step": (
        "a",
        each((0, 1, 2, 3, 5, 6), "a"),
        False,
        (0, 1, 2, 3, 5, 6),
        6,
        {4: NO, 8: LATER},
    ),
    "a worker falls behind": (
        "abc",
        each(range(3), "abc") | each(range(3, 7), "ac"),
        False,
        range(3),
        2,
        {2: YES, 4: LATER, 6: LATER, 8: LATER},
    ),
    "a later step completes those before it": (
        "abc",
        each(range(3), "abc") | each(range(3, 6), "ac") | {6: "abc"},
        False,
        range(7),
        6,
        {4: YES, 8: LATER},
    ),
    "a step nobody wrote before incomplete ones": (
        "abc",
        each(range(3), "abc") | each(range(4, 7), "ac"),
        False,
        range(3),
        2,
        {3: LATER, 4: LATER, 6: LATER},
    ),
    "the same, ended": (
        "abc",
        each(range(3), "abc") | each(range(4, 7), "ac"),
        True,
        (0, 1, 2, 4, 5, 6),
        6,
        {3: NO, 4: YES, 8: NO},
    ),
}


@pytest.mark.parametrize("name", SCENARIOS)
def test_completeness(name, tmp_path):
    workers, written, ended, complete, last_complete, states = SCENARIOS[name]
    files = TrialFiles(tmp_path, workers)
    for step, who in written.items():
        files.write_steps([step], who)
    if ended:
        files.end()
    trial = create_trial(str(tmp_path))
    assert trial.steps() == list(complete)
    assert trial.steps(show_incomplete_steps=True) == sorted(written)
    assert trial.last_complete_step == last_complete
    assert trial.loaded_all_steps is ended
    assert {step: trial.has_passed_step(step) for step in states} == states
    token_step = max(step for step, who in written.items() if len(who) == len(workers))
    assert trial.last_index_token == f"{tmp_path}/index/000000000/{token_step:012}_{workers[-1]}.json"


def test_waiting_for_steps_of_a_run_that_has_ended(tmp_path):
    files = TrialFiles(tmp_path)
    files.write_steps((0, 1, 2, 3, 5, 6))
    files.end()
    trial = create_trial(str(tmp_path))
    trial.wait_for_steps([0, 1, 2, 3, 5, 6])
    with pytest.raises(StepUnavailable) as passed:
        trial.wait_for_steps([0, 1, 2, 3, 4, 5, 6])
    assert (passed.value.step, passed.value.mode) == (4, ModeKeys.GLOBAL)
    with pytest.raises(NoMoreData) as over:
        trial.wait_for_steps([0, 1, 2, 3, 5, 6, 7])
    assert (over.value.step, over.value.mode, over.value.last_step) == (7, ModeKeys.GLOBAL, 6)


def test_the_wait_window_moves_by_half_at_each_refresh(tmp_path, monkeypatch):
    monkeypatch.setenv("SMDEBUG_INCOMPLETE_STEP_WAIT_WINDOW", "10")
    files = TrialFiles(tmp_path, "abc")
    files.write_steps(range(20), "a")
    trial = create_trial(str(tmp_path))
    assert trial.last_complete_step == 4
    seen = []
    for _ in range(3):
        trial.refresh_data()
        seen.append((trial.last_complete_step, trial.last_index_token))
    assert seen == [(9, f"{tmp_path}/index/000000000/000000000009_c.json")] * 3


def test_the_token_lies_below_the_path_as_it_was_given(tmp_path, monkeypatch):
    TrialFiles(tmp_path / "run").write(0)
    monkeypatch.chdir(tmp_path)
    monkeypatch.setenv("HOME", str(tmp_path))
    token = "run/index/000000000/000000000000_worker_0.json"
    assert create_trial("run").last_index_token == token
    assert create_trial("  ./run ").last_index_token == f"./{token}"
    assert create_trial("~/run").last_index_token == f"{tmp_path}/{token}"


@pytest.mark.parametrize("ended", [True, False])
def test_steps_of_modes(ended, tmp_path):
    files = TrialFiles(tmp_path)
    for place, step in enumerate((0, 10, 20, 30)):
        files.write(step, mode="TRAIN", mode_step=step)
        files.write(40 + step, mode="EVAL", mode_step=step)
    if ended:
        files.end()
    trial = create_trial(str(tmp_path))
    assert trial.steps() == [0, 10, 20, 30, 40, 50, 60, 70]
    assert trial.last_complete_step == 70
    after_end = NO if ended else LATER
    states = {
        (ModeKeys.TRAIN, 23): NO,
        (ModeKeys.TRAIN, 40): after_end,
        (ModeKeys.EVAL, 23): NO,
        (ModeKeys.EVAL, 30): YES,
        (ModeKeys.GLOBAL, 80): after_end,
    }
    assert {key: trial.has_passed_step(key[1], mode=key[0]) for key in states} == states
    assert trial.modes() == {ModeKeys.TRAIN, ModeKeys.EVAL}
    assert trial.steps(mode=ModeKeys.PREDICT) == []
    assert trial.tensor_names(mode=ModeKeys.PREDICT) == []
    assert trial.tensor_names(step=5, mode=ModeKeys.PREDICT) == []
    assert (trial.mode(50), trial.mode_step(50)) == (ModeKeys.EVAL, 10)
    assert (trial.mode(51), trial.mode_step(51)) == (None, None)
    assert trial.global_step(ModeKeys.EVAL, 10) == 50
    assert trial.global_step(ModeKeys.EVAL, 11) is None
    assert trial.global_step(ModeKeys.GLOBAL, 12345) == 12345


def test_steps_of_a_tensor_are_complete_when_the_global_step_is(tmp_path):
    files = TrialFiles(tmp_path, "ab")
    for step in range(10):
        tensors = {"weight": [1], "loss" if step < 5 else "gradient": [2]}
        files.write_steps([step], "b" if step in (3, 4, 8, 9) else "ab", tensors=tensors)
    trial = create_trial(str(tmp_path))
    assert trial.steps() == list(range(8))
    assert trial.last_complete_step == 7
    assert trial.tensor("loss").steps() == [0, 1, 2, 3, 4]
    assert trial.tensor("gradient").steps() == [5, 6, 7]
    assert trial.tensor("gradient").steps(show_incomplete_steps=True) == [5, 6, 7, 8, 9]
    assert trial.tensor("gradient").prev_steps(6) == [5, 6]
    assert trial.tensor("weight").prev_steps(100, n=3) == [5, 6, 7]
    assert trial.tensor("weight").prev_steps(6, n=0) == list(range(7))


def test_a_range_of_steps_stays_one(tmp_path):
    files = TrialFiles(tmp_path)
    files.write_steps(range(20))
    trials = {bounds: create_trial(str(tmp_path), range_steps=bounds) for bounds in ((0, 5), (None, 3), (18, None))}
    files.write_steps(range(20, 25))
    assert trials[0, 5].steps() == [0, 1, 2, 3, 4]
    assert trials[None, 3].steps() == [0, 1, 2]
    assert trials[18, None].steps() == list(range(18, 25))


def test_what_is_written_in_a_frozen_scope_is_seen_after_it(tmp_path):
    files = TrialFiles(tmp_path)
    files.write_steps(range(8))
    trial = create_trial(str(tmp_path))
    tensor = trial.tensor("a")
    files.write_steps(range(8, 16))
    for scope in (lambda: no_refresh(trial), lambda: no_refresh([trial])):
        with scope():
            assert len(trial.steps()) == 8
            assert len(tensor.steps()) == 8
            assert trial.has_passed_step(8) == LATER
            with refresh([trial]):
                assert trial.dynamic_refresh is True
            assert trial.dynamic_refresh is False
            assert not trial.has_tensor("later")
    assert trial.dynamic_refresh is True
    assert len(trial.steps()) == 16
    with pytest.raises(KeyError), no_refresh([trial]):
        raise KeyError
    assert trial.dynamic_refresh is True


def test_waiting_refreshes_and_leaves_the_flag_alone(tmp_path):
    files = TrialFiles(tmp_path)
    files.write_steps(range(2))
    trial = create_trial(str(tmp_path))
    files.write_steps(range(2, 4))
    with no_refresh(trial):
        trial.wait_for_steps([3])
        assert trial.dynamic_refresh is False
    assert trial.dynamic_refresh is True


def test_the_names_of_the_first_releases(tmp_path):
    names = ("gradient/w", "w", "x")
    for step, mode, saved in ((0, ModeKeys.TRAIN, names), (1, ModeKeys.EVAL, names[1:])):
        with FileWriter(trial_dir=str(tmp_path), step=step, worker="worker_0") as writer:
            for name in saved:
                writer.write_tensor(tdata=numpy.ones(2, "float32"), tname=name, mode=mode, mode_step=0)
    collections = CollectionManager()
    collections.add("weights")
    collections.get("weights").tensor_names = ["w"]
    collections.export(str(tmp_path), "worker_0_collections.json")
    trial = create_trial(str(tmp_path))
    assert trial.tensors() == trial.tensor_names() == list(names)
    assert trial.tensors(1) == trial.tensors(0, ModeKeys.EVAL) == ["w", "x"]
    assert trial.tensors(regex="^w") == trial.tensors_matching_regex(["^w"]) == ["w"]
    assert trial.tensors(collection="weights") == trial.tensors_in_collection("weights") == ["w"]
    assert trial.available_steps() == [0, 1] and trial.available_steps(mode=ModeKeys.EVAL) == [0]
    with pytest.raises(ValueError):
        trial.tensors(regex="w", collection="weights")
