"""Trials of runs that go on: what questions see, and how waits end."""

import copy
import logging
import os
import pickle
import signal
import subprocess
import sys
import textwrap
import threading
import time

import numpy
import pytest

from trial_files import TrialFiles, open_hook

from tornasole.analysis.utils import no_refresh
from tornasole.core.tensor import StepState
from tornasole.exceptions import (
    MissingCollectionFiles,
    NoMoreData,
    SMDebugTypeError,
    StepNotYetAvailable,
    StepUnavailable,
    TensorUnavailable,
    TensorUnavailableForStep,
)
from tornasole.modes import ModeKeys
from tornasole.trials import LocalTrial, create_trial
from tornasole.trials import trial as trial_module


def test_a_trial_follows_a_hook_step_by_step(tmp_path):
    hook = open_hook(tmp_path / "run")
    with pytest.raises(MissingCollectionFiles):
        create_trial(str(tmp_path / "run"), timeout=0)
    trial = None
    for step in range(4):
        hook.begin_step(ModeKeys.TRAIN.value)
        hook.save("x", numpy.full((2, 3), step, dtype=numpy.float32))
        hook.end_step()
        trial = trial or create_trial(str(tmp_path / "run"))
        trial.poll_interval = 0.02
        trial.wait_for_steps([step], mode=ModeKeys.TRAIN)
        assert trial.steps(mode=ModeKeys.TRAIN) == list(range(step + 1))
        assert (trial.tensor("x").value(step, mode=ModeKeys.TRAIN) == step).all()
    assert trial.run_status[0] == "running"
    assert not trial.loaded_all_steps
    hook.close()
    with pytest.raises(NoMoreData):
        trial.wait_for_steps([4], mode=ModeKeys.TRAIN)
    assert trial.loaded_all_steps
    assert trial.run_status[0] == "ended"


# What is asked, and whether it sees a step that was written since the last question.
QUESTIONS = {
    "tensor_names": (lambda t: "b" in t.tensor_names(), True),
    "steps": (lambda t: 1 in t.steps(), True),
    "workers": (lambda t: t.workers() and 1 in t._engine.steps(4, False), True),
    "has_passed_step": (lambda t: t.has_passed_step(1) == StepState.AVAILABLE, True),
    "has_tensor, unknown": (lambda t: t.has_tensor("b"), True),
    "mode, unknown": (lambda t: t.mode(1) == ModeKeys.TRAIN, True),
    "mode_step, unknown": (lambda t: t.mode_step(1) == 0, True),
    "global_step, unknown": (lambda t: t.global_step(ModeKeys.TRAIN, 0) == 1, True),
    "Tensor.steps": (lambda t: t.tensor("a").steps() and t.tensor("a").steps() == [0, 1], True),
    "Tensor.prev_steps": (lambda t: t.tensor("a").prev_steps(1) == [0, 1], True),
    "Tensor.value, unknown": (lambda t: t.tensor("a").value(1) is not None, True),
    "Tensor.shape, unknown": (lambda t: t.tensor("a").shape(1) == (1,), True),
    "Tensor.reduction_value, unknown": (lambda t: t.tensor("a").reduction_value(1, "max") == 7, True),
    "Tensor.values": (lambda t: 1 in t.tensor("a").values(), True),
    "modes": (lambda t: ModeKeys.TRAIN in t.modes(), False),
    "collections": (lambda t: t.collections() and t.collection("all") and 1 in t._engine.steps(4, False), False),
    "has_tensor, known": (lambda t: t.has_tensor("a") and 1 in t._engine.steps(4, False), False),
    "mode, known": (lambda t: t.mode(0) and 1 in t._engine.steps(4, False), False),
    "Tensor.value, known": (lambda t: t.tensor("a").value(0) is None or 1 in t._engine.steps(4, False), False),
    "last_complete_step": (lambda t: t.last_complete_step == 1, False),
}


