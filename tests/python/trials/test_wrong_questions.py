"""Questions about a trial that make no sense: the exception that is documented, with what would have been right."""

import numpy
import pytest

from trial_files import TrialFiles

from tornasole.exceptions import SMDebugTypeError, SMDebugValueError, StepUnavailable
from tornasole.trials import create_trial


@pytest.fixture(scope="module")
def trial(tmp_path_factory):
    files = TrialFiles(tmp_path_factory.mktemp("wrong") / "run", "ab")
    files.write_steps(range(3), tensors={"w": [1, 2]})
    files.end()
    return create_trial(files.path)


BEYOND = 1 << 70
LONE = "\ud800"  # half of a surrogate pair, which UTF-8 cannot spell
# question, exception, part of the message
WRONG = [
    ("a step beyond 64 bits, of a value", lambda t: t.tensor("w").value(BEYOND), SMDebugValueError, "64 bits"),
    ("of a shape", lambda t: t.tensor("w").shape(BEYOND), SMDebugValueError, "64 bits"),
    ("of workers", lambda t: t.tensor("w").workers(BEYOND), SMDebugValueError, "64 bits"),
    ("of earlier steps", lambda t: t.tensor("w").prev_steps(BEYOND), SMDebugValueError, "64 bits"),
    ("of a mode", lambda t: t.mode(BEYOND), SMDebugValueError, "64 bits"),
    ("of names", lambda t: t.tensor_names(step=BEYOND), SMDebugValueError, "64 bits"),
    ("that is waited for", lambda t: t.wait_for_steps([0, BEYOND]), SMDebugValueError, "64 bits"),
    ("a worker by its number", lambda t: t.tensor("w").value(0, worker=1), SMDebugTypeError, "'worker_0'"),
    ("the first worker by its number", lambda t: t.tensor("w").value(0, worker=0), SMDebugTypeError, "'worker_0'"),
    ("a worker without a name", lambda t: t.tensor("w").value(0, worker=""), SMDebugTypeError, "'worker_0'"),
    ("several workers", lambda t: t.tensor("w").values(worker=numpy.array(["a", "b"])), SMDebugTypeError, "worker"),
    ("a worker nobody can spell", lambda t: t.tensor("w").shapes(worker=LONE), SMDebugTypeError, "worker"),
    ("of a step's facts", lambda t: t.step_facts(0, worker=1), SMDebugTypeError, "worker"),
    ("of a model", lambda t: t.model_description(worker=1), SMDebugTypeError, "worker"),
    ("no reduction", lambda t: t.tensor("w").reduction_value(0, None), SMDebugValueError, "'mean'"),
    ("a list of reductions", lambda t: t.tensor("w").reduction_value(0, ["min"]), SMDebugValueError, "'mean'"),
    ("a number of steps in words", lambda t: t.tensor("w").prev_steps(2, "x"), SMDebugTypeError, "number of steps"),
    ("with a fraction", lambda t: t.tensor("w").prev_steps(2, 1.5), SMDebugTypeError, "number of steps"),
    ("that is no number", lambda t: t.tensor("w").prev_steps(2, float("nan")), SMDebugTypeError, "number of steps"),
    ("a pattern nobody can spell", lambda t: t.tensor_names(regex=LONE), SMDebugTypeError, "pattern"),
    ("a collection nobody can spell", lambda t: t.tensor_names(collection=LONE), SMDebugTypeError, "collection"),
    ("a range beyond 64 bits", lambda t: create_trial(t.path, range_steps=(0, BEYOND)), SMDebugValueError, "64 bits"),
    ("a path of bytes", lambda t: create_trial(t.path.encode()), SMDebugTypeError, "path of a trial"),
    ("a path nobody can spell", lambda t: create_trial(LONE), SMDebugTypeError, "path of a trial"),
    ("a name that is a number", lambda t: create_trial(t.path, name=1), SMDebugTypeError, "name of a trial"),
]


@pytest.mark.parametrize("what, ask, error, part", WRONG, ids=[row[0] for row in WRONG])
def test_a_wrong_question(what, ask, error, part, trial):
    with pytest.raises(error) as raised:
        ask(trial)
    assert part in str(raised.value)
    assert "incompatible function arguments" not in str(raised.value)


def test_right_questions_beside_them(trial):
    tensor = trial.tensor("w")
    assert tensor.value(numpy.int64(1), worker="b").tolist() == [1, 2]
    assert tensor.value(1.0).tolist() == [1, 2]
    assert tensor.prev_steps(2, 2) == tensor.prev_steps(2, numpy.int32(2)) == [1, 2]
    assert tensor.prev_steps(2, None) == tensor.prev_steps(2, 0) == [0, 1, 2]
    with pytest.raises(StepUnavailable):
        tensor.value((1 << 63) - 1)


def test_a_tensor_asked_for_twice_is_the_same(trial):
    tensor, other = trial.tensor("w"), create_trial(trial.path, name="another").tensor("w")
    assert tensor == trial.tensor("w") and tensor in [trial.tensor("w")] and len({tensor, trial.tensor("w")}) == 1
    assert tensor != other and tensor != "w" and len({tensor, other}) == 2
    assert tensor == create_trial(trial.path).tensor("w"), "of trials that are equal"


@pytest.mark.parametrize("name", ["TRAINING_END_DELAY_REFRESH", "MISSING_EVENT_FILE_RETRY_LIMIT"])
@pytest.mark.parametrize("value, shown", [("\udcff", r"\xff"), ("1.5", '"1.5"'), ("9" * 50_000, "999...")])
def test_a_variable_that_is_no_whole_number(trial, monkeypatch, name, value, shown):
    monkeypatch.setenv("SMDEBUG_" + name, value)
    with pytest.raises(SMDebugValueError, match=name) as raised:
        create_trial(trial.path)
    assert shown in str(raised.value)
    assert len(str(raised.value)) < 500
