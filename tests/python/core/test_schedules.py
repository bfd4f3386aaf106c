"""SaveConfig and SaveConfigMode: what they take, what they refuse, and which steps they save."""

import copy
import functools
import json
import pickle

import numpy
import pytest

from tornasole import SaveConfig, SaveConfigMode, modes
from tornasole.exceptions import SMDebugTypeError, SMDebugValueError

SAVED = [
    ("the default is every 500th step", {}, [0, 500, 1000]),
    ("an interval counts from zero", {"save_interval": 300}, [0, 300, 600, 900]),
    ("the end is exclusive", {"save_interval": 100, "end_step": 200}, [0, 100]),
    ("an end just past a multiple includes it", {"save_interval": 100, "end_step": 201}, [0, 100, 200]),
    ("a start does not shift the multiples", {"save_interval": 400, "start_step": 450}, [800]),
    ("listed steps come besides the interval", {"save_steps": [3, 7]}, [0, 3, 7, 500, 1000]),
    ("a listed step may lie beyond the end", {"save_interval": 4, "end_step": 10, "save_steps": [600]}, [0, 4, 8, 600]),
    ("an end of zero is never", {"end_step": 0}, []),
    ("an end of zero is never, listed steps included", {"end_step": 0, "save_steps": [5]}, []),
    ("decimal texts are numbers", {"save_interval": "500", "start_step": "1", "end_step": "999"}, [500]),
]


@pytest.mark.parametrize("what, fields, saved", SAVED, ids=[row[0] for row in SAVED])
def test_steps_saved(what, fields, saved):
    config = SaveConfig(**fields)
    for mode in modes:
        assert [step for step in range(1001) if config.should_save_step(mode, step)] == saved


REFUSED = [
    ("an interval of zero", {"save_interval": 0}),
    ("an interval below zero", {"save_interval": -3}),
    ("an interval that is no number", {"save_interval": "often"}),
    ("an interval with a fraction", {"save_interval": 2.7}),
    ("an interval that is a truth value", {"save_interval": True}),
    ("a start that is a list", {"start_step": [1]}),
    ("an end that is no number", {"end_step": "later"}),
    ("listed steps that are one text", {"save_steps": "3,5"}),
    ("listed steps that are no numbers", {"save_steps": ["a"]}),
    ("a step of more than 64 bits", {"start_step": 1 << 70}),
    ("watched names that are numbers", {"when_nan": [3]}),
    ("an interval that is an array of several", {"save_interval": numpy.array([1, 2])}),
    ("an interval that no encoding can spell", {"save_interval": "\ud800"}),
    ("an interval so long that it is cut inside of a character", {"save_interval": "\u00e9" * 100}),
    ("a start so long that it is cut inside of a character", {"start_step": "\U0001f642" * 100}),
]


@pytest.mark.parametrize("what, fields", REFUSED, ids=[row[0] for row in REFUSED])
def test_refused_values(what, fields):
    field, value = next(iter(fields.items()))
    for cls in (SaveConfig, SaveConfigMode):
        with pytest.raises(SMDebugValueError) as refused:
            cls(**fields)
        assert field in str(refused.value)
    schedule = SaveConfigMode()
    with pytest.raises(ValueError):
        setattr(schedule, field, value)
    assert schedule == SaveConfigMode(), "a refused value changes nothing"


def test_the_step_that_is_asked_about():
    for config in (SaveConfigMode(save_interval=2), SaveConfig(save_interval=2)):
        mode = () if isinstance(config, SaveConfigMode) else (modes.TRAIN,)
        ask = functools.partial(config.should_save_step, *mode)
        assert ask(2.0) and ask(numpy.int64(2)) and not ask(3)
        for wrong in (None, "2", 2.5, [2]):
            with pytest.raises(SMDebugTypeError, match="is no step; a whole number is"):
                ask(wrong)
        with pytest.raises(SMDebugValueError, match="64 bits"):
            ask(1 << 70)


def test_tuples_sets_and_digits_are_lists_of_steps():
    assert SaveConfigMode(save_steps=(3, "5")).save_steps == [3, 5]
    assert sorted(SaveConfigMode(save_steps={8, 2}).save_steps) == [2, 8]


