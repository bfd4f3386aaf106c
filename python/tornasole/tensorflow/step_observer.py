"""Tensors from inside a compiled step, without a change to it.

A compiled function cannot be asked for more than it gives: with further outputs it would be put together differently,
and the last bits of its results could change. So the model's own function trains, and beside it a second function with
taps in it, made of the same step, works on the same batch:

1. The batch is taken off the iterator; the model's own function gets it through an iterator of the same kind.
2. Every variable of the model, its optimizer and its metrics is noted, and the own function runs.
3. The variables are put back to what they were before it, the tapped function runs, and they are put to what they were
   after it. They hold what they would hold without us, the state of random numbers included.

A model that is built by its first step has no variables before it: there the tapped function runs first, and what it
changed is undone. Random numbers whose state is no variable (the operations of TensorFlow 1, which Keras 2 uses for
dropout) are drawn by each function for itself: the tapped one shows another draw than the one that trained.
"""

import random
from typing import Any, Callable, Dict, List, Optional, Tuple

import numpy
import tensorflow as tf

from tornasole.core.guard import guard
from tornasole.tensorflow.keras_names import IS_KERAS_3
from tornasole.tensorflow.optimizer_wraps import all_variables, is_built
from tornasole.tensorflow.step_recorder import plain_call
from tornasole.tensorflow.step_tap import NotTapped, TappedStep

_Values = List[Tuple[Any, Any]]


def _tf_variable(variable: Any) -> Any:
    value = getattr(variable, "value", None)
    return variable if callable(value) or value is None else value  # of a variable of Keras 3


def _without_optionals(data: Any) -> Any:
    return tf.nest.map_structure(lambda part: None if isinstance(part, tf.experimental.Optional) else part, data)


class StepObserver:
    """Runs a batch by the model's own function, and once more by the tapped step."""

    def __init__(self, step: TappedStep, model: Any, kind: str):
        self.step, self._model, self._kind = step, model, kind

        @plain_call
        def observe(data):
            return self.step.run(_without_optionals(data))[1]

        # Keras 3 lets no step be converted by autograph, Keras 2 has every step converted.
        self._observe = tf.function(observe, reduce_retracing=True, autograph=not IS_KERAS_3)
        self.failure: Optional[str] = None
        self._others: List[Any] = []  # variables that only the step itself knows

    def __call__(self, original: Callable, arguments: Tuple) -> Tuple[Any, Dict[str, Any]]:
        """(result of the own function, the tensors by name). NotTapped if nothing was run."""
        if not is_built(self._model):
            self._check_seeds()
            batches, replay = self._take(arguments)
            taps = self._before_the_own(batches)
            return original(*replay()), taps
        batches, replay = self._take(arguments)
        before = self._note(self._variables())
        logs = original(*replay())
        return logs, self._after_the_own(batches, before)

    # ---- the batch

    def _take(self, arguments: Tuple) -> Tuple[List[Any], Callable[[], Tuple]]:
        """The batches of this execution, and a function that gives the arguments by which the own one gets them."""
        source = arguments[0]
        if isinstance(source, (list, tuple)):  # Keras 3 predicts from batches
            return list(source), lambda: arguments
        count = _steps_per_execution(self._model)
        if isinstance(source, tf.data.Iterator):
            spec = source.element_spec
            batches = _next_batches(source, count)
            return batches, lambda: (iter(tf.data.Dataset.from_generator(lambda: batches, output_signature=spec)),)
        if isinstance(source, tf.distribute.DistributedIterator):
            raise NotTapped("the step runs on several devices")
        batches = _next_batches(source, count)
        return batches, lambda: (iter(batches),)

    # ---- the variables

    def _variables(self) -> List[Any]:
        return [_tf_variable(variable) for variable in all_variables(self._model)] + self._others

    @staticmethod
    def _note(variables: List[Any]) -> _Values:
        seen, values = set(), []
        for variable in variables:
            if id(variable) not in seen:
                seen.add(id(variable))
                values.append((variable, tf.identity(variable.read_value())))
        return values

    @staticmethod
    def _restore(values: _Values) -> None:
        for variable, value in values:
            variable.assign(value)

    # ---- the tapped step

    def _before_the_own(self, batches: List[Any]) -> Dict[str, Any]:
        """On a model that is not built yet."""
        before: _Values = []
        try:
            self._find_others(batches[0])
            before = self._note(self._variables())
            return self._run(batches)
        except Exception as error:
            self._fail(error)
            return {}
        finally:
            self._restore(before)

    def _after_the_own(self, batches: List[Any], before: _Values) -> Dict[str, Any]:
        after: Optional[_Values] = None
        states = random.getstate(), numpy.random.get_state(), self._layer_seeds()
        try:
            self._find_others(batches[0])
            after = self._note(self._variables())
            self._restore(before)
            return self._run(batches)
        except Exception as error:
            self._fail(error)
            return {}
        finally:
            if after is not None:
                self._restore(after)
            random.setstate(states[0])
            numpy.random.set_state(states[1])
            for generator, seed in states[2]:
                generator._seed = seed

    def _fail(self, error: Exception) -> None:
        self.failure = f"the step cannot be run with taps in it: {type(error).__name__}: {error}"
        guard.handle(error, "the tensors inside the step")

    def _run(self, batches: List[Any]) -> Dict[str, Any]:
        taps: Dict[str, Any] = {}
        for batch in batches:
            taps = self._observe(batch)
        return taps

    def _find_others(self, batch: Any) -> None:
        """Traces the step for this batch, which tells all variables it uses."""
        known = {id(_tf_variable(variable)) for variable in all_variables(self._model)}
        graph = self._observe.get_concrete_function(batch).graph
        self._others = [v for v in graph.variables if id(v) not in known and hasattr(v, "read_value")]

    # ---- layers of Keras 2 that count how often they were traced

    def _layer_seeds(self) -> List[Tuple[Any, Any]]:
        layers = self._model._flatten_layers() if hasattr(self._model, "_flatten_layers") else ()
        generators = [getattr(layer, "_random_generator", None) for layer in layers]
        return [(g, g._seed) for g in generators if getattr(g, "_rng_type", None) == "legacy_stateful"]

    def _check_seeds(self) -> None:
        if self._layer_seeds():
            raise NotTapped("the model draws random numbers and is not built before its first step")


def _steps_per_execution(model: Any) -> int:
    count = getattr(model, "steps_per_execution", None)
    if count is None:
        count = getattr(model, "_steps_per_execution", None)
    return 1 if count is None else int(count.numpy() if hasattr(count, "numpy") else count)


def _next_batches(source: Any, count: int) -> List[Any]:
    batches: List[Any] = []
    for _ in range(count):
        try:
            batches.append(next(source))
        except (StopIteration, tf.errors.OutOfRangeError):
            if not batches:
                raise
            break
    return batches
