"""Tensor: one tensor of a trial, over all its steps, modes and workers."""

from __future__ import annotations

from enum import Enum
from typing import TYPE_CHECKING, Any

from tornasole.core.query_arguments import (
    count_of_steps,
    mode_number,
    reduction_of_name,
    step_number,
    worker_name,
)
from tornasole.exceptions import (
    SMDebugNotImplementedError,
    StepNotYetAvailable,
    StepUnavailable,
    TensorUnavailableForStep,
)
from tornasole.modes import ModeKeys

if TYPE_CHECKING:
    import numpy

    from tornasole.trials.trial import Trial


class StepState(Enum):
    """What is known of a step."""

    UNAVAILABLE = 0  # passed over, or beyond the end of a run that is over
    AVAILABLE = 1  # written by all workers, or as far as it ever will be
    NOT_YET_AVAILABLE = 2  # may still come


class Tensor:
    """One tensor of a trial; got from :meth:`Trial.tensor`.

    Every method takes a ``mode``; the step is then a step of that mode. With the default, ``GLOBAL``, it is a global
    step. Without a ``worker`` the first one, in sorted order, that saved the tensor at the step is meant.

    A step that is not known to hold this tensor is looked for once among what was written since, and then raises

    - :class:`TensorUnavailableForStep` if the step is there without this tensor,
    - :class:`StepUnavailable` if the run has passed it over, or is over,
    - :class:`StepNotYetAvailable` if it may still come.
    """

    def __init__(self, name: str, trial: Trial, cache: bool = False) -> None:
        self.name = name
        self.trial = trial
        self.cache = cache

    @property
    def original_name(self) -> str | None:
        """The framework's own name of it, if one was saved with its shape; else None."""
        return self.trial._engine.original_name(self.name)

    def steps(self, mode: ModeKeys = ModeKeys.GLOBAL, show_incomplete_steps: bool = False) -> list[int]:
        """The steps at which it was saved, ascending; those that some worker has yet to write only on demand."""
        self.trial.maybe_refresh(self.name)
        return self.trial._engine.tensor_steps(self.name, mode_number(mode), bool(show_incomplete_steps))

    def prev_steps(self, step: int, n: int | None = None, mode: ModeKeys = ModeKeys.GLOBAL) -> list[int]:
        """The last ``n`` of its complete steps up to and including ``step``, ascending; all of them without ``n``."""
        self.trial.maybe_refresh(self.name)
        return self.trial._engine.prev_steps(self.name, step_number(step), count_of_steps(n), mode_number(mode))

    def workers(self, step_num: int, mode: ModeKeys = ModeKeys.GLOBAL) -> list[str]:
        """The workers that saved it at the step, sorted; :class:`TensorUnavailableForStep` if none did."""
        return self.trial._engine.tensor_workers(self.name, step_number(step_num), mode_number(mode))

    def value(self, step_num: int, mode: ModeKeys = ModeKeys.GLOBAL, worker: str | None = None) -> numpy.ndarray:
        """The value as an array.

        :class:`TensorUnavailableForStep` if only reductions were saved (``has_reductions``), or if the value is
        damaged or its file is missing (``reason``). A file that is still to come is waited for.
        """
        return self._at_step(self.trial._engine.value, step_num, mode, worker)

    def values(self, mode: ModeKeys = ModeKeys.GLOBAL, worker: str | None = None) -> dict[int, numpy.ndarray]:
        """The values of all complete steps of the mode, by step, read in one pass.

        Raises what :meth:`value` would for the first step that has none.
        """
        self.trial.maybe_refresh(self.name)
        return self.trial._engine.values(self.name, mode_number(mode), worker_name(worker))

    def shape(self, step_num: int, mode: ModeKeys = ModeKeys.GLOBAL, worker: str | None = None) -> tuple[int, ...]:
        """The saved shape, else that of the value; :class:`ShapeUnavailableForStep` if neither was saved."""
        return tuple(self._at_step(self.trial._engine.shape, step_num, mode, worker))

    def shapes(self, mode: ModeKeys = ModeKeys.GLOBAL, worker: str | None = None) -> dict[int, tuple[int, ...]]:
        """The shapes at all complete steps of the mode that have one, by step."""
        self.trial.maybe_refresh(self.name)
        shapes = self.trial._engine.shapes(self.name, mode_number(mode), worker_name(worker))
        return {step: tuple(shape) for step, shape in shapes.items()}

    def reduction_value(
        self,
        step_num: int,
        reduction_name: str,
        mode: ModeKeys = ModeKeys.GLOBAL,
        worker: str | None = None,
        abs: bool = False,  # noqa: A002 - the name users know
    ) -> float:
        """A number of the tensor: the saved reduction if there is one, else computed from the value.

        ``reduction_name``: min, max, median, mean, std, variance, sum, prod, l1 or l2; with ``abs`` of the magnitudes.
        """

        reduction = reduction_of_name(reduction_name)

        def read(name, step, mode_number, worker):
            return self.trial._engine.reduction_value(name, step, reduction, mode_number, worker, bool(abs))

        return self._at_step(read, step_num, mode, worker)

    def reduction_values(
        self, step_num: int, mode: ModeKeys = ModeKeys.GLOBAL, worker: str | None = None
    ) -> dict[tuple[str, bool], float]:
        """The reductions saved at the step, by ``(name, abs)``; never computed ones."""
        return self._at_step(self.trial._engine.reduction_values, step_num, mode, worker)

    def step(self, step_num, mode=ModeKeys.GLOBAL, worker=None) -> Any:
        """Not there any more: ask for :meth:`value` or :meth:`reduction_value`."""
        raise SMDebugNotImplementedError("Tensor.step is gone; ask for Tensor.value or Tensor.reduction_value")

    def plot(
        self,
        mode: ModeKeys = ModeKeys.GLOBAL,
        reduction: str | None = None,
        worker: str | None = None,
        ax: Any = None,
    ) -> Any:
        """Draws the tensor over its steps with matplotlib, and returns the axes.

        A tensor of one element is drawn as it is; of others the ``reduction`` (without one: mean, min and max). Draws
        into ``ax``, or into a new figure.
        """
        from tornasole.trials.plots import plot_tensor

        return plot_tensor(self, mode=mode, reduction=reduction, worker=worker, ax=ax)

    def _at_step(self, read, step_num, mode, worker):
        """What `read` says of the step; if the step is not known to hold the tensor, once more after a refresh."""
        question = (self.name, step_number(step_num), mode_number(mode), worker_name(worker))
        try:
            return read(*question)
        except (StepUnavailable, StepNotYetAvailable):
            pass
        except TensorUnavailableForStep as error:
            if error.reason != "not saved":
                raise
        self.trial.maybe_refresh(self.name)
        return read(*question)

    # A trial makes one each time it is asked; scripts compare them, and keep them in sets and as keys.
    def __eq__(self, other: object) -> bool:
        if not isinstance(other, Tensor):
            return NotImplemented
        return self.name == other.name and self.trial == other.trial

    def __hash__(self) -> int:
        return hash((self.name, self.trial))

    def __repr__(self) -> str:
        return f"<tornasole Tensor {self.name!r} of trial {self.trial.name!r}>"

    def _repr_html_(self) -> str:
        from tornasole.trials.notebook import tensor_html

        return tensor_html(self)
