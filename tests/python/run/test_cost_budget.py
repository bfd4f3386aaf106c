"""Which steps statistics are taken at, by a clock that the test holds."""

import pytest

from tornasole.run.cost_budget import BURST_STEPS, CostBudget


def simulate(plain_seconds, extra_seconds, steps, share=0.03):
    """The steps with statistics of a training with these times, and the share of the time they took."""
    budget, now, taken = CostBudget(share), 0.0, []
    for step in range(steps):
        budget.begin(step, now)
        is_taken = step in budget.chosen()
        taken += [step] * is_taken
        now += plain_seconds + extra_seconds * is_taken
    return taken, len(taken) * extra_seconds / now


COSTS = [
    ("cheap statistics", 0.010, 0.0002),
    ("statistics as long as the step", 0.010, 0.010),
    ("statistics ten times the step", 0.010, 0.100),
]


@pytest.mark.parametrize("what, plain, extra", COSTS, ids=[row[0] for row in COSTS])
def test_the_share_holds(what, plain, extra):
    taken, share = simulate(plain, extra, 20000)
    assert taken[:BURST_STEPS] == list(range(BURST_STEPS)), "the start is looked at"
    assert share <= 0.035
    assert len(taken) >= 2 * BURST_STEPS, "and it is looked at again"


SHORT = [
    ("what the start cost is paid back before more is spent", 0.004, 0.020, 1000),
    ("and nothing more is spent before that", 0.004, 0.060, 1500),
    ("a few hundred long steps", 0.200, 0.100, 300),
]


@pytest.mark.parametrize("what, plain, extra, steps", SHORT, ids=[row[0] for row in SHORT])
def test_the_share_holds_from_the_start(what, plain, extra, steps):
    taken, share = simulate(plain, extra, steps)
    assert taken[:BURST_STEPS] == list(range(BURST_STEPS))
    assert share <= 0.03


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


def test_time_that_is_not_the_trainings_does_not_count():
    budget = CostBudget()
    now = 0.0
    for step in range(40):
        if step % 10 == 5:
            budget.pause()
            now += 100.0
        budget.begin(step, now)
        now += 0.01
    assert budget.extra_seconds() < 0.001