@pytest.mark.parametrize("name", QUESTIONS)
def test_which_questions_see_new_steps(name, tmp_path):
    files = TrialFiles(tmp_path)
    files.write(0)
    trial = create_trial(str(tmp_path))
    files.write(1, mode="TRAIN", mode_step=0, tensors={"a": [7], "b": [8]})
    ask, sees = QUESTIONS[name]
    assert bool(ask(trial)) is sees


def test_workers_of_a_step_do_not_look_for_new_steps(tmp_path):
    files = TrialFiles(tmp_path)
    files.write(0)
    trial = create_trial(str(tmp_path))
    files.write(1)
    with pytest.raises(TensorUnavailableForStep):
        trial.tensor("a").workers(1)
    assert trial.tensor("a").workers(0) == ["worker_0"]


def test_values_asked_for_before_and_after_they_come(tmp_path):
    files = TrialFiles(tmp_path)
    files.write_steps(range(1, 8, 2), tensors={"foo": [1]})
    trial = create_trial(str(tmp_path))
    with pytest.raises(TensorUnavailable):
        trial.tensor("bar")
    foo = trial.tensor("foo")
    assert foo.value(7) == 1
    with pytest.raises(StepUnavailable):
        foo.value(6)
    with pytest.raises(StepNotYetAvailable):
        foo.value(9)
    files.write_steps(range(9, 16, 2), tensors={"foo": [2], "bar": [3]})
    assert foo.value(9) == 2
    assert trial.tensor("bar").value(9) == 3
    with pytest.raises(StepUnavailable):
        foo.value(8)
    files.end()
    with pytest.raises(StepUnavailable):
        foo.value(24)
    assert trial.loaded_all_steps


def test_an_event_file_that_comes_after_its_index_is_waited_for(tmp_path, monkeypatch):
    monkeypatch.setenv("SMDEBUG_MISSING_EVENT_FILE_RETRY_LIMIT", "10000")
    files = TrialFiles(tmp_path)
    events = files.write(0, tensors={"a": [4, 5], "smdebug/reductions/mean/r": [6]}, with_events=False)
    trial = create_trial(str(tmp_path))
    trial.poll_interval = 0.05

    def come():
        time.sleep(0.3)
        files._put("events/000000000000/000000000000_worker_0.tfevents", events)
        files.write(1)  # the last: a later step would say that the file was skipped

    writer = threading.Thread(target=come)
    with no_refresh(trial):
        writer.start()
        assert trial.tensor("a").value(0).tolist() == [4, 5]
        assert trial.tensor("r").reduction_value(0, "mean") == 6
        assert trial.steps() == [0]
    writer.join()
    assert trial.steps() == [0, 1]


def test_an_event_file_that_was_skipped_is_not_waited_for(tmp_path):
    files = TrialFiles(tmp_path)
    files.write(0, with_events=False)
    files.write(1)
    trial = create_trial(str(tmp_path))
    trial.poll_interval = 60
    started = time.monotonic()
    with pytest.raises(TensorUnavailableForStep) as caught:
        trial.tensor("a").value(0)
    assert caught.value.reason == "missing file"
    assert time.monotonic() - started < 60


def test_the_retry_limit_of_a_missing_event_file(tmp_path, monkeypatch):
    monkeypatch.setenv("SMDEBUG_MISSING_EVENT_FILE_RETRY_LIMIT", "3")
    TrialFiles(tmp_path).write(0, with_events=False)
    trial = create_trial(str(tmp_path))
    trial.poll_interval = 0.1
    started = time.monotonic()
    with pytest.raises(TensorUnavailableForStep):
        trial.tensor("a").value(0)
    assert 0.25 < time.monotonic() - started < 30


