"""Which steps statistics are taken at, by a clock that the test holds."""

import itertools

import pytest

from tornasole.modes import ModeKeys
from tornasole.run.cost_budget import BURST_STEPS, CostBudget, training_schedule


def simulate(plain_seconds, extra_seconds, steps, share=0.03, first_seconds=0.0):
    """The steps with statistics of a training with these times, and the share of the time they took."""
    budget, now, taken = CostBudget(share), 0.0, []
    for step in range(steps):
        budget.begin(step, now)
        is_taken = step in budget.chosen()
        taken += [step] * is_taken
        now += plain_seconds + extra_seconds * is_taken + first_seconds * (step == 0)
    return taken, len(taken) * extra_seconds / now


# Sums of these are exact: no step is chosen by rounding.
COSTS = [
    ("cheap statistics", 1 / 128, 1 / 4096),
    ("statistics as long as the step", 1 / 128, 1 / 128),
    ("statistics ten times the step", 1 / 128, 10 / 128),
]


@pytest.mark.parametrize("what, plain, extra", COSTS, ids=[row[0] for row in COSTS])
def test_the_share_holds(what, plain, extra):
    taken, share = simulate(plain, extra, 20000)
    assert taken[:BURST_STEPS] == list(range(BURST_STEPS)), "the start is looked at"
    assert share <= 0.035
    assert len(taken) >= 2 * BURST_STEPS, "and it is looked at again"


SHORT = [
    ("two looks are paid back before there is a third", 0.004, 0.020, 1200),
    ("however long that takes", 0.004, 0.060, 3000),
    ("a few hundred long steps", 0.200, 0.100, 300),
]


@pytest.mark.parametrize("what, plain, extra, steps", SHORT, ids=[row[0] for row in SHORT])
def test_the_share_holds_from_the_start(what, plain, extra, steps):
    taken, share = simulate(plain, extra, steps)
    assert taken[:BURST_STEPS] == list(range(BURST_STEPS)) and taken[BURST_STEPS] < 20
    assert share <= 0.035


def test_a_short_training_is_looked_at_again_at_the_price_of_milliseconds():
    taken, _ = simulate(0.001, 0.001, 600, share=0.015)
    assert 2 * BURST_STEPS <= len(taken) <= 30, "three steps cost three milliseconds, and fifteen are allowed"
    assert taken[BURST_STEPS] < 50


def test_what_only_the_first_step_takes_is_not_held_against_later_ones():
    usual, _ = simulate(0.010, 0.010, 2000)
    taken, _ = simulate(0.010, 0.010, 2000, first_seconds=1.0)
    assert len(taken) >= len(usual)


def test_a_run_that_goes_on_at_a_later_step_is_looked_at_soon():
    budget, now, taken = CostBudget(), 0.0, []
    for step in range(1000, 1100):
        budget.begin(step, now)
        taken += [step] * (step in budget.chosen())
        now += 0.010
    assert taken[:BURST_STEPS] == list(range(taken[0], taken[0] + BURST_STEPS)) and taken[0] < 1020


def test_bursts_are_consecutive_and_come_closer_at_the_start():
    taken, _ = simulate(0.010, 0.0002, 5000)
    starts = [step for step in taken if step - 1 not in taken]
    assert all({start, start + 1, start + 2} <= set(taken) for start in starts[:-1])
    gaps = [b - a for a, b in zip(starts, starts[1:])]
    assert gaps[0] < 30 and gaps == sorted(gaps)


@pytest.mark.parametrize("calls", [1, 2, 8, 40])
def test_an_optimizer_step_lies_in_each_burst_where_it_takes_several_calls_of_the_model(calls):
    budget, now, taken = CostBudget(), 0.0, []
    for step in range(5000):
        budget.begin(step, now, step // calls)
        is_taken = step in budget.chosen()
        taken += [step] * is_taken
        now += 0.010 + 0.0002 * is_taken
    starts = [step for step in taken if step - 1 not in taken and step >= BURST_STEPS]
    assert len(starts) > 10
    known = [start for start in starts if start >= 2 * calls]
    assert {start % calls for start in known} == {calls - 1}, "each begins with the last call before a step"


@pytest.mark.parametrize("what, plain, extra", COSTS, ids=[row[0] for row in COSTS])
def test_steps_that_need_not_be_told_of_change_nothing(what, plain, extra):
    every, seldom, now, told, untold = CostBudget(), CostBudget(), 0.0, 0, 0
    for step in range(5000):
        every.begin(step, now, step)
        if untold:
            untold -= 1
        else:
            seldom.begin(step, now, step)
            told, untold = told + 1, seldom.untold_steps()
        assert every.chosen() == seldom.chosen(), step
        now += plain + extra * (step in every.chosen())
    assert told < 2000


@pytest.mark.parametrize("calls", [2, 8, 40])
def test_steps_are_told_of_where_the_optimizer_steps_seldom(calls):
    budget, untold, starts = CostBudget(), 0, []
    for step in range(3000):
        if untold:
            untold -= 1
            continue
        budget.begin(step, step * 0.01, step // calls)
        if budget.chosen()[0] == step and step >= 4 * calls:
            starts.append(step)
        untold = budget.untold_steps()
    assert len(starts) > 5 and {start % calls for start in starts} == {calls - 1}


def test_a_training_whose_optimizer_steps_at_random_is_looked_at_too():
    budget, now, bursts, optimizer_steps, left = CostBudget(), 0.0, 0, 0, 1
    lengths = itertools.cycle([3, 17, 9, 30, 5])
    for step in range(5000):
        left -= 1
        if left == 0:
            optimizer_steps, left = optimizer_steps + 1, next(lengths)
        bursts += budget.begin(step, now, optimizer_steps)
        now += 0.010
    assert bursts > 10


@pytest.mark.parametrize("lengths", [[40], [30, 31, 33, 36], [5, 12, 7, 60, 9], [300]])
def test_bursts_last_until_the_optimizer_has_taken_a_step(lengths):
    budget, now, optimizer_steps, left, step = CostBudget(), 0.0, 0, lengths[0], 0
    following = itertools.cycle(lengths[1:] + lengths[:1])
    bursts = []  # each: (steps of the model, after how many of the optimizer)
    while step < 20000:
        budget.begin(step, now, optimizer_steps)
        if step in budget.chosen():
            if not bursts or bursts[-1][-1][0] != step - 1:
                bursts.append([])
            bursts[-1].append((step, optimizer_steps))
            now += 0.0002
        step, left, now = step + 1, left - 1, now + 0.010
        if left == 0:
            optimizer_steps, left = optimizer_steps + 1, next(following)
    later = [burst for burst in bursts if burst[0][1] >= len(lengths)][:-1]
    assert len(later) > 10
    steps = [burst[-1][1] - burst[0][1] for burst in later]
    assert min(steps) >= (1 if lengths == [300] else 2)
    assert max(len(burst) for burst in bursts) <= 96


def test_time_that_is_not_the_trainings_does_not_count():
    budget = CostBudget()
    now = 0.0
    for step in range(40):
        if step % 10 == 5:
            budget.pause()
            now += 100.0
        budget.begin(step, now)
        now += 0.01
    assert budget.burst_seconds() < 0.001


def test_the_schedule_is_of_the_training_alone():
    schedule = training_schedule([3, 4, 5])
    due = {mode: [step for step in range(10) if schedule.should_save_step(mode, step)] for mode in ModeKeys}
    assert due == {mode: [3, 4, 5] if mode is ModeKeys.TRAIN else [] for mode in ModeKeys}
