"""What passes through a model while one of its steps is run, or traced.

A recorder that is active in a thread is told of every layer that is called, of every gradient that a tape gives out and
of what every optimizer is about to use, unscaled and clipped, in that thread. Nothing hangs on the layers: the call of
all layers, the gradient of all tapes and the update of all optimizers are replaced while a recorder is active, and put
back after it. On PyTorch there are no tapes: gradients are what optimizers are given.
"""

import contextlib
import threading
from typing import Any, Callable, Dict, List, NamedTuple, Optional, Set, Tuple

import numpy
import tensorflow as tf

from tornasole.tensorflow.keras_names import gradient_name, named_layers, numbered, variable_name, weight_names
from tornasole.tensorflow.tf_values import is_of_torch, is_symbolic

try:
    from keras.src.backend.common.symbolic_scope import in_symbolic_scope
except ImportError:  # before Keras 3, which calls layers to learn the shapes of what they give

    def in_symbolic_scope() -> bool:
        return False


OPTIMIZER_GRADIENT = "optimizer_gradient/"
_active = threading.local()
_lock = threading.Lock()
_users = 0
_layer_call = _tape_gradient = None
_replaced: List[Tuple[Any, str, Any]] = []  # class, method and what it was
_UPDATES = ("_backend_update_step", "_internal_apply_gradients")  # of Keras 3, of Keras 2


class Tap(NamedTuple):
    """A tensor that can be saved: its name, the collection it belongs to by its kind, and what that is asked for."""

    name: str
    collection: str
    asked: str


def plain_call(function):
    """Marks a function that autograph calls as it is, in the context there is."""
    function.autograph_info__ = {}
    return function


@plain_call
def _recorded_call(layer, *arguments, **keywords):
    result = _layer_call(layer, *arguments, **keywords)
    recorder = getattr(_active, "recorder", None)
    if recorder is not None and not in_symbolic_scope():
        recorder.layer_called(layer, arguments, result)
    return result


@plain_call
def _recorded_gradient(tape, target, sources, *arguments, **keywords):
    result = _tape_gradient(tape, target, sources, *arguments, **keywords)
    recorder = getattr(_active, "recorder", None)
    if recorder is not None:
        recorder.gradients_given(sources, result)
    return result


def _recorded_update(update: Callable, is_pairs: bool) -> Callable:
    def update_and_tell(optimizer, first, *rest, **keywords):
        first = list(first) if is_pairs else first
        recorder = getattr(_active, "recorder", None)
        if recorder is not None:
            recorder.optimizer_uses(optimizer, first if is_pairs else list(zip(first, rest[0])))
        return update(optimizer, first, *rest, **keywords)

    return plain_call(update_and_tell)


def _recorded_apply(apply: Callable) -> Callable:
    def tell_and_apply(optimizer, gradients, variables=None):
        recorder = getattr(_active, "recorder", None)
        if recorder is not None and any(is_of_torch(gradient) for gradient in gradients):
            # What uses them may change them.
            kept = [gradient.detach().clone() if is_of_torch(gradient) else gradient for gradient in gradients]
            recorder.gradients_given(optimizer._trainable_variables if variables is None else variables, kept)
        return apply(optimizer, gradients, variables)

    return tell_and_apply


def _all_optimizers() -> Set[type]:
    found, left = set(), list(tf.keras.optimizers.Optimizer.__mro__)
    while left:
        kind = left.pop()
        if kind is not object and kind not in found:
            found.add(kind)
            left += kind.__subclasses__() if kind.__module__.partition(".")[0] != "tensorflow" else ()
    return found


def _replace(kind: type, name: str, method: Callable) -> None:
    _replaced.append((kind, name, vars(kind)[name]))
    setattr(kind, name, method)


@contextlib.contextmanager
def recording(recorder: "Recorder"):
    """The recorder is active in this thread."""
    outer = getattr(_active, "recorder", None)
    start(recorder)
    try:
        yield
    finally:
        stop(outer)


def start(recorder: "Recorder") -> None:
    """Makes a recorder the active one of this thread, until :func:`stop`."""
    global _users, _layer_call, _tape_gradient
    with _lock:
        _users += 1
        if _users == 1:
            _layer_call, _tape_gradient = tf.keras.layers.Layer.__call__, tf.GradientTape.gradient
            _replace(tf.keras.layers.Layer, "__call__", _recorded_call)
            _replace(tf.GradientTape, "gradient", _recorded_gradient)
            for kind in _all_optimizers():
                for name in _UPDATES:
                    if name in vars(kind):
                        _replace(kind, name, _recorded_update(vars(kind)[name], name == _UPDATES[1]))
                if tf.keras.backend.backend() == "torch" and "apply" in vars(kind):
                    _replace(kind, "apply", _recorded_apply(vars(kind)["apply"]))
    _active.recorder = recorder


def stop(outer: Optional["Recorder"] = None) -> None:
    """Ends what :func:`start` began; ``outer`` is active again."""
    global _users
    _active.recorder = outer
    with _lock:
        _users -= 1
        if _users == 0:
            while _replaced:
                setattr(*_replaced.pop())


