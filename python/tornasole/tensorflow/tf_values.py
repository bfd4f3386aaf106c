"""Values of TensorFlow as arrays the engine can read, and those of PyTorch, which Keras 3 may run on."""

import sys
from typing import Any, List

import numpy
import tensorflow as tf

_IndexedSlices = tf.IndexedSlices


def is_symbolic(value: Any) -> bool:
    """Whether a tensor has no value: it belongs to a graph, not to the program that runs."""
    return tf.is_tensor(value) and not hasattr(value, "numpy")


def is_of_torch(value: Any) -> bool:
    """Whether it is a tensor of PyTorch."""
    torch = sys.modules.get("torch")
    return torch is not None and isinstance(value, getattr(torch, "Tensor", ()))


def _torch_array(value: Any) -> Any:
    from tornasole.pytorch.host_tensors import to_host

    return to_host(value)


def local_values(value: Any) -> List[Any]:
    """The values of all replicas on this machine; the value itself if there is but one."""
    parts = getattr(value, "values", None) if isinstance(value, tf.distribute.DistributedValues) else None
    return list(parts) if isinstance(parts, (list, tuple)) else [value]


def as_array(value: Any) -> Any:
    """The value as an array, without a copy where TensorFlow gives its memory; None for a tensor without a value.

    Of a value with several replicas it is the first one's, of indexed slices the slices alone.
    """
    give = getattr(value, "_numpy", None)
    if give is not None:  # a tensor that has a value: to ask it for what it has not takes longer than to read it
        array = numpy.asarray(give())
        if array.dtype != object:
            return array
    if hasattr(value, "path") and hasattr(value, "value") and not callable(value.value):
        value = value.value  # a variable of Keras 3
    if is_of_torch(value):
        return _torch_array(value)
    value = local_values(value)[0]
    if isinstance(value, _IndexedSlices):
        value = value.values
    elif isinstance(value, tf.SparseTensor):
        value = tf.sparse.to_dense(value)
    elif isinstance(value, tf.RaggedTensor):
        value = value.to_tensor()
    elif hasattr(value, "read_value"):
        value = value.read_value()
    if isinstance(value, (bool, int, float, complex, str, bytes)):
        return numpy.array([value])
    if tf.is_tensor(value):
        if not hasattr(value, "numpy"):
            return None
        give = getattr(value, "_numpy", value.numpy)
        value = give()
    array = numpy.asarray(value)
    if array.dtype == object:
        array = numpy.array([text if isinstance(text, bytes) else str(text) for text in array.ravel()])
    return array
