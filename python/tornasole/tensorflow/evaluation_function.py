"""The function that ``evaluate`` of Keras 2 runs.

Keras 2 looks it up once, before the first batch, so it cannot be replaced for one batch: a function takes its place
that hands each batch on, to the one there was or, at a due step, to the one that captures.
"""

from typing import Any, Callable, Optional

from tornasole.tensorflow.keras_names import IS_KERAS_3

ATTRIBUTE = "test_function"


class EvaluationFunction:
    """The place of one hook in the function of one model at a time."""

    def __init__(self) -> None:
        self.pending: Optional[Callable] = None  # for the batch that comes next
        self._model: Any = None
        self._own: Optional[Callable] = None
        self._installed: Optional[Callable] = None

    def install(self, model: Any) -> None:
        """Takes the place of the model's function, made now if there is none."""
        if IS_KERAS_3 or not getattr(model, "_is_compiled", False) or getattr(model, "_cluster_coordinator", None):
            return
        own = model.make_test_function()
        if own is self._installed:
            return
        if own is not self._own or self._installed is None:
            self.remove()

            def run_or_capture(*arguments):
                pending, self.pending = self.pending, None
                return own(*arguments) if pending is None else pending(*arguments)

            self._own, self._installed = own, run_or_capture
        self._model = model
        model.__dict__[ATTRIBUTE] = self._installed

    def own_of(self, function: Any) -> Optional[Callable]:
        """The function whose place this one has; None if it is another."""
        return self._own if function is not None and function is self._installed else None

    def remove(self) -> None:
        """Puts the model's function back."""
        self.pending = None
        if self._model is not None and self._model.__dict__.get(ATTRIBUTE) is self._installed:
            self._model.__dict__[ATTRIBUTE] = self._own
        self._model = None
