"""Collections that can be told about tensors, variables, operations and layers of TensorFlow."""

import re
from typing import Any, Dict, Iterator

import tensorflow as tf

from tornasole.core.collection import Collection as BaseCollection
from tornasole.core.logger import get_logger
from tornasole.tensorflow.keras_names import variable_name

_DISTRIBUTED = tf.distribute.DistributedValues


class Collection(BaseCollection):
    """A named group of tensors, which can be tensors and variables of a graph, or inputs and outputs of layers."""

    def __init__(self, name, *arguments, **options) -> None:
        super().__init__(name, *arguments, **options)
        self._graph_tensors: Dict[str, Any] = {}  # by name, for hooks that fetch them

    def add(self, arg) -> None:
        """Adds a ``tf.Tensor``, a ``tf.Variable`` (also a mirrored one), all outputs of a ``tf.Operation``, a tensor's
        name, or a list or set of these. Anything else is told of and left out.
        """
        if isinstance(arg, (list, tuple, set)):
            for item in arg:
                self.add(item)
        elif isinstance(arg, str):
            self.add_tensor_name(arg)
        elif isinstance(arg, tf.Operation):
            self.add(list(arg.outputs))
        elif isinstance(arg, (tf.Tensor, tf.Variable, _DISTRIBUTED)) or hasattr(arg, "path"):
            self._add_object(arg)
        else:
            get_logger().warning(
                "%r of type %s cannot be added to the collection %s; allowed: a tf.Tensor, tf.Variable, tf.Operation, "
                "the name of a tensor, or a list or set of these",
                arg,
                type(arg).__name__,
                self.name,
            )

    def add_for_mode(self, arg, mode=None) -> None:
        """The same. A tensor is fetched in whichever mode runs it, so ``mode`` need not be given."""
        self.add(arg)

    def _add_object(self, arg: Any) -> None:
        known = self._hook._tensor_name_of(arg) if self._hook is not None else None
        name = known or _own_name(arg)
        if name is None:
            get_logger().warning("a tensor without a name cannot be added to the collection %s", self.name)
            return
        self._graph_tensors[name] = arg
        self.add_tensor_name(name)

    def add_keras_layer(self, layer, inputs: bool = False, outputs: bool = True) -> None:
        """The outputs of this layer of Keras belong to the collection; its inputs, too, if asked for."""
        for side, is_on in (("inputs", inputs), ("outputs", outputs)):
            if is_on:
                self.include(rf"^{re.escape(layer.name)}/{side}(/|_\d+$|$)")

    def _objects(self) -> Iterator:
        """(name, tensor or variable) of what was given as an object."""
        return iter(self._graph_tensors.items())

    def __getstate__(self) -> dict:
        return {**super().__getstate__(), "_graph_tensors": {}}


def _own_name(arg: Any):
    if hasattr(arg, "path"):
        return variable_name(arg)
    try:
        return arg.name
    except AttributeError:  # of a tensor that has a value
        return None
