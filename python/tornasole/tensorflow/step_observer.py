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

On several devices each replica has its part of the batch; the tensors are those of the first.
"""

import random
from typing import Any, Callable, Dict, Hashable, List, Optional, Set, Tuple

import numpy
import tensorflow as tf

from tornasole.core.guard import guard
from tornasole.tensorflow.batch_replay import BatchReplay, distributed_arguments, next_batches
from tornasole.tensorflow.keras_names import IS_KERAS_3
from tornasole.tensorflow.optimizer_wraps import all_variables, is_built
from tornasole.tensorflow.step_recorder import plain_call
from tornasole.tensorflow.step_tap import NotTapped, TappedStep
from tornasole.tensorflow.tf_values import local_values
from tornasole.tensorflow.variable_states import VariableStates, tf_variable


def _without_optionals(data: Any) -> Any:
    return tf.nest.map_structure(lambda part: None if isinstance(part, tf.experimental.Optional) else part, data)


class StepObserver:
    """Runs a batch by the model's own function, and once more by the tapped step."""

    def __init__(self, step: TappedStep, model: Any, kind: str):
        self.step, self._model, self._kind = step, model, kind
        self._strategy = model.distribute_strategy

        @plain_call
        def observe(data):
            run = self.step.run_in_context()
            on_replica = plain_call(lambda part: run(_without_optionals(part))[1])
            given = self._strategy.run(on_replica, args=(data,))
            return {name: local_values(value)[0] for name, value in given.items()}

        # Keras 3 lets no step be converted by autograph, Keras 2 has every step converted.
        self._observe = tf.function(observe, reduce_retracing=True, autograph=not IS_KERAS_3)
        self.failure: Optional[str] = None
        self._replay = BatchReplay()
        self._states: Optional[VariableStates] = None  # of every variable that the step may change
        self._kinds: Set[Hashable] = set()  # of batches that the step was traced for

    def __call__(self, original: Callable, arguments: Tuple) -> Tuple[Any, Dict[str, Any]]:
        """(result of the own function, the tensors by name). NotTapped if nothing was run."""
        if not is_built(self._model):
            self._check_seeds()
            batches, replay = self._take(arguments)
            taps = self._before_the_own(batches)
            return original(*replay()), taps
        batches, replay = self._take(arguments)
        states = self._states or VariableStates(self._known_variables())
        before = states.note()
        logs = original(*replay())
        return logs, self._after_the_own(batches, states, before)

    # ---- the batch

    def _take(self, arguments: Tuple) -> Tuple[List[Any], Callable[[], Tuple]]:
        """The batches of this execution, and a function that gives the arguments by which the own one gets them."""
        source = arguments[0]
        if isinstance(source, (list, tuple)):  # Keras 3 predicts from batches
            return list(source), lambda: arguments
        count = _steps_per_execution(self._model)
        if isinstance(source, tf.data.Iterator):
            batches = next_batches(source, count)
            return batches, self._replay.arguments(batches, source.element_spec)
        if isinstance(source, tf.distribute.DistributedIterator):
            batches = next_batches(source, count)
            return batches, distributed_arguments(source, self._strategy, batches)
        batches = next_batches(source, count)
        return batches, lambda: (iter(batches),)

    # ---- the variables

    def _known_variables(self) -> List[Any]:
        """Of a variable with a copy on every replica, all copies: what they hold may differ."""
        return [copy for variable in all_variables(self._model) for copy in local_values(tf_variable(variable))]

    def _find_states(self, batch: Any) -> VariableStates:
        """All variables that the step may change; tracing it for a kind of batch tells those that only it knows."""
        kind = _kind_of(batch)
        if self._states is None or kind not in self._kinds:
            used = self._observe.get_concrete_function(batch).graph.variables
            known = self._known_variables() if self._states is None else self._states.variables
            found = VariableStates([*known, *(variable for variable in used if hasattr(variable, "read_value"))])
            if self._states is None or len(found.variables) > len(known):
                self._states = found
            self._kinds.add(kind)
        return self._states

    # ---- the tapped step

    def _before_the_own(self, batches: List[Any]) -> Dict[str, Any]:
        """On a model that is not built yet."""
        states: Optional[VariableStates] = None
        before: List[Any] = []
        try:
            states = self._find_states(batches[0])
            before = states.note()
            return self._run(batches)
        except Exception as error:
            self._fail(error)
            return {}
        finally:
            if states is not None and before:
                states.restore(before)

    def _after_the_own(self, batches: List[Any], noted: VariableStates, before: List[Any]) -> Dict[str, Any]:
        states: Optional[VariableStates] = None
        after: List[Any] = []
        randoms = random.getstate(), numpy.random.get_state(), self._layer_seeds()
        try:
            states = self._find_states(batches[0])
            after = states.note()
            noted.restore(before)
            return self._run(batches)
        except Exception as error:
            self._fail(error)
            return {}
        finally:
            if states is not None and after:
                states.restore(after)
            random.setstate(randoms[0])
            numpy.random.set_state(randoms[1])
            for generator, seed in randoms[2]:
                generator._seed = seed

    def _fail(self, error: Exception) -> None:
        self.failure = f"the step cannot be run with taps in it: {type(error).__name__}: {error}"
        guard.handle(error, "the tensors inside the step")

    def _run(self, batches: List[Any]) -> Dict[str, Any]:
        taps: Dict[str, Any] = {}
        for batch in batches:
            taps = self._observe(batch)
        return taps

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


def _kind_of(batch: Any) -> Hashable:
    """The same for batches that one trace of the step is for."""
    return tuple(
        (str(part.shape), part.dtype) if hasattr(part, "shape") and hasattr(part, "dtype") else type(part)
        for whole in tf.nest.flatten(batch)
        for part in local_values(whole)
    )
