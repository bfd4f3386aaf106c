"""Batches that were taken off an iterator, given once more through an iterator of the same kind."""

import collections
from typing import Any, Callable, Deque, Iterator, List, Optional, Tuple

import tensorflow as tf

from tornasole.tensorflow.tf_values import local_values


def next_batches(source: Any, count: int) -> List[Any]:
    """So many, or those there are; if there are none, whatever ``source`` raises at its end."""
    batches: List[Any] = []
    for _ in range(count):
        try:
            batches.append(next(source))
        except (StopIteration, tf.errors.OutOfRangeError):
            if not batches:
                raise
            break
    return batches


class BatchReplay:
    """One iterator for all steps of a training: to make one takes longer than most steps."""

    def __init__(self) -> None:
        self._waiting: Deque[Any] = collections.deque()
        self._spec: Any = None
        self._iterator: Optional[Any] = None

    def arguments(self, batches: List[Any], spec: Any) -> Callable[[], Tuple]:
        """A function that gives the arguments of a step which will take these batches, all of them.

        A step that asks for more is told that this is the end; the iterator is of no use then, and another is made.
        """

        def give() -> Tuple:
            if self._iterator is None or self._spec != spec:
                self._iterator, self._spec = iter(_given_by(self._give_out, spec)), spec
            self._waiting.clear()  # if a step failed before it took them
            self._waiting.extend(batches)
            return (self._iterator,)

        return give

    def _give_out(self) -> Iterator[Any]:
        while self._waiting:
            yield self._waiting.popleft()
        self._iterator = None


def distributed_arguments(source: Any, strategy: Any, batches: List[Any]) -> Callable[[], Tuple]:
    """The same for an iterator that gives every replica its part of a batch.

    Such an iterator takes the next batches before they are asked for, so one is made for each step, which has no more.
    """

    def give() -> Tuple:
        count = strategy.num_replicas_in_sync
        parts = [tf.nest.map_structure(lambda v: local_values(v)[i], batch) for batch in batches for i in range(count)]
        spec = tf.nest.map_structure(lambda one: getattr(one, "_value_specs", (one,))[0], source.element_spec)
        data = strategy.distribute_datasets_from_function(lambda _: _given_by(lambda: iter(parts), spec), source._options)
        iterator = iter(data)
        # A function that is traced with it is to be the one that the source would have given.
        for fact in ("_cardinality", "_enable_get_next_as_optional"):
            setattr(iterator, fact, getattr(source, fact))
        return (iterator,)

    return give


def _given_by(generator: Callable, spec: Any) -> tf.data.Dataset:
    options = tf.data.Options()
    options.autotune.enabled = False
    options.experimental_optimization.apply_default_optimizations = False
    options.experimental_optimization.inject_prefetch = False  # nothing is taken before it is asked for
    return tf.data.Dataset.from_generator(generator, output_signature=spec).with_options(options)
