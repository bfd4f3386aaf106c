"""Rows about schedules: SaveConfig and SaveConfigMode, in code and by mode."""

import inspect

import pytest

from tornasole import SaveConfig, SaveConfigMode, modes

rows = pytest.mark.rows


def steps_of(config, limit=1001):
    """The steps below the limit that are saved, which must be the same in all modes."""
    found = [[step for step in range(limit) if config.should_save_step(mode, step)] for mode in modes]
    assert found.count(found[0]) == len(found)
    return found[0]


@rows(46, 62, 85, 121, 225)
def test_every_nth_step(row):
    assert steps_of(SaveConfig(save_interval=10), 31) == [0, 10, 20, 30]


@rows(47, 86, 174, 226)
def test_the_start_is_inclusive_and_zero_by_default():
    assert SaveConfigMode().start_step == 0
    assert steps_of(SaveConfig(save_interval=5, start_step=10), 21) == [10, 15, 20]


@rows(48, 87, 175, 227)
def test_the_end_is_exclusive_and_none_by_default():
    assert SaveConfigMode().end_step is None
    assert steps_of(SaveConfig(save_interval=5, end_step=10), 31) == [0, 5]


@rows(49)
def test_listed_steps_are_saved():
    assert {3, 7} <= set(steps_of(SaveConfig(save_steps=[3, 7])))


@rows(50, 88, 176, 228)
def test_listed_steps_come_besides_interval_start_and_end():
    config = SaveConfig(save_interval=10, start_step=20, end_step=40, save_steps=[7, 55])
    assert steps_of(config, 100) == [7, 20, 30, 55]


@rows(51, 173, 223, 224)
def test_the_default_interval_is_500():
    assert SaveConfigMode().save_interval == SaveConfig().save_interval == 500


EXAMPLES = {
    177: ({}, [0, 500, 1000]),
    178: ({"save_interval": 1}, list(range(1001))),
    179: ({"save_interval": 100, "end_step": 200}, [0, 100]),
    180: ({"save_interval": 100, "end_step": 201}, [0, 100, 200]),
    181: ({"save_interval": 100, "start_step": 150}, list(range(200, 1001, 100))),
    182: ({"save_steps": [3, 7]}, [0, 3, 7, 500, 1000]),
    229: ({}, [0, 500, 1000]),
    230: ({"save_interval": 1}, list(range(1001))),
    231: ({"save_interval": 100, "end_step": 200}, [0, 100]),
    232: ({"save_interval": 100, "end_step": 201}, [0, 100, 200]),
    233: ({"save_interval": 100, "start_step": 150}, list(range(200, 1001, 100))),
    234: ({"save_steps": [3, 7]}, [0, 3, 7, 500, 1000]),
}


@rows(*EXAMPLES)
def test_the_documented_examples(row):
    arguments, saved = EXAMPLES[row]
    assert steps_of(SaveConfig(**arguments)) == saved


@rows(172, 222)
def test_the_arguments_of_saveconfig():
    names = list(inspect.signature(SaveConfig).parameters)
    assert names[:5] == ["mode_save_configs", "save_interval", "start_step", "end_step", "save_steps"]
    config = SaveConfig(None, 5, 10, 20, [3])
    assert steps_of(config, 100) == [3, 10, 15]


@rows(184, 236)
def test_the_arguments_of_saveconfigmode():
    names = list(inspect.signature(SaveConfigMode).parameters)
    assert names[:4] == ["save_interval", "start_step", "end_step", "save_steps"]
    assert [step for step in range(50) if SaveConfigMode(5, 10, 20, [3]).should_save_step(step)] == [3, 10, 15]


@rows(183, 235)
def test_a_schedule_for_each_mode():
    config = SaveConfig({mode: SaveConfigMode(save_interval=mode.value) for mode in modes})
    for mode in modes:
        assert [step for step in range(13) if config.should_save_step(mode, step)] == list(range(0, 13, mode.value))


@rows(185, 237)
def test_a_mode_left_out_has_the_default(tmp_path):
    from tornasole.core.hook import BaseHook

    hook = BaseHook(tmp_path / "run", save_config={modes.TRAIN: SaveConfigMode(save_interval=1)})
    assert hook.save_config.get_save_config(modes.EVAL) == SaveConfigMode()


@rows(186, 238)
def test_a_field_left_out_has_its_default():
    schedule = SaveConfig({modes.TRAIN: SaveConfigMode(start_step=3)}).get_save_config(modes.TRAIN)
    assert (schedule.save_interval, schedule.end_step, schedule.save_steps) == (500, None, [])
