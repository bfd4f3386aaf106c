"""Which way the tensors inside a step of a model are had.

A step with nothing due, or with nothing due but what can be read after it, runs the model's own function and nothing
else. What is wanted from inside is asked when the step is first tapped; a due step that wants more has it tapped anew,
for all of it.
"""

from typing import Any, Callable, Dict, Optional

import tensorflow as tf

from tornasole.tensorflow.step_observer import StepObserver
from tornasole.tensorflow.step_recorder import Tap
from tornasole.tensorflow.step_tap import EagerTwin, TappedStep


class ModeFunctions:
    """The function of one model for one mode: ``kind`` is train, test or predict."""

    def __init__(self, model: Any, kind: str):
        self.model, self.kind = model, kind
        self.attribute = f"{kind}_function"
        self.reason: Optional[str] = None  # why the tensors inside cannot be had
        self.tapped: Any = None  # runs the function, and has a step
        self._original: Any = None
        self._known: Optional[Dict[str, Tap]] = None  # once it has run

    def find_tapped(self, wants: Callable[[Tap], bool]) -> Any:
        """What runs the step and gives the tensors inside; None if the own function will do, or must."""
        original = self.model.__dict__.get(self.attribute)
        if original is not self._original:  # the model was compiled, or compiled again
            self._original, self.tapped, self._known, self.reason = original, None, None, None
        if self.reason is not None:
            return None
        names = None
        if self._known is not None:
            names = {name for name, tap in self._known.items() if wants(tap)}
            if not names:
                return None
            if self.tapped is not None and names <= self.tapped.step.names:
                return self.tapped
            names |= set() if self.tapped is None else self.tapped.step.names
        is_of_torch = tf.keras.backend.backend() == "torch"
        if is_of_torch and self.model.jit_compile:
            self.reason = "the step is compiled by torch.compile"
            return None
        step = TappedStep(self.model, self.kind, names, wants)
        make = EagerTwin if is_of_torch or self.model.run_eagerly else StepObserver
        self.tapped = make(step, self.model, self.kind)
        return self.tapped

    def settle(self, given: Dict[str, Any]) -> None:
        """The step has run with taps: what it can give is known."""
        step = self.tapped.step
        self._known = {**(self._known or {}), **step.taps}
        if step.names is None:
            step.names = set(given)

    def give_up(self, reason: str) -> None:
        """The tensors inside cannot be had, until the model is compiled again."""
        self.tapped, self.reason = None, reason
