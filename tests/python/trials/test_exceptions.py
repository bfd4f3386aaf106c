"""Every exception: made by hand, made by the engine, with what it carries."""

import pickle

import pytest

from trial_files import TrialFiles

from tornasole import exceptions
from tornasole.exceptions import (
    IndexReaderException,
    InsufficientInformationForRuleInvocation,
    InvalidCollectionConfiguration,
    InvalidWorker,
    MissingCollectionFiles,
    NoMoreData,
    NoMoreProfilerData,
    RuleEvaluationConditionMet,
    ShapeUnavailableForStep,
    SMDebugError,
    SMDebugNotImplementedError,
    SMDebugRuntimeError,
    SMDebugTypeError,
    SMDebugValueError,
    StepNotYetAvailable,
    StepUnavailable,
    TensorUnavailable,
    TensorUnavailableForStep,
    from_engine,
)
from tornasole.modes import ModeKeys
from tornasole.trials import create_trial

# class, arguments, attributes, parts of the message
MADE = [
    (MissingCollectionFiles, (), {}, ["collections files"]),
    (IndexReaderException, ("meta is missing",), {"message": "meta is missing"}, ["meta is missing"]),
    (TensorUnavailable, ("w",), {"tname": "w", "tensor": "w"}, ["w"]),
    (
        TensorUnavailableForStep,
        ("w", 3, ModeKeys.TRAIN, True),
        {"tname": "w", "step": 3, "mode": ModeKeys.TRAIN, "has_reductions": True, "tensor": "w"},
        ["w", "3", "TRAIN", "reductions"],
    ),
    (TensorUnavailableForStep, ("w", 3), {"mode": ModeKeys.GLOBAL, "has_reductions": False}, ["w", "3", "GLOBAL"]),
    (ShapeUnavailableForStep, ("w", 3, ModeKeys.EVAL), {"tname": "w", "step": 3, "mode": ModeKeys.EVAL}, ["w", "EVAL"]),
    (StepUnavailable, (3, ModeKeys.EVAL), {"step": 3, "mode": ModeKeys.EVAL}, ["3", "EVAL"]),
    (StepNotYetAvailable, (3, ModeKeys.EVAL), {"step": 3, "mode": ModeKeys.EVAL}, ["3", "EVAL"]),
    (NoMoreData, (9, ModeKeys.TRAIN, 7), {"step": 9, "mode": ModeKeys.TRAIN, "last_step": 7}, ["9", "TRAIN", "7"]),
    (NoMoreProfilerData, (123,), {"timestamp": 123}, ["123"]),
    (InvalidWorker, ("w0",), {"worker": "w0"}, ["w0"]),
    (
        RuleEvaluationConditionMet,
        ("MyRule", 4),
        {"rule_name": "MyRule", "step": 4, "end_of_rule": False},
        ["MyRule", "4"],
    ),
    (InsufficientInformationForRuleInvocation, ("MyRule", "no tensors"), {"message": "no tensors"}, ["MyRule", "no t"]),
    (InvalidCollectionConfiguration, ("mine",), {"c_name": "mine", "collection": "mine"}, ["mine"]),
]


@pytest.mark.parametrize("kind, arguments, attributes, parts", MADE, ids=lambda part: getattr(part, "__name__", ""))
def test_made_by_hand(kind, arguments, attributes, parts):
    error = kind(*arguments)
    assert isinstance(error, SMDebugError)
    for copy in (error, pickle.loads(pickle.dumps(error))):
        assert type(copy) is kind
        assert {name: getattr(copy, name) for name in attributes} == attributes
        assert all(part in str(copy) for part in parts), str(copy)


@pytest.mark.parametrize(
    "kind, built_in",
    [
        (SMDebugTypeError, TypeError),
        (SMDebugValueError, ValueError),
        (SMDebugRuntimeError, RuntimeError),
        (SMDebugNotImplementedError, NotImplementedError),
    ],
)
def test_those_that_resemble_a_built_in_one_are_one(kind, built_in):
    assert issubclass(kind, SMDebugError) and issubclass(kind, built_in)
    assert exceptions.TornasoleError is SMDebugError


def test_the_engine_gives_its_own_message():
    details = {"tensor": "w", "step": 3, "mode": 1, "worker": "w0", "reason": "damaged", "has_reductions": False}
    error = from_engine("tensor_unavailable_for_step", "events/x at offset 7 is damaged", details)
    for copy in (error, pickle.loads(pickle.dumps(error))):
        assert str(copy) == "events/x at offset 7 is damaged"
        assert (copy.tname, copy.mode, copy.reason, copy.worker) == ("w", ModeKeys.TRAIN, "damaged", "w0")
    assert type(from_engine("bad_collection", 'collection "x" is empty', {})) is InvalidCollectionConfiguration
    assert from_engine("bad_collection", 'collection "x" is empty', {}).c_name == "x"
    assert type(from_engine("a kind of tomorrow", "text", {})) is SMDebugError
    assert isinstance(from_engine("file_not_found", "text", {}), FileNotFoundError)


@pytest.fixture
def trial(tmp_path):
    files = TrialFiles(tmp_path)
    files.write(0, tensors={"a": [1, 2], "smdebug/reductions/mean/r": [3.5]}, shapes={"s": ("framework/s", (4, 5))})
    files.write(2, tensors={"a": [1, 2]})
    files.write(4, tensors={"b": [1]}, mode="EVAL", mode_step=1)
    return create_trial(str(tmp_path))