def test_a_wait_gives_up_after_silence(tmp_path):
    TrialFiles(tmp_path).write(0)
    trial = create_trial(str(tmp_path), timeout=0.3)
    trial.poll_interval = 0.05
    started = time.monotonic()
    with pytest.raises(StepNotYetAvailable):
        trial.wait_for_steps([0, 1])
    assert 0.2 < time.monotonic() - started < 30
    trial.timeout = None
    with pytest.raises(StepNotYetAvailable):
        trial.wait_for_steps([1], timeout=0)
    assert trial.timeout is None
    with pytest.raises(ValueError):
        trial.poll_interval = -1
    assert trial.poll_interval == 0.05


def test_collections_files_of_all_workers_are_waited_for(tmp_path):
    files = TrialFiles(tmp_path, "ab")
    files.write_steps(range(2))
    late = tmp_path / "collections" / "000000000" / "b_collections.json"
    content = late.read_bytes()
    late.unlink()
    timer = threading.Timer(0.2, late.write_bytes, [content])
    timer.start()
    trial = create_trial(str(tmp_path))
    timer.join()
    assert trial.workers() == ["a", "b"]
    late.unlink()
    files.end()
    with pytest.raises(MissingCollectionFiles):
        create_trial(str(tmp_path))


def test_a_long_wait_for_a_trial_says_so(tmp_path, monkeypatch):
    monkeypatch.setattr(trial_module, "POLL_SECONDS", 0.5)
    monkeypatch.setattr(trial_module, "_QUIET_POLLS", 2)
    said = []
    handler = logging.Handler(level=logging.WARNING)
    handler.emit = lambda record: said.append(record.getMessage())
    logging.getLogger("tornasole").addHandler(handler)
    try:
        with pytest.raises(MissingCollectionFiles):
            create_trial(str(tmp_path / "nothing"), timeout=3)
    finally:
        logging.getLogger("tornasole").removeHandler(handler)
    assert 1 <= len(said) <= 5
    assert "nothing" in said[0] and "path may be wrong" in said[0]


def test_other_threads_ask_while_one_waits(tmp_path):
    files = TrialFiles(tmp_path)
    files.write(0)
    trial = create_trial(str(tmp_path))
    trial.poll_interval = 4.0
    waiting = threading.Thread(target=lambda: trial.wait_for_steps([5]))
    waiting.start()
    times = []
    for _ in range(5):
        started = time.monotonic()
        assert trial.steps() == [0]
        assert trial.tensor("a").value(0).tolist() == [1, 2, 3]
        times.append(time.monotonic() - started)
        time.sleep(0.05)
    assert sorted(times)[2] < 2, "they do not wait for its next look"
    files.write(5)
    waiting.join(timeout=60)
    assert not waiting.is_alive()


def test_many_threads_ask_a_run_that_grows(tmp_path):
    files = TrialFiles(tmp_path, "ab")
    files.write_steps(range(2))
    trial = create_trial(str(tmp_path))
    failures, is_over = [], threading.Event()

    def ask():
        last = 0
        while not is_over.is_set():
            try:
                steps = trial.steps()
                assert len(steps) >= last
                last = len(steps)
                assert trial.tensor("a").value(steps[-1], worker="b").tolist() == [1, 2, 3]
                assert set(trial.tensor("a").values()) >= set(steps)
                assert trial.tensor_names(step=steps[-1]) == ["a"]
                assert "all" in trial.collections()
            except BaseException as error:  # told by the main thread
                failures.append(error)
                return

    threads = [threading.Thread(target=ask) for _ in range(4)]
    for thread in threads:
        thread.start()
    for step in range(2, 40):
        files.write_steps([step])
    trial.wait_for_steps([39])
    is_over.set()
    for thread in threads:
        thread.join()
    assert not failures
    assert trial.steps() == list(range(40))


