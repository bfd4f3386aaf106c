"""Which steps statistics are taken at, so that they cost a given share of the training's time.

Statistics are taken in bursts of consecutive optimizer steps, since change from step to step is what they are read for.
The first burst is at the start. What bursts took more than steps without is added up, and the next one comes when the
share of the time so far pays for it as well; bursts come closer at the start, where trainings go wrong most.
"""

import math
import statistics
from collections import deque
from typing import Deque, List, Optional

BURST_STEPS = 3
_GROWTH = 1.25  # of the distance between bursts, while the share would allow more
_MAX_GAP = 2000
_WARM_UP = 5  # steps in which caches fill and say nothing about cost


class CostBudget:
    """Chooses the steps. Told of each step of the training and when it began; knows no clock and no hook."""

    def __init__(self, share: float = 0.03, burst_steps: int = BURST_STEPS):
        self.share = share
        self._burst_steps = burst_steps
        self._plain: Deque[float] = deque(maxlen=64)
        self._burst: Deque[float] = deque(maxlen=4 * burst_steps)
        self._first: List[float] = []  # of the first burst, which also makes what later ones reuse
        self._chosen: List[int] = list(range(burst_steps))
        self._gap = 10.0
        self._next_look = 0  # no burst begins before this step
        self._trained = 0.0  # seconds, all steps
        self._costly = 0.0  # seconds of bursts, and of the step after each, which takes off what they put up
        self._costly_steps = 0
        self._last_step: Optional[int] = None
        self._last_time = 0.0
        self._seen = 0

    def chosen(self) -> List[int]:
        """The steps at which statistics are taken: of the burst under way or to come, else of the last one."""
        return list(self._chosen)

    def extra_seconds(self) -> float:
        """What a step with statistics costs more than one without, as far as it is known."""
        known = statistics.median(self._burst) if self._burst else min(self._first, default=0.0)
        return max(0.0, known - statistics.median(self._plain)) if self._plain else 0.0

    def begin(self, step: int, now: float) -> bool:
        """A step of the training begins. True when a burst begins with it that was not chosen before."""
        if self._last_step is not None and step == self._last_step + 1:
            self._note(self._last_step, now - self._last_time)
        self._last_step, self._last_time = step, now
        if step <= self._chosen[-1] or step < self._next_look:
            return False
        missing = self._missing_steps(step)
        if missing > 0:
            self._next_look = step + missing
            return False
        self._gap = min(self._gap * _GROWTH, _MAX_GAP)
        self._chosen = list(range(step, step + self._burst_steps))
        return True

    def pause(self) -> None:
        """The time until the next step is not the training's: evaluation, a checkpoint."""
        self._last_step = None

    def _note(self, step: int, seconds: float) -> None:
        self._seen += 1
        self._trained += seconds
        if self._chosen[0] <= step <= self._chosen[-1] + 1:
            self._costly += seconds
            self._costly_steps += 1
            if step <= self._chosen[-1]:
                (self._first if self._seen <= self._burst_steps else self._burst).append(seconds)
        elif self._seen > _WARM_UP:
            self._plain.append(seconds)

    def _missing_steps(self, step: int) -> int:
        """How many steps the next burst has to wait at least."""
        of_gap = self._chosen[-1] + 1 + int(self._gap) - step
        if of_gap > 0 or not self._plain:
            return max(of_gap, 1)
        plain = statistics.median(self._plain)
        spent = max(0.0, self._costly - self._costly_steps * plain)
        missing = spent + self._burst_steps * self.extra_seconds() - self.share * self._trained
        return math.ceil(missing / (self.share * max(plain, 1e-9)))
