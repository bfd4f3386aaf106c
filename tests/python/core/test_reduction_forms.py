"""ReductionConfig: what it takes, what it refuses, and its form in files."""

import json

import pytest

from tornasole import ReductionConfig
from tornasole.exceptions import SMDebugTypeError, SMDebugValueError

REFUSED = [
    ("a reduction nobody knows", {"reductions": ["mode"]}, SMDebugValueError),
    ("a norm among the reductions", {"reductions": ["l1"]}, SMDebugValueError),
    ("a reduction among the norms", {"norms": ["min"]}, SMDebugValueError),
    ("a norm nobody knows, of magnitudes", {"abs_norms": ["l3"]}, SMDebugValueError),
    ("a text in the place of a list", {"reductions": "min"}, SMDebugTypeError),
    ("raw that is no truth value", {"save_raw_tensor": "yes"}, SMDebugValueError),
    ("shape that is no truth value", {"save_shape": 1}, SMDebugValueError),
]


@pytest.mark.parametrize("what, fields, error", REFUSED, ids=[row[0] for row in REFUSED])
def test_refused_values(what, fields, error):
    with pytest.raises(error):
        ReductionConfig(**fields)


def test_every_reduction_and_norm_is_taken():
    names = ["min", "max", "median", "mean", "std", "variance", "sum", "prod"]
    config = ReductionConfig(names, names, ["l1", "l2"], ["l1", "l2"], True, True)
    assert config.reductions == config.abs_reductions == names
    assert ReductionConfig.from_json(config.to_json()) == config


def test_none_is_an_empty_list():
    config = ReductionConfig()
    assert (config.reductions, config.norms, config.save_raw_tensor, config.save_shape) == ([], [], False, False)


def test_text_in_files_has_a_fixed_order():
    config = ReductionConfig(["mean", "median"], ["max"], ["l1"], ["l2"], save_raw_tensor=True)
    assert json.loads(config.to_json()) == {
        "save_raw_tensor": True,
        "reductions": "mean,median,l1_norm,abs_max,abs_l2_norm",
        "save_shape": False,
    }


@pytest.mark.parametrize(
    "text",
    ["mean, abs_max ,l1,,abs_l2_norm", "mean,abs_max,l1_norm,abs_l2", ["mean", "abs_max", "l1", "abs_l2"]],
)
def test_every_spelling_is_read(text):
    read = ReductionConfig.from_dict({"reductions": text})
    assert read == ReductionConfig(["mean"], ["max"], ["l1"], ["l2"])


def test_a_name_nobody_knows_in_a_file():
    with pytest.raises(SMDebugValueError, match="abs_mode"):
        ReductionConfig.from_dict({"reductions": "abs_mode"})


def test_a_changed_field_is_checked():
    config = ReductionConfig()
    config.norms = ["l2"]
    with pytest.raises(SMDebugValueError):
        config.norms = ["l9"]
    assert config == ReductionConfig(norms=["l2"])
    with pytest.raises(SMDebugValueError):
        config.nroms = []


@pytest.mark.parametrize("reductions", [3, {"min": 1}, [3], True])
def test_reductions_of_a_file_are_a_text_or_a_list_of_texts(reductions):
    with pytest.raises(SMDebugTypeError, match="reductions: "):
        ReductionConfig.from_dict({"reductions": reductions})