class Recorder:
    """The tensors of one step of a model, as they come."""

    def __init__(self, model: Any):
        self._model = model
        self._names = {id(layer): name for name, layer, _ in named_layers(model)}
        self._graph = None if tf.executing_eagerly() else tf.compat.v1.get_default_graph()
        self._calls: Dict[str, Tuple[List[Any], List[Any]]] = {}
        self._gradients: Dict[str, Any] = {}
        self._used: Dict[str, Any] = {}  # gradients, by an optimizer
        self._inputs: Any = None
        self._predictions: Any = None
        self.out_of_reach: List[Tap] = []
        self.call_order: List[str] = []
        self.optimizers: List[Any] = []  # that worked

    def layer_called(self, layer: Any, arguments: Tuple, result: Any) -> None:
        if layer is self._model:
            self._inputs, self._predictions = arguments[0] if arguments else None, result
            return
        name = self._names.get(id(layer))
        if name is None:
            return
        if name not in self._calls:
            self._calls[name] = [], []
            self.call_order.append(name)
        inputs, outputs = self._calls[name]
        inputs += _tensors(arguments)
        outputs += _tensors(result)

    def gradients_given(self, sources: Any, gradients: Any) -> None:
        flat = tf.nest.flatten(sources)
        for source, gradient in zip(flat, gradients if isinstance(gradients, (list, tuple)) else [gradients]):
            if gradient is not None and (hasattr(source, "path") or isinstance(source, tf.Variable)):
                self._gradients[variable_name(source, self._model.name)] = gradient

    def optimizer_uses(self, optimizer: Any, pairs: List[Tuple[Any, Any]]) -> None:
        if not any(optimizer is known for known in self.optimizers):
            self.optimizers.append(optimizer)
        for gradient, variable in pairs:
            if gradient is not None:
                kept = gradient.detach().clone() if is_of_torch(gradient) else gradient
                self._used[variable_name(variable, self._model.name)] = kept

    def taps(self, inputs: Any = None, labels: Any = None) -> List[Tuple[Tap, Any]]:
        """All tensors of the step that can be had, each with its name; others stand in ``out_of_reach``.

        ``inputs`` and ``labels`` of the step, where they are known; otherwise what the model was called with.
        """
        found = []
        given = self._inputs if inputs is None else inputs
        for name, values in (("inputs", given), ("labels", labels), ("predictions", self._predictions)):
            collection = "inputs" if name == "inputs" else "outputs"
            found += [(Tap(n, collection, n), v) for n, v in _named_structure(name, values)]
        for layer, (ins, outs) in self._calls.items():
            for side, values in (("inputs", ins), ("outputs", outs)):
                found += [(Tap(n, "layers", n), v) for n, v in numbered(f"{layer}/{side}", values) if values]
        found += [(Tap(gradient_name(v), "gradients", v), g) for v, g in self._gradients.items()]
        if self._used:
            names = {variable_name(v, self._model.name): name for name, v in weight_names(self._model).items()}
            used = [(OPTIMIZER_GRADIENT + names.get(v, v), g) for v, g in self._used.items()]
            found += [(Tap(name, "optimizer_gradients", name), gradient) for name, gradient in used]
        reachable = [(tap, self._reachable(tap, value)) for tap, value in found]
        return [(tap, value) for tap, value in reachable if value is not None]

    def _reachable(self, tap: Tap, value: Any) -> Any:
        if isinstance(value, tf.IndexedSlices):
            value = value.values
        elif isinstance(value, tf.SparseTensor):
            value = tf.sparse.to_dense(value)
        elif isinstance(value, tf.RaggedTensor):
            value = value.to_tensor()
        inside = is_symbolic(value) if self._graph is None else getattr(value, "graph", self._graph) is not self._graph
        if inside:
            self.out_of_reach.append(tap)
            return None
        return value


class Calls:
    """All calls of layers in a step, of whichever model: the one that is trained is known afterwards."""

    def __init__(self) -> None:
        self._calls: List[Tuple[Any, Tuple, Any]] = []

    def layer_called(self, layer: Any, arguments: Tuple, result: Any) -> None:
        self._calls.append((layer, arguments, result))

    def gradients_given(self, sources: Any, gradients: Any) -> None:
        """The tape tells of them itself."""

    def optimizer_uses(self, optimizer: Any, pairs: List[Tuple[Any, Any]]) -> None:
        """It is known from its first use on."""

    def model_with(self, variables: List[Any]) -> Any:
        """The largest model that was called and has the first of these variables; None if there is none."""
        wanted = getattr(variables[0], "value", None) if variables else None
        found = [
            layer
            for layer, _, _ in self._calls
            if isinstance(layer, tf.keras.Model)
            and any(one is variables[0] or getattr(one, "value", self) is wanted for one in layer.trainable_variables)
        ]
        return max(found, key=lambda model: len(model.trainable_variables), default=None)

    def of_model(self, model: Any) -> "Recorder":
        """What a recorder of this model would have seen."""
        recorder = Recorder(model)
        for call in self._calls:
            recorder.layer_called(*call)
        return recorder


def _tensors(structure: Any) -> List[Any]:
    kinds = (tf.IndexedSlices, tf.SparseTensor, tf.RaggedTensor, numpy.ndarray)
    return [v for v in tf.nest.flatten(structure) if tf.is_tensor(v) or isinstance(v, kinds) or is_of_torch(v)]


def _named_structure(name: str, structure: Any) -> List[Tuple[str, Any]]:
    if structure is None:
        return []
    values = _tensors(structure)
    if not isinstance(structure, (dict, list, tuple)):
        return [(name, value) for value in values]
    return [(f"{name}_{i}", value) for i, value in enumerate(values)]
