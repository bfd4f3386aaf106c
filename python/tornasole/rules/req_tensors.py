"""What a rule needs of its trials at a step, so that it can be waited for and read before the rule is asked."""

from __future__ import annotations

from collections.abc import Iterable

from tornasole.core.tensor import StepState, Tensor
from tornasole.exceptions import SMDebugValueError


class RequiredTensors:
    """What a rule needs, for each of its trials."""

    def __init__(self, base_trial, other_trials=None) -> None:
        self.base_trial = base_trial
        self._per_trial = {trial: RequiredTensorsForTrial(trial) for trial in [base_trial, *(other_trials or [])]}

    def add(
        self,
        name: str,
        steps: Iterable[int],
        trial=None,
        should_match_regex: bool = False,
        reductions: Iterable[str] | None = None,
    ) -> None:
        """Requires a tensor at these global steps, in the base trial or another one.

        :param name: of the tensor; with ``should_match_regex`` a pattern for the names of any number of them
        :param reductions: names of reductions ("mean", "abs_max"…) that are needed instead of the value

        An unknown name raises :class:`TensorUnavailable`.
        """
        self._of(trial).add(name, steps, should_match_regex=should_match_regex, reductions=reductions)

    def get_names(self, trial=None) -> list[str]:
        """The names that were added."""
        return self._of(trial).get_names()

    def get(self, trial=None) -> list[Tensor]:
        """The tensors that were added."""
        return self._of(trial).get()

    def get_tensor_steps(self, name: str, trial=None) -> list[int]:
        """The steps at which a tensor is needed."""
        return self._of(trial).get_tensor_steps(name)

    def clear(self) -> None:
        """Forgets all."""
        for required in self._per_trial.values():
            required.clear()

    def fetch(self) -> None:
        """Waits for the steps and reads every value; raises what a lookup raises."""
        for required in self._per_trial.values():
            required.fetch()

    def _of(self, trial) -> RequiredTensorsForTrial:
        trial = self.base_trial if trial is None else trial
        try:
            return self._per_trial[trial]
        except KeyError:
            raise SMDebugValueError(f"trial {trial.name} is none of the rule's trials") from None


class RequiredTensorsForTrial:
    """What a rule needs of one trial."""

    def __init__(self, trial) -> None:
        self.trial = trial
        self.logger = trial.logger
        self._tensors: dict[str, Tensor] = {}
        self._tensor_steps: dict[str, list[int]] = {}
        self._reductions: dict[str, list[str]] = {}

    def add(self, name, steps, should_match_regex=False, reductions=None) -> None:
        """As :meth:`RequiredTensors.add`."""
        steps = list(steps)
        names = self.trial.tensor_names(regex=[name]) if should_match_regex else [name]
        for one in names:
            if one not in self._tensors:
                self._tensors[one] = self.trial.tensor(one)
            self._tensor_steps.setdefault(one, []).extend(steps)
            if reductions is not None:
                self._reductions.setdefault(one, []).extend(reductions)

    def get_names(self):
        """The names that were added."""
        return list(self._tensor_steps)

    def get(self):
        """The tensors that were added."""
        return list(self._tensors.values())

    def get_tensor_steps(self, name):
        """The steps at which a tensor is needed."""
        return self._tensor_steps[name]

    def clear(self):
        """Forgets all."""
        self._tensors.clear()
        self._tensor_steps.clear()
        self._reductions.clear()

    def fetch(self):
        """As :meth:`RequiredTensors.fetch`."""
        steps = sorted({step for steps in self._tensor_steps.values() for step in steps})
        # Waiting loads what is new. What is there needs no waiting, so that the rule sees the steps it saw before.
        missing = [step for step in steps if self.trial.has_passed_step(step) != StepState.AVAILABLE]
        if missing:
            self.trial.wait_for_steps(missing)
        for name, steps in self._tensor_steps.items():
            for step in steps:
                self._read(self._tensors[name], step)

    def _read(self, tensor: Tensor, step: int) -> None:
        reductions = self._reductions.get(tensor.name)
        if reductions is None:
            tensor.value(step)
        for reduction in reductions or ():
            tensor.reduction_value(step, reduction.removeprefix("abs_"), abs=reduction.startswith("abs_"))
