"""Which steps statistics are taken at, so that they cost a given share of the training's time.

Statistics are taken in bursts of consecutive optimizer steps, since change from step to step is what they are read for.
The first burst is at the start. After each, the time of its steps is compared with that of the steps without, and the
next burst is put so far away that the share holds; bursts come closer at the start, where trainings go wrong most.
"""

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
        self._chosen: List[int] = list(range(burst_steps))
        self._gap = 10.0
        self._last_step: Optional[int] = None
        self._last_time = 0.0
        self._seen = 0

    def chosen(self) -> List[int]:
        """The steps at which statistics are taken next, in order."""
        return list(self._chosen)

    def extra_seconds(self) -> float:
        """What a step with statistics costs more than one without, as far as it is known."""
        if not self._plain or not self._burst:
            return 0.0
        return max(0.0, statistics.median(self._burst) - statistics.median(self._plain))

    def begin(self, step: int, now: float) -> bool:
        """A step of the training begins. True when the choice of steps changed."""
        if self._last_step is not None and step == self._last_step + 1:
            self._note(self._last_step, now - self._last_time)
        self._last_step, self._last_time = step, now
        if self._chosen and step <= self._chosen[-1]:
            return False
        self._choose(step)
        return True

    def pause(self) -> None:
        """The time until the next step is not the training's: evaluation, a checkpoint."""
        self._last_step = None

    def _note(self, step: int, seconds: float) -> None:
        self._seen += 1
        if step in self._chosen:
            if self._seen > self._burst_steps:  # the first ones also make what later ones reuse
                self._burst.append(seconds)
        elif self._seen > _WARM_UP:
            self._plain.append(seconds)

    def _choose(self, step: int) -> None:
        self._gap = min(self._gap * _GROWTH, _MAX_GAP)
        gap = self._gap
        if self._plain and self._burst:
            cost = self._burst_steps * self.extra_seconds()
            plain = max(statistics.median(self._plain), 1e-9)
            gap = max(gap, cost / (self.share * plain))
        start = step + int(gap)
        self._chosen = list(range(start, start + self._burst_steps))