def test_instances_share_no_list():
    first, second = SaveConfigMode(), SaveConfigMode()
    first.save_steps.append(3)
    assert second.save_steps == []


def test_a_mode_left_out_is_unset_until_it_is_filled():
    given = {modes.TRAIN: SaveConfigMode(save_interval=2)}
    config = SaveConfig(given)
    assert list(given) == [modes.TRAIN], "the caller's dict is left alone"
    with pytest.raises(SMDebugValueError):
        config.get_save_config(modes.EVAL)
    config.merge_default_save_config(SaveConfig(save_interval=9))
    assert [config.get_save_config(mode).save_interval for mode in modes] == [2, 9, 9, 9]


def test_other_arguments_are_for_the_modes_left_out():
    config = SaveConfig({modes.EVAL: SaveConfigMode(save_interval=2)}, save_interval=7)
    assert [config.get_save_config(mode).save_interval for mode in modes] == [7, 2, 7, 7]


def test_fields_of_all_modes_at_once():
    config = SaveConfig(save_interval=3)
    assert config.save_interval == 3
    config.end_step = 10
    assert [config.get_save_config(mode).end_step for mode in modes] == [10] * 4
    config.get_save_config(modes.EVAL).save_interval = 1
    with pytest.raises(SMDebugValueError):
        _ = config.save_interval
    with pytest.raises(SMDebugValueError):
        config.save_intervall = 3


PARSED = [
    ("nothing is the default", None, [500] * 4),
    ("one schedule is for all modes", SaveConfigMode(save_interval=5), [5] * 4),
    ("a dict of schedules", {mode: SaveConfigMode(save_interval=mode.value) for mode in modes}, [1, 2, 3, 4]),
    ("a dict of configs gives each mode its own", {mode: SaveConfig(save_interval=6) for mode in modes}, [6] * 4),
    ("a dict of fields", {mode: {"save_interval": 8} for mode in modes}, [8] * 4),
]


@pytest.mark.parametrize("what, given, intervals", PARSED, ids=[row[0] for row in PARSED])
def test_parse(what, given, intervals):
    config = SaveConfig.parse(given)
    assert [config.get_save_config(mode).save_interval for mode in modes] == intervals


@pytest.mark.parametrize(
    "given, error",
    [
        (3, SMDebugTypeError),
        ("500", SMDebugTypeError),
        ({"nowhere": SaveConfigMode()}, SMDebugValueError),
        ({modes.TRAIN: 3}, SMDebugValueError),
        ({modes.TRAIN: {"interval": 3}}, SMDebugValueError),
    ],
)
def test_parse_refuses(given, error):
    with pytest.raises(error):
        SaveConfig.parse(given)


def test_setting_a_mode_wants_a_schedule():
    with pytest.raises(SMDebugValueError):
        SaveConfig().set_save_config(modes.TRAIN, {"save_interval": 3})


def test_json_form_and_back():
    config = SaveConfig({modes.TRAIN: SaveConfigMode(11, 10, None, [50])})
    fields = {"save_interval": 11, "save_steps": [50], "start_step": 10, "end_step": None}
    assert json.loads(config.to_json()) == {"TRAIN": fields, "EVAL": None, "PREDICT": None, "GLOBAL": None}
    assert SaveConfig.from_json(config.to_json()) == config
    assert SaveConfig.from_json('{"train": {"save_interval": 3}}').get_save_config(modes.TRAIN).save_interval == 3
    assert SaveConfig.from_dict(None) is None
    watching = SaveConfig(when_nan=["loss"])
    assert SaveConfig.from_json(watching.to_json()) == watching
    with pytest.raises(SMDebugValueError):
        SaveConfig.from_json('{"TESTING": {}}')


def test_equality_and_copies():
    config = SaveConfig(save_interval=3)
    for other in (copy.deepcopy(config), pickle.loads(pickle.dumps(config))):
        assert other == config
        other.save_interval = 4
        assert other != config and config.save_interval == 3
