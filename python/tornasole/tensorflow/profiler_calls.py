"""What scripts call on a Keras hook to have their steps profiled. Accepted: tensors are captured, times are not."""

from contextlib import nullcontext
from typing import ContextManager

from tornasole.modes import ModeKeys


class ProfilerCalls:
    """The calls around a step of a custom loop. None of them begins a step, sets a mode or writes anything."""

    def profiler(self, mode: ModeKeys = ModeKeys.TRAIN) -> ContextManager[None]:
        """For ``with hook.profiler():`` around a step; what is raised inside goes on."""
        return nullcontext()

    def profiling_start_batch(self, mode: ModeKeys = ModeKeys.TRAIN) -> None:
        """Before a step."""

    def profiling_end_batch(self, mode: ModeKeys = ModeKeys.TRAIN) -> None:
        """After a step."""

    def profiling_end(self) -> None:
        """After the last step."""
