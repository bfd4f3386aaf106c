"""Which steps statistics are taken at, so that they cost a given share of the training's time.

Statistics are taken in bursts of consecutive optimizer steps, since change from step to step is what they are read for.
Programs that call the model often for one step of the optimizer (gradients that are added up, games that are played,
cells that are unrolled) take it after the last of these calls: there a burst begins with that call, and goes on until
the next step too, unless that takes too many calls. The first burst is at the start, the second soon after, so that
every training is looked at twice. Each further one comes when the share of the time so far, and a few milliseconds that
any run may spend, pay for all with it; bursts come closer at the start, where trainings go wrong most.
"""

import math
import statistics
from collections import deque
from typing import Deque, Iterable, List, Optional, Tuple

from tornasole import SaveConfig, SaveConfigMode
from tornasole.modes import ModeKeys

BURST_STEPS = 3
_GROWTH = 1.25  # of the distance between bursts, while the share would allow more
_MAX_GAP = 2000
_STRETCH = 32  # steps that are told of at once, where they are alike
_MOST_CALLS = 96  # of the model, in a burst
_WARM_UP = 5  # steps in which caches fill and say nothing about cost
_ALLOWANCE = 0.015  # seconds that bursts may take besides
_LEAST_SHARE = 0.003  # for bursts, where what is done at each step leaves less: steps of a millisecond
_NEVER = 10**15  # as an interval


def training_schedule(steps: Iterable[int]) -> SaveConfig:
    """A schedule of these steps of the training alone: evaluation counts its own."""
    chosen = {ModeKeys.TRAIN: list(steps)}
    return SaveConfig(
        {
            mode: SaveConfigMode(save_interval=_NEVER, start_step=1, save_steps=chosen.get(mode, []))
            for mode in ModeKeys
        }
    )


class CostBudget:
    """Chooses the steps. Told of each step of the training and when it began; knows no clock and no hook.

    ``each_step``: seconds that are spent at every step besides, burst or not. They are part of the share.
    """

    def __init__(self, share: float = 0.03, burst_steps: int = BURST_STEPS, each_step: float = 0.0):
        self.share = share
        self._each_step = each_step
        self._burst_steps = burst_steps
        self._plain: Deque[float] = deque(maxlen=64)  # seconds of steps without statistics
        self._bursts: Deque[Tuple[float, int]] = deque(maxlen=8)  # seconds and steps of whole bursts
        self._burst: List[float] = []  # of the burst under way, and of the step after it, which takes off what it put up
        self._first: List[float] = []  # of the first burst, which also makes what later ones reuse
        self._chosen: List[int] = list(range(burst_steps))
        self._gap = 10.0
        self._next_look = 0  # no burst begins before this step
        self._trained = 0.0  # seconds, all steps
        self._count = 1  # of bursts, with the one under way or to come
        self._calls = 1  # of the model, between the last two steps of optimizers
        self._calls_since = 0  # the last of them, with the one that begins
        self._taken: Optional[int] = None  # steps of optimizers
        self._taken_before = 0  # the burst under way, or the last one
        self._last_step: Optional[int] = None
        self._last_time = 0.0
        self._seen = 0

    def chosen(self) -> List[int]:
        """The steps at which statistics are taken: of the burst under way or to come, else of the last one."""
        return list(self._chosen)

    def burst_seconds(self) -> float:
        """What a burst costs more than steps without statistics, as far as it is known: what is usual, not what a
        busy machine adds to some."""
        if not self._plain:
            return 0.0
        plain = statistics.median(self._plain)
        bursts = self._bursts or [(steps * min(self._first, default=0.0), steps) for steps in [len(self._chosen) + 1]]
        return max(0.0, statistics.median(seconds - steps * plain for seconds, steps in bursts))

    def begin(self, step: int, now: float, taken: Optional[int] = None) -> bool:
        """A step of the training begins, after ``taken`` steps of optimizers, if that is known. True when it and those
        after it were not chosen before."""
        count = 1 if self._last_step is None else step - self._last_step
        self._calls_since += max(count - 1, 0)
        if taken != self._taken:
            steps = max((taken or 0) - (self._taken or 0), 1)
            self._calls, self._calls_since, self._taken = max(self._calls_since // steps, 1), 0, taken
        self._calls_since += 1
        if self._last_step is not None and 0 < count <= _STRETCH:
            self._note(self._last_step, count, now - self._last_time)
        self._last_step, self._last_time = step, now
        if step == self._chosen[-1] + 1 and self._must_go_on():
            self._chosen += range(step, step + min(len(self._chosen), _MOST_CALLS - len(self._chosen)))
            return True
        if step <= self._chosen[-1] or step < self._next_look:
            return False
        missing = self._missing_steps(step)
        if missing > 0:
            self._next_look = step + missing
            return False
        if self._calls_since < self._calls:
            return False
        self._gap = min(self._gap * _GROWTH, _MAX_GAP)
        self._count += 1
        self._chosen = list(range(step, step + self._burst_steps))
        self._taken_before = taken or 0
        return True

    def untold_steps(self) -> int:
        """How many of the next steps ``begin`` need not be told of: they are like this one."""
        if self._last_step is None or self._last_step <= self._chosen[-1] + 1 or self._calls > 1:
            return 0
        return max(0, min(_STRETCH, self._next_look - self._last_step) - 1)

    def _must_go_on(self) -> bool:
        """Whether the burst that ends here has to last until optimizers have taken another step."""
        if self._taken is None or len(self._chosen) >= _MOST_CALLS:
            return False
        steps = self._taken - self._taken_before
        return steps < 1 or (steps < 2 and self._calls + self._burst_steps < _MOST_CALLS)

    def pause(self) -> None:
        """The time until the next step is not the training's: evaluation, a checkpoint."""
        self._last_step = None

    def _note(self, step: int, count: int, seconds: float) -> None:
        self._seen += count
        self._trained += seconds
        if not self._chosen[0] <= step <= self._chosen[-1] + 1:
            if self._seen > _WARM_UP:
                self._plain.append(seconds / count)
            return
        if step == self._chosen[0]:
            self._burst = []
        self._burst.append(seconds)
        if self._count == 1 and step <= self._chosen[-1]:
            self._first.append(seconds)
        elif self._count > 1 and len(self._burst) > len(self._chosen):  # none was left out for a pause
            self._bursts.append((sum(self._burst), len(self._burst)))

    def _missing_steps(self, step: int) -> int:
        """How many steps the next burst has to wait at least."""
        of_gap = self._chosen[-1] + 1 + int(self._gap) - step
        if of_gap > 0 or self._count == 1:
            return of_gap
        if not self._plain:
            return 1
        plain = max(statistics.median(self._plain), 1e-9)
        share = max(self.share - self._each_step / plain, min(self.share, _LEAST_SHARE))
        missing = (self._count + 1) * self.burst_seconds() - share * self._trained - _ALLOWANCE
        return math.ceil(missing / (share * plain))
