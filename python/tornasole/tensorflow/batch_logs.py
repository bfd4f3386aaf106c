"""Tensors that a training step hands over in its batch logs, under keys of their own."""

from typing import Any, Dict, Iterator, List, Optional, Tuple

import tensorflow as tf

from tornasole.tensorflow.keras_names import gradient_name, numbered, variable_name

PREFIX = "smdebug_"
INPUTS, LABELS, PREDICTIONS = "smdebug_x", "smdebug_y", "smdebug_y_pred"
GRADIENTS, LAYER_OUTPUTS = "smdebug_gradients", "smdebug_layer_outputs"

_Named = Tuple[str, Any, str, Optional[str]]  # name, value, collection, what the collection is asked for


def is_debug_key(key: str) -> bool:
    """Whether a key of the logs is no metric."""
    return PREFIX in key


class LogNames:
    """The names under which the logs of a batch were saved, for batches that have the same and want the same."""

    def __init__(self) -> None:
        self.saved: List[str] = []
        self._keys: List[str] = []
        self._due_set = 0  # what was due; 0: nothing is known

    def are_those_of(self, due_set: int, logs: Dict[str, Any]) -> bool:
        return due_set != 0 and due_set == self._due_set and list(logs) == self._keys

    def begin(self) -> None:
        """The names that follow are those of a batch that is saved one by one."""
        self.saved, self._due_set = [], 0

    def end(self, due_set: int, logs: Dict[str, Any]) -> None:
        """They hold for batches with what is due now, if each value is one number."""
        self._keys = list(logs)
        is_plain = "batch" not in logs and all(_is_number(logs[name]) for name in self.saved if name != "batch")
        self._due_set = due_set if is_plain else 0


def _is_number(value: Any) -> bool:
    """Whether the value is a number, or a tensor or array of one."""
    kind = getattr(value, "dtype", None)
    is_array = kind is not None and getattr(value, "shape", None) == () and hasattr(value, "__array__")
    return isinstance(value, (int, float)) or (is_array and kind not in (tf.string, tf.variant, tf.bfloat16))


def named_log_values(logs: Dict[str, Any], model: Any = None) -> Iterator[_Named]:
    """The tensors of all keys that are understood."""
    for key, prefix, collection in (
        (INPUTS, "inputs", "inputs"),
        (LABELS, "labels", "outputs"),
        (PREDICTIONS, "predictions", "outputs"),
    ):
        value = logs.get(key)
        if isinstance(value, (dict, list, tuple)):
            for i, part in enumerate(tf.nest.flatten(value)):
                yield f"{prefix}_{i}", part, collection, None
        elif value is not None:
            yield prefix, value, collection, None
    yield from _gradients(logs.get(GRADIENTS), model)
    for layer, inputs, outputs in logs.get(LAYER_OUTPUTS) or ():
        name = _text(layer)
        yield from _sides(f"{name}/inputs", inputs)
        yield from _sides(f"{name}/outputs", outputs)


def _gradients(gradients: Any, model: Any) -> Iterator[_Named]:
    if not gradients:
        return
    if not isinstance(gradients[0], tuple):
        variables = [] if model is None else model.trainable_variables
        gradients = zip(variables, gradients)
    for variable, gradient in gradients:
        if gradient is not None:
            name = _text(variable, "" if model is None else model.name)
            yield gradient_name(name), gradient, "gradients", name


def _sides(name: str, values: Any) -> Iterator[_Named]:
    flat: List[Any] = tf.nest.flatten(values)
    for one, value in numbered(name, flat) if flat else ():
        yield one, value, "layers", None


def _text(name: Any, model_name: str = "") -> str:
    """A name that may have come as text, as bytes, as a tensor of text or as a variable."""
    if isinstance(name, bytes):
        return name.decode()
    if isinstance(name, str):
        return name
    if hasattr(name, "path") or isinstance(name, tf.Variable):
        return variable_name(name, model_name)
    return name.numpy().decode() if tf.is_tensor(name) else str(name)
