"""The original debugger and this one, asked the same about the same trials.

Runs where the original is installed in `.venvs/smdebug` of the repository, or in the Python named in the variable
TORNASOLE_SMDEBUG_PYTHON.
"""

import json
import math
import os
import pathlib
import subprocess

import pytest

from trial_files import TrialFiles
from trial_queries import answers_about

ROOT = pathlib.Path(__file__).resolve().parents[3]
GOLDEN = ROOT / "tests" / "golden" / "smdebug"
SMDEBUG_PYTHON = os.environ.get("TORNASOLE_SMDEBUG_PYTHON", str(ROOT / ".venvs" / "smdebug" / "bin" / "python"))
QUERIES = pathlib.Path(__file__).with_name("trial_queries.py")

GOLDEN_NAMES = (
    "core_hook",
    "core_workers",
    "core_workers_live",
    "core_mirrored",
    "core_buckets",
    "pytorch_mlp",
    "pytorch_reductions",
    "xgboost_default",
    "legacy_0_7_2",
    "corrupt/worker_missing_step",
    "corrupt/worker_missing_step_live",
)
MADE_NAMES = ("one worker", "three workers, running", "modes, ended")

pytestmark = pytest.mark.skipif(not os.path.exists(SMDEBUG_PYTHON), reason=f"{SMDEBUG_PYTHON} is not there")


def make_trials(folder):
    one = TrialFiles(folder / MADE_NAMES[0], collections={"weights": (["weight"], []), "losses": ([], ["loss"])})
    for step in range(0, 50, 5):
        tensors = {"fc.weight": [[step, 1], [2, 3]], "loss": [1 / (step + 1)], "gradient/fc.bias": [0, -1]}
        one.write(step, tensors=tensors)
    three = TrialFiles(folder / MADE_NAMES[1], "abc", collections={"weights": (["weight"], [])})
    three.write_steps(range(4), tensors={"weight": [1, 2]})
    three.write_steps(range(4, 8), "ac", tensors={"weight": [3, 4], "bias": [5]})
    modes = TrialFiles(folder / MADE_NAMES[2])
    for step in range(12):
        mode, tensors = ("TRAIN", {"arr_1": [step]}) if step % 3 else ("EVAL", {"arr_2": [step, step]})
        modes.write(step, mode=mode, mode_step=step - step // 3 - 1 if step % 3 else step // 3, tensors=tensors)
    modes.end()


@pytest.fixture(scope="module")
def answers(tmp_path_factory):
    folder = tmp_path_factory.mktemp("trials")
    make_trials(folder)
    paths = {name: str(GOLDEN / name / "trial") for name in GOLDEN_NAMES}
    paths |= {name: str(folder / name) for name in MADE_NAMES}
    environment = {key: value for key, value in os.environ.items() if key != "PYTHONPATH"}
    environment["SMDEBUG_TRAINING_END_DELAY_REFRESH"] = "0"
    run = subprocess.run(
        [SMDEBUG_PYTHON, str(QUERIES), "smdebug", *paths.values()], env=environment, capture_output=True, timeout=300
    )
    assert run.returncode == 0, run.stderr.decode()[-2000:]
    theirs = json.loads(run.stdout)
    with pytest.MonkeyPatch.context() as patch:
        patch.setenv("SMDEBUG_TRAINING_END_DELAY_REFRESH", "0")
        ours = {path: json.loads(json.dumps(answers_about("tornasole", path))) for path in paths.values()}
    return {name: (ours[path], theirs[path]) for name, path in paths.items()}


def tensors_the_original_loses(name):
    """Those whose value it cannot return although it is there: an index with both the value and its shape."""
    recorded = GOLDEN / name / "expected.json"
    if not recorded.exists():
        return set()
    tensors = json.loads(recorded.read_text())["tensors"]
    return {tensor["name"] for tensor in tensors if any("true_value" in entry for entry in tensor["entries"])}


def is_close(left, right):
    if isinstance(left, (int, float)) and isinstance(right, (int, float)):
        are_both_nan = left != left and right != right
        return left == right or are_both_nan or math.isclose(left, right, rel_tol=2e-5, abs_tol=1e-7)
    return left == right


def is_vector(answers, question):
    """Whether a question about a norm is about a vector; of other tensors the original gives another norm, or fails."""
    tensor, rest = question.split(": reduction ")
    mode, step = rest.split()[:2]
    shape = answers[f"{tensor}: shape {mode} {step}"].get("answer")
    return shape is not None and len(shape) == 1


def is_allowed(ours, theirs, question, lost=()):
    """Where the two differ on purpose."""
    mine, other = ours[question], theirs[question]
    if "no such reduction" in question:
        return mine["error"] == "SMDebugValueError"  # there only if it would have to be computed
    if ": reduction " in question and question.split()[-2] in ("l1", "l2") and not is_vector(ours, question):
        return "answer" in mine or "error" in other
    if "error" in mine and "error" in other:
        asked = other["fields"]
        if other["error"] in ("UFuncTypeError", "_UFuncNoLoopError", "TypeError") and ": reduction " in question:
            return mine["error"] == "SMDebugValueError"  # of texts
        if ": reduction " in question:
            # The original gives the name of the reduction as that of the tensor, and knows of no other reductions.
            asked = {key: value for key, value in asked.items() if key not in ("tname", "has_reductions")}
        return other["error"] in mine["bases"] and asked.items() <= mine["fields"].items()
    if "answer" in mine and "answer" in other:
        if ": steps " in question or ": prev_steps" in question or ": all prev_steps" in question:
            # Of a running job with several workers the original compares a mode's step with a global one.
            if not ours["loaded_all_steps"]["answer"] and "GLOBAL" not in question:
                return True
        return is_close(mine["answer"], other["answer"])
    if other.get("error") == "KeyError":
        return question.startswith(("has_passed_step", "wait_for_steps"))  # it looks up a mode's step as a global one
    # A tensor of no elements, or of none but zero dimensions: the original cannot return it, and so not reduce it.
    is_of_values = any(word in question for word in (": value ", ": reduction ", ": shape "))
    if other.get("error") == "TensorUnavailableForStep":
        return is_of_values and "answer" in mine and question.split(": ")[0] in lost
    return is_of_values and other.get("error") in ("SMDebugValueError", "ValueError", "SMDebugTypeError")


@pytest.mark.parametrize("name", GOLDEN_NAMES + MADE_NAMES)
def test_the_answers_are_the_same(name, answers):
    ours, theirs = answers[name]
    assert ours.keys() == theirs.keys()
    assert len(theirs) > 100
    lost = tensors_the_original_loses(name)
    different = {
        question: (ours[question], theirs[question])
        for question in theirs
        if ours[question] != theirs[question] and not is_allowed(ours, theirs, question, lost)
    }
    assert not different
