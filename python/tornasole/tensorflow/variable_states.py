"""The values of many variables at once: one call reads them all, one puts them all back.

A variable on its own is an operation of TensorFlow to read and another one to assign, each of which takes longer than
the arithmetic of a small layer; a function for all of them is one. Each value that goes into a function or comes out of
it takes as long again, so they stay inside: what is noted is a list of TensorFlow for each type.
"""

from typing import Any, Callable, Dict, List, Sequence

import tensorflow as tf

_PAYS_FROM = 4  # a function is traced before it is run for the first time
_ANY_SHAPE = -1


def tf_variable(variable: Any) -> Any:
    """The variable of TensorFlow behind one of Keras 3; any other as it is."""
    value = getattr(variable, "value", None)
    return variable if callable(value) or value is None else value


class VariableStates:
    """What certain variables held at some moment, and their way back to it."""

    def __init__(self, variables: Sequence[Any]):
        self.variables: List[Any] = list({id(variable): variable for variable in variables}.values())
        self._count = 0
        self._read: Callable = self._read_all
        self._write: Callable = self._write_all

    def note(self) -> List[Any]:
        """Their values now. A value that was read never changes: who assigns to the variable makes another."""
        self._count += 1
        if self._count == _PAYS_FROM:
            self._read = tf.function(self._read_all, autograph=False)
            self._write = tf.function(self._write_all, autograph=False)
        return self._read()

    def restore(self, noted: List[Any]) -> None:
        """Puts them back to what was noted."""
        self._write(noted)

    def _read_all(self) -> List[Any]:
        lists: Dict[Any, Any] = {}
        for variable in self.variables:
            if variable.dtype not in lists:
                lists[variable.dtype] = tf.raw_ops.EmptyTensorList(
                    element_shape=_ANY_SHAPE, max_num_elements=-1, element_dtype=variable.dtype
                )
            lists[variable.dtype] = tf.raw_ops.TensorListPushBack(
                input_handle=lists[variable.dtype], tensor=variable.read_value()
            )
        return list(lists.values())

    def _write_all(self, noted: List[Any]) -> None:
        types = list(dict.fromkeys(variable.dtype for variable in self.variables))
        lists = dict(zip(types, noted))
        for variable in reversed(self.variables):
            lists[variable.dtype], value = tf.raw_ops.TensorListPopBack(
                input_handle=lists[variable.dtype], element_shape=_ANY_SHAPE, element_dtype=variable.dtype
            )
            value.set_shape(variable.shape)
            variable.assign(value)