def test_damage_is_told_once(tmp_path):
    files = TrialFiles(tmp_path)
    files.write(0)
    said = []
    handler = logging.Handler(level=logging.WARNING)
    handler.emit = lambda record: said.append(record.getMessage())
    logging.getLogger("tornasole").addHandler(handler)
    try:
        trial = create_trial(str(tmp_path), on_damage="skip")
        bad = tmp_path / "index" / "000000000" / "000000000001_worker_0.json"
        bad.write_bytes(b"{")
        os.utime(bad, (1, 1))
        for _ in range(3):
            assert trial.steps() == [0]
    finally:
        logging.getLogger("tornasole").removeHandler(handler)
    (text,) = said
    assert bad.name in text
    assert len(trial.damage) == 1


@pytest.mark.parametrize("what", ["open", "wait"])
def test_ctrl_c_ends_a_wait(what, tmp_path):
    files = TrialFiles(tmp_path / "run")
    files.write(0)
    program = f"""
        import signal
        from tornasole.trials import create_trial
        signal.signal(signal.SIGINT, signal.default_int_handler)  # a shell's background jobs begin with it ignored
        trial = create_trial({str(tmp_path / "run")!r})
        try:
            print("ready", flush=True)
            if {what!r} == "open":
                create_trial({str(tmp_path / "nothing")!r})
            else:
                trial.wait_for_steps([9])
        except KeyboardInterrupt:
            print("interrupted", trial.steps(), flush=True)
    """
    process = subprocess.Popen([sys.executable, "-c", textwrap.dedent(program)], stdout=subprocess.PIPE, text=True)
    try:
        assert process.stdout.readline() == "ready\n"
        time.sleep(0.3)
        process.send_signal(signal.SIGINT)
        output, _ = process.communicate(timeout=60)
    finally:
        process.kill()
    assert output == "interrupted [0]\n"
    assert process.returncode == 0


def test_names_equality_and_paths(tmp_path, monkeypatch):
    TrialFiles(tmp_path / "run").write(0)
    path = str(tmp_path / "run")
    monkeypatch.setenv("HOME", str(tmp_path))
    same = [create_trial(path), create_trial(path + "/"), create_trial(f"  {path}\n"), create_trial("~/run")]
    same += [create_trial(out_dir=path), create_trial(tmp_path / "run"), LocalTrial(name="run", dirname=path)]
    assert {trial.name for trial in same} == {"run"}
    assert {trial.path for trial in same} == {path}
    assert len(set(same)) == 1 and same[0] == same[1]
    other = create_trial(path, name="other")
    assert other != same[0] and other.name == "other"
    assert other != "other"
    shown = repr(same[0])
    for part in ("LocalTrial", "name=run", f"path={path}", "steps=[0]", "'all'", "tensor_names=['a']"):
        assert part in shown
    assert os.path.basename(same[0].trial_dir) == "run"


def test_collections_made_up_for_the_analysis(tmp_path):
    files = TrialFiles(tmp_path, collections={"weights": (["weight"], ["extra"])})
    files.write(0, tensors={"fc.weight": [1], "fc.bias": [2], "extra": [3], "loss": [4]})
    trial = create_trial(str(tmp_path))
    assert trial.tensor_names(collection="weights") == ["extra", "fc.weight"]
    assert trial.tensor_names(collection="nothing") == []
    mine = trial.collection("mine")
    mine.include("bias")
    mine.include(["^lo", ["xtr"]])
    mine.add_tensor_name("fc.weight")
    mine.add_tensor_name("never saved")
    assert trial.tensor_names(collection="mine") == ["extra", "fc.bias", "fc.weight", "loss"]
    assert trial.tensor_names(collection=mine) == trial.tensor_names(collection="mine")
    mine.include_regex.remove("bias")
    mine.remove_tensor_name("fc.weight")
    assert trial.tensor_names(collection=mine) == ["extra", "loss"]
    trial.collection("weights").add_tensor_name("loss")
    assert trial.tensor_names(collection="weights") == ["extra", "fc.weight", "loss"]
    assert {"all", "default", "weights", "mine"} <= set(trial.collections())
    files.write_collections("worker_0", {"weights": (["weight"], ["extra", "fc.bias"])})
    os.utime(tmp_path / "collections" / "000000000" / "worker_0_collections.json", (1, 1))
    trial.steps()
    assert trial.collection("weights").tensor_names == {"extra", "fc.bias", "loss"}
    assert trial.tensor_names(collection="weights") == ["extra", "fc.bias", "fc.weight", "loss"]


