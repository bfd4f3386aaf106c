"""A step of a model with taps in it: it also gives out the tensors that are wanted."""

import contextlib
from typing import Any, Callable, Dict, List, Optional, Set, Tuple

import tensorflow as tf

from tornasole.tensorflow.step_recorder import Recorder, Tap, plain_call, recording

_MISSING = object()


class NotTapped(Exception):
    """The tensors inside the step cannot be had, for the reason given; nothing was run."""


def _x_and_y(data: Any) -> Tuple[Any, Any]:
    """Inputs and labels of a batch, as Keras tells them apart."""
    if isinstance(data, tuple):
        return (data[0] if data else None), (data[1] if len(data) > 1 else None)
    return data, None


class TappedStep:
    """The train, test or predict step of a model: ``kind`` says which."""

    def __init__(self, model: Any, kind: str, names: Optional[Set[str]], wants: Callable[[Tap], bool]):
        """``names``: the tensors to give out; None: those that ``wants`` says yes to when it is first run or traced."""
        self.names = names
        self.taps: Dict[str, Tap] = {}  # all tensors that could be given out
        self.out_of_reach: List[Tap] = []
        self.call_order: List[str] = []
        self.optimizers: List[Any] = []  # that worked in the step
        self._model, self._kind, self._wants = model, kind, wants
        self._user_step = getattr(model, f"{kind}_step")

    def run_in_context(self) -> Callable[[Any], Tuple[Any, Dict[str, Any]]]:
        """A function that runs the step, in whichever thread, with autograph doing to it what it does to the caller."""
        autograph = tf.__internal__.autograph
        step = autograph.tf_convert(self._user_step, autograph.control_status_ctx())
        return plain_call(lambda data: self._run(step, data))

    def _run(self, step: Callable, data: Any) -> Tuple[Any, Dict[str, Any]]:
        """(result of the step, the tensors by name)."""
        recorder = Recorder(self._model)
        with recording(recorder):
            result = step(data)
        given = {}
        for tap, value in recorder.taps(*_x_and_y(data)):
            self.taps[tap.name] = tap
            if tap.name in self.names if self.names is not None else self._wants(tap):
                given[tap.name] = value
        self.out_of_reach, self.call_order = recorder.out_of_reach, recorder.call_order
        self.optimizers = recorder.optimizers
        return result, given

    @contextlib.contextmanager
    def in_place(self, given: Dict[str, Any]):
        """The model's step is this one; what it gives, on the first replica, is put into ``given``."""
        attributes, name = self._model.__dict__, f"{self._kind}_step"
        before = attributes.get(name, _MISSING)

        def run_and_put(data):
            result, taps = self.run_in_context()(data)
            context = tf.distribute.get_replica_context()
            if context is None or context.replica_id_in_sync_group == 0:
                given.update(taps)
            return result

        attributes[name] = plain_call(run_and_put)
        try:
            yield
        finally:
            if before is _MISSING:
                attributes.pop(name, None)
            else:
                attributes[name] = before


class EagerTwin:
    """For ``run_eagerly``: a function that Keras makes of the tapped step, run once in the place of the own one.

    Every operation runs as it would have, one after the other, so that nothing changes.
    """

    def __init__(self, step: TappedStep, model: Any, kind: str):
        self.step, self._model, self._kind = step, model, kind
        self.failure: Optional[str] = None
        self._given: Dict[str, Any] = {}  # by the last run; Keras 3 keeps the step that it made the function of
        self._function = self._make()

    def __call__(self, original: Callable, arguments: Tuple) -> Tuple[Any, Dict[str, Any]]:
        self._given.clear()
        with self.step.in_place(self._given):
            return self._function(*arguments), dict(self._given)

    def _make(self) -> Callable:
        model, kind = self._model, self._kind
        before = {name: model.__dict__.get(name, _MISSING) for name in (f"{kind}_function", f"{kind}_tf_function")}
        try:
            with self.step.in_place(self._given):
                getattr(model, f"make_{kind}_function")(force=True)
                return getattr(model, f"{kind}_function")
        finally:
            for name, value in before.items():
                if value is not _MISSING:
                    setattr(model, name, value)
                elif name in model.__dict__:
                    delattr(model, name)