# what is asked, the exception, its attributes
RAISED = [
    (lambda t: t.tensor("nothing"), TensorUnavailable, {"tname": "nothing"}),
    (lambda t: t.tensor("b").value(2), TensorUnavailableForStep, {"tname": "b", "step": 2, "reason": "not saved"}),
    (lambda t: t.tensor("r").value(0), TensorUnavailableForStep, {"has_reductions": True, "reason": "only reductions"}),
    (lambda t: t.tensor("s").value(0), TensorUnavailableForStep, {"has_reductions": False, "reason": "only a shape"}),
    (lambda t: t.tensor("r").reduction_value(0, "l2"), TensorUnavailableForStep, {"tname": "r", "step": 0}),
    (lambda t: t.tensor("a").workers(1), TensorUnavailableForStep, {"tname": "a", "step": 1}),
    (lambda t: t.tensor("r").shape(0), ShapeUnavailableForStep, {"tname": "r", "step": 0, "mode": ModeKeys.GLOBAL}),
    (lambda t: t.tensor("a").value(1), StepUnavailable, {"step": 1, "mode": ModeKeys.GLOBAL}),
    (lambda t: t.tensor("b").value(0, mode=ModeKeys.EVAL), StepUnavailable, {"step": 0, "mode": ModeKeys.EVAL}),
    (lambda t: t.tensor("a").value(9), StepNotYetAvailable, {"step": 9, "mode": ModeKeys.GLOBAL}),
    (lambda t: t.tensor("a").value(0, worker="nobody"), InvalidWorker, {"worker": "nobody"}),
    (lambda t: t.wait_for_steps([3]), StepUnavailable, {"step": 3}),
    (lambda t: t.wait_for_steps([9], timeout=0), StepNotYetAvailable, {"step": 9}),
    (lambda t: t.tensor("a").reduction_value(0, "average"), SMDebugValueError, {}),
    (lambda t: t.tensor("a").step(0), SMDebugNotImplementedError, {}),
    (lambda t: t.tensor_names(regex="("), SMDebugValueError, {}),
    (lambda t: t.tensor_names(regex=12), SMDebugTypeError, {}),
    (lambda t: t.tensor_names(regex="a", collection="all"), SMDebugValueError, {}),
    (lambda t: t.tensor_names(collection=3), SMDebugTypeError, {}),
    (lambda t: t.collection(3), SMDebugTypeError, {}),
    (lambda t: t.collection("mine").include(3), SMDebugTypeError, {}),
    (lambda t: t.steps(mode="train"), SMDebugTypeError, {}),
    (lambda t: t.tensor("a").value("0"), SMDebugTypeError, {}),
    (lambda t: t.tensor("a").value(0.5), SMDebugTypeError, {}),
    (lambda t: t.tensor("a").prev_steps(None), SMDebugTypeError, {}),
    (lambda t: t.has_passed_step(None), SMDebugTypeError, {}),
    (lambda t: t.tensor_names(step="1"), SMDebugTypeError, {}),
    (lambda t: t.wait_for_steps(3), SMDebugTypeError, {}),
    (lambda t: t.wait_for_steps(["3"]), SMDebugTypeError, {}),
]


@pytest.mark.parametrize("place", range(len(RAISED)))
def test_raised_by_a_question(place, trial):
    ask, kind, attributes = RAISED[place]
    with pytest.raises(kind) as caught:
        ask(trial)
    assert type(caught.value) is kind
    assert {name: getattr(caught.value, name) for name in attributes} == attributes
    assert str(caught.value)


def test_an_unknown_name_is_answered_with_those_that_come_near(tmp_path):
    TrialFiles(tmp_path).write(0, tensors={"layer.weight": [1]})
    with pytest.raises(TensorUnavailable, match="layer.weight"):
        create_trial(str(tmp_path)).tensor("layer.weigth")


def test_a_damaged_value_names_its_file(tmp_path):
    files = TrialFiles(tmp_path)
    files.write(0)
    events = tmp_path / "events" / "000000000000" / "000000000000_worker_0.tfevents"
    content = bytearray(events.read_bytes())
    content[3] ^= 1
    events.write_bytes(content)
    trial = create_trial(str(tmp_path))
    with pytest.raises(TensorUnavailableForStep, match="000000000000_worker_0.tfevents") as caught:
        trial.tensor("a").value(0)
    assert caught.value.reason == "damaged"
    with pytest.raises(TensorUnavailableForStep, match="tfevents"):
        create_trial(str(tmp_path), check=True)
    with pytest.raises(TensorUnavailableForStep):
        trial.tensor("a").values()
    assert create_trial(str(tmp_path), check=True, on_damage="skip").damage


@pytest.mark.parametrize(
    "arguments, kind",
    [
        (dict(range_steps=(5, 5)), SMDebugValueError),
        (dict(range_steps=(-1, 5)), SMDebugValueError),
        (dict(range_steps=(0, 1.5)), SMDebugValueError),
        (dict(range_steps=7), SMDebugValueError),
        (dict(on_damage="ignore"), SMDebugValueError),
        (dict(timeout=-1), SMDebugValueError),
        (dict(out_dir="/tmp"), SMDebugTypeError),
    ],
)
def test_what_cannot_be_opened(arguments, kind, tmp_path):
    TrialFiles(tmp_path).write(0)
    with pytest.raises(kind):
        create_trial(str(tmp_path), **arguments)


def test_paths_that_are_none(tmp_path):
    with pytest.raises(SMDebugTypeError):
        create_trial()
    with pytest.raises(SMDebugTypeError):
        create_trial(12)
    with pytest.raises(SMDebugValueError):
        create_trial("  ")
    with pytest.raises(MissingCollectionFiles):
        create_trial(str(tmp_path / "nothing"), timeout=0)
    with pytest.raises(SMDebugValueError, match="cannot be a bucket"):
        create_trial("s3://b/prefix")
    with pytest.raises(SMDebugNotImplementedError, match="profiler"):
        create_trial(str(tmp_path), profiler=True)