def test_inputs_labels_and_predictions_by_the_number_at_their_end(tmp_path):
    files = TrialFiles(tmp_path, collections={"inputs": (["input"], [])})
    tensors = {"input_10": [10], "input_2": [2], "labels": [0], "predictions_1": [1], "predictions_0": [5]}
    files.write(3, mode="EVAL", mode_step=1, tensors=tensors)
    trial = create_trial(str(tmp_path))
    for step, mode in ((3, ModeKeys.GLOBAL), (1, ModeKeys.EVAL)):
        assert [value.item() for value in trial.inputs(step, mode=mode)] == [2, 10]
        assert [value.item() for value in trial.labels(step, mode=mode)] == [0]
        assert [value.item() for value in trial.predictions(step, mode=mode)] == [5, 1]


def test_arrays_are_the_callers_own(tmp_path):
    TrialFiles(tmp_path).write(0)
    for cache in (False, True):
        tensor = create_trial(str(tmp_path), cache=cache).tensor("a")
        first = tensor.value(0)
        first[0] = 99
        assert tensor.value(0).tolist() == [1, 2, 3]
        assert not first.flags.owndata


def test_a_collection_that_was_asked_for_before_the_run_had_it(tmp_path):
    files = TrialFiles(tmp_path)
    files.write(0, tensors={"relu_0": numpy.ones(2), "x": numpy.ones(2)})
    trial = create_trial(str(tmp_path))
    assert trial.collection("late").include_regex == [] and trial.collection("mine").include_regex == []
    trial.collection("mine").include("x")
    files.write_collections("worker_0", {"late": (["relu"], [])})
    files.write(1, tensors={"relu_0": numpy.ones(2)})
    assert trial.steps() == [0, 1]
    assert trial.collection("late").include_regex == ["relu"]
    assert trial.tensor_names(collection="late") == ["relu_0"] and trial.tensor_names(collection="mine") == ["x"]
    assert {"late", "mine"} <= set(trial.collections())


@pytest.mark.parametrize("copied", [copy.copy, copy.deepcopy, lambda one: pickle.loads(pickle.dumps(one))])
def test_a_copy_of_a_trial_opens_the_run_anew(tmp_path, copied):
    files = TrialFiles(tmp_path / "run", collections={"weights": (["w"], [])})
    files.write_steps(range(4), tensors={"w": numpy.ones(2), "x": numpy.ones(2)})
    trial = create_trial(str(tmp_path / "run"), name="first", range_steps=(1, None), timeout=3)
    trial.poll_interval = 0.5
    trial.collection("mine").include("x")
    again = copied(trial)
    assert type(again) is LocalTrial and again == trial and again._engine is not trial._engine
    assert again.steps() == [1, 2, 3] and again.tensor("w").value(2).tolist() == [1, 1]
    assert (again.timeout, again.poll_interval, again.range_steps) == (3, 0.5, (1, None))
    assert again.tensor_names(collection="mine") == ["x"] and again.tensor_names(collection="weights") == ["w"]
    assert "mine" in trial.collections()


@pytest.mark.parametrize("name", [3, None, b"x", "\ud800"])
def test_the_name_of_a_tensor_is_a_text(tmp_path, name):
    TrialFiles(tmp_path).write(0)
    trial = create_trial(str(tmp_path))
    for ask in (trial.has_tensor, trial.tensor):
        with pytest.raises(SMDebugTypeError, match="is no name of a tensor"):
            ask(name)
