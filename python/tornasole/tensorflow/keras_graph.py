"""Batches of Keras 2 with eager execution off: a batch is one run of a graph, and what is wanted is fetched in it.

======================  =================================================
tensor                  name
======================  =================================================
layer input, output     ``<layer>/inputs/<tensor>``, ``<layer>/outputs/<tensor>``; the first of these that is wanted
weight, bias            ``<layer>/weights/<variable>``
gradient                the tensor's, of an optimizer that was wrapped before the first batch
optimizer variable      the variable's
======================  =================================================

What is fed, such as the inputs of the model, cannot be fetched.
"""

import weakref
from typing import Any, Callable, Dict, Iterator, List, NamedTuple, Optional, Tuple

import tensorflow as tf

from tornasole.core.collection import CollectionKeys
from tornasole.modes import ModeKeys
from tornasole.tensorflow.graph_tensors import value_of_variable
from tornasole.tensorflow.optimizer_wraps import optimizer_variables

_FUNCTIONS = {ModeKeys.TRAIN: "train", ModeKeys.EVAL: "test", ModeKeys.PREDICT: "predict"}


class _Fetch(NamedTuple):
    name: str
    tensor: Any
    collections: Tuple[str, ...]


class _Added(NamedTuple):
    fetch: _Fetch
    is_new: bool  # nobody else fetched the tensor
    callback: Callable[[Any], None]
    other: Optional[Callable[[Any], None]]  # whose place it took


class GraphBatches:
    """The fetches that one hook adds to the functions of a model, from the begin of a batch to its end."""

    def __init__(self, hook: Any):
        self._hook = weakref.ref(hook)
        self._gradients: List[Any] = []
        self._values: Dict[int, Any] = {}  # of a variable, the tensor to fetch; made once
        self._names: Dict[str, str] = {}  # of a tensor of a layer, the name it was given first
        self._function: Any = None
        self._added: List[_Added] = []
        self._fetched: Dict[str, Any] = {}

    @staticmethod
    def is_on() -> bool:
        """Whether Keras runs graphs in sessions."""
        return not tf.compat.v1.executing_eagerly_outside_functions()

    def watch(self, optimizer: Any) -> None:
        """Learns which tensors are the gradients, when the optimizer makes them."""
        for attribute in ("get_gradients", "compute_gradients"):  # of Keras, of tf.compat.v1.train
            made = getattr(optimizer, attribute, None)
            if made is not None and self.is_on():
                setattr(optimizer, attribute, self._remembering(made))
                return

    def _remembering(self, made: Any) -> Any:
        def make_and_remember(*arguments, **keywords):
            result = made(*arguments, **keywords)
            gradients = [one[0] if isinstance(one, tuple) else one for one in result]
            self._gradients = [getattr(one, "values", one) for one in gradients if one is not None]
            return result

        return make_and_remember

    def begin(self, mode: ModeKeys) -> None:
        """Adds what is wanted in the open step to what the batch fetches."""
        self.end()
        hook = self._hook()
        model, kind = hook.model, _FUNCTIONS[mode]
        if model is None:
            return
        if getattr(model, f"{kind}_function", None) is None and hasattr(model, f"_make_{kind}_function"):
            getattr(model, f"_make_{kind}_function")()
        function = getattr(model, f"{kind}_function", None)
        if not hasattr(function, "fetch_callbacks"):
            hook._cannot_capture(model.name, f"its {kind} function cannot fetch tensors of the graph")
            return
        self._function = function
        for fetch in self._wanted(hook, model, mode):
            other = function.fetch_callbacks.get(fetch.tensor)
            callback = self._keeping(fetch.name, other)
            function.fetch_callbacks[fetch.tensor] = callback
            if other is None:
                function.fetches.append(fetch.tensor)
            self._added.append(_Added(fetch, other is None, callback, other))

    def _keeping(self, name: str, other: Optional[Callable[[Any], None]]) -> Callable[[Any], None]:
        def keep(value: Any) -> None:
            self._fetched[name] = value
            if other is not None:
                other(value)

        return keep

    def end(self) -> List[Tuple[str, Any, Tuple[str, ...]]]:
        """(name, value, collections) of what was fetched; what others fetch stays as they left it."""
        function, self._function = self._function, None
        all_added, self._added = self._added, []
        fetched, self._fetched = self._fetched, {}
        for added in all_added:
            tensor = added.fetch.tensor
            if added.is_new:
                place = next((i for i, one in enumerate(function.fetches) if one is tensor), None)
                if place is not None:
                    del function.fetches[place]
            if function.fetch_callbacks.get(tensor) is added.callback:
                del function.fetch_callbacks[tensor]
                if added.other is not None:
                    function.fetch_callbacks[tensor] = added.other
        fetches = [added.fetch for added in all_added]
        return [(fetch.name, fetched[fetch.name], fetch.collections) for fetch in fetches if fetch.name in fetched]

    def _wanted(self, hook: Any, model: Any, mode: ModeKeys) -> Iterator[_Fetch]:
        for name, variable in hook._model_weights().items():
            kind = hook._weight_collection(name.split("/weights/", 1)[1])
            if hook._is_wanted(name, kind):
                yield _Fetch(name, self._value(variable), (kind,))
        yield from self._wanted_of_layers(hook, model)
        if mode is not ModeKeys.TRAIN:
            return
        for tensor in self._gradients:
            if hook._is_wanted(tensor.name, CollectionKeys.GRADIENTS):
                yield _Fetch(tensor.name, tensor, (CollectionKeys.GRADIENTS,))
        for name, variable in optimizer_variables(hook._optimizers.known(model), hook._optimizers.added()):
            if hook._is_wanted(name, CollectionKeys.OPTIMIZER_VARIABLES):
                yield _Fetch(name, self._value(variable), (CollectionKeys.OPTIMIZER_VARIABLES,))

    def _wanted_of_layers(self, hook: Any, model: Any) -> Iterator[_Fetch]:
        outputs = {id(tensor) for tensor in tf.nest.flatten(getattr(model, "outputs", None) or [])}
        for layer in model.layers:
            for side, attribute in (("inputs", "input"), ("outputs", "output")):
                try:
                    tensors = tf.nest.flatten(getattr(layer, attribute))
                except (AttributeError, RuntimeError, ValueError):  # never called, or more than once
                    continue
                for tensor in tensors:
                    if not tf.is_tensor(tensor) or tensor.op.type in ("Placeholder", "PlaceholderWithDefault"):
                        continue
                    name = f"{layer.name}/{side}/{tensor.name}"
                    if self._names.get(tensor.name, name) != name:
                        continue
                    kinds = (CollectionKeys.LAYERS,) + ((CollectionKeys.OUTPUTS,) if id(tensor) in outputs else ())
                    if any(hook._is_wanted(name, kind, layer.name if kind == "layers" else None) for kind in kinds):
                        self._names[tensor.name] = name
                        yield _Fetch(name, tensor, kinds)

    def _value(self, variable: Any) -> Any:
        if id(variable) not in self._values:
            self._values[id(variable)] = value_of_variable(variable)
        return self._values[id(variable)]
