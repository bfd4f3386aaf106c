"""Batches of Keras 2 with eager execution off: a batch is one run of a graph, and what is wanted is fetched in it.

======================  =================================================
tensor                  name
======================  =================================================
layer input, output     ``<layer>/inputs/<tensor>``, ``<layer>/outputs/<tensor>``; the first of these that is wanted
weight, bias            ``<layer>/weights/<variable>``
gradient                the tensor's, of an optimizer that was wrapped before the first batch; of every replica
optimizer variable      the variable's
model input             ``inputs``, if that collection is named: ``all`` alone does not take in what is fed
labels, predictions     ``labels``, ``predictions``, if ``outputs`` is named; else the last layer's output is in it
added to a collection   as above what is a layer's, others by their own name
======================  =================================================

What is fed is not fetched but taken from the call of the function. Of a model on several devices the layers of every
replica are had, each by the names of its own tensors; of what the replicas are fed and predict, the first one's.
"""

import re
import weakref
from typing import Any, Callable, Dict, FrozenSet, Iterator, List, NamedTuple, Optional, Set, Tuple

import numpy
import tensorflow as tf

from tornasole import _engine
from tornasole.core.collection import CollectionKeys
from tornasole.core.guard import guard
from tornasole.modes import ModeKeys
from tornasole.tensorflow.graph_runs import GraphRun, layer_tensors
from tornasole.tensorflow.graph_tensors import only_computes, value_of_variable
from tornasole.tensorflow.keras_names import numbered
from tornasole.tensorflow.optimizer_wraps import optimizer_variables
from tornasole.tensorflow.tf_values import local_values

_FUNCTIONS = {ModeKeys.TRAIN: "train", ModeKeys.EVAL: "test", ModeKeys.PREDICT: "predict"}


class _Fetch(NamedTuple):
    name: str
    tensor: Any
    collections: Tuple[str, ...]


class _Added(NamedTuple):
    fetch: _Fetch
    is_new: bool  # nobody else fetched the tensor
    callback: Optional[Callable[[Any], None]]
    other: Optional[Callable[[Any], None]]  # whose place it took


_watched_classes: Dict[type, type] = {}


def _watched_class(of: type) -> type:
    """A subclass of the class of a model's functions, whose instances tell what they are called with."""

    class WatchedFunction(of):
        def __call__(self, inputs):
            tell = self.__dict__.get("_tornasole_tell")
            if tell is not None:
                tell(inputs)
            return super().__call__(inputs)

    WatchedFunction.__name__, WatchedFunction.__qualname__ = of.__name__, of.__qualname__
    return WatchedFunction


class GraphBatches:
    """The fetches that one hook adds to the functions of a model, from the begin of a batch to its end."""

    def __init__(self, hook: Any):
        self._hook = weakref.ref(hook)
        self._gradients: List[Any] = []
        self._runs: Dict[str, GraphRun] = {}  # by the kind of step
        self._values: Dict[int, Any] = {}  # of a variable, the tensor to fetch; made once
        self._names: Dict[str, str] = {}  # of a tensor of a layer, the name it was given first
        self._function: Any = None
        self._added: List[_Added] = []
        self._fetched: Dict[str, Any] = {}
        self._fed: Dict[int, Tuple[str, str]] = {}  # of a placeholder, name and collection
        self._own_class: Optional[type] = None  # of the function that is watched
        self._given: List[_Fetch] = []  # by the script, for the next step

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
            self._gradients += [getattr(one, "values", one) for one in gradients if one is not None]
            self._keep_out_of_collections()
            return result

        return make_and_remember

    def _keep_out_of_collections(self) -> None:
        """A pattern that means the variables of the optimizer, ``Adam``, does not mean ``Adam/gradients/dense``."""
        hook = self._hook()
        scopes = {one.name.partition("gradients/")[0] for one in self._gradients} - {""}
        known = [one.name.removeprefix(scope) for one in self._gradients for scope in scopes]
        for collection in hook.collection_manager.collections.values() if hook is not None else ():
            patterns = [] if collection.name in vars(CollectionKeys).values() else collection._include_regex
            if patterns and not any(_engine.finds_match(pattern, name) for pattern in patterns for name in known):
                for scope in scopes:
                    collection.exclude(f"^{re.escape(scope)}gradients/")

    def keep(self, name: str, tensor: Any, collections: List[str]) -> None:
        """A tensor or variable of the graph, to be fetched in the next step."""
        self._given.append(_Fetch(name, tensor, tuple(collections)))

    def begin(self, mode: ModeKeys) -> None:
        """Adds what is wanted in the open step to what the batch fetches."""
        self.end()
        hook = self._hook()
        model, kind = hook.model, _FUNCTIONS[mode]
        if model is None:
            return
        run = GraphRun.of(model, kind, self._runs.get(kind))
        if run is None:
            hook._cannot_capture(model.name, f"its {kind} function cannot fetch tensors of the graph")
            return
        self._runs[kind], self._function = run, run.function
        wanted = list(self._wanted(hook, run, mode))
        self._given += _of_collections(hook, {id(fetch.tensor) for fetch in wanted})
        for fetch in [*wanted, *self._wanted_of_script(hook, run.function)]:
            self._add(fetch)
        self._watch_feeds(hook, run.models[0], mode)

    def _add(self, fetch: _Fetch) -> None:
        function = self._function
        other = function.fetch_callbacks.get(fetch.tensor)
        callback = self._keeping(fetch.name, other)
        function.fetch_callbacks[fetch.tensor] = callback
        if other is None:
            function.fetches.append(fetch.tensor)
        self._added.append(_Added(fetch, other is None, callback, other))

    def _watch_feeds(self, hook: Any, model: Any, mode: ModeKeys) -> None:
        """What the call of the function hands over is looked at, if it is wanted."""
        sides = [("inputs", getattr(model, "_feed_inputs", []), CollectionKeys.INPUTS)]
        if mode is not ModeKeys.PREDICT:
            sides.append(("labels", getattr(model, "_feed_targets", []), CollectionKeys.OUTPUTS))
        for side, placeholders, collection in sides:
            if placeholders and _is_named(hook, collection):
                for name, placeholder in numbered(side, list(placeholders)):
                    if hook._is_wanted(name, collection):
                        self._fed[id(placeholder)] = name, collection
        if self._fed:
            kind = type(self._function)
            if kind not in _watched_classes:
                _watched_classes[kind] = _watched_class(kind)
            self._own_class, self._function.__class__ = kind, _watched_classes[kind]
            self._function.__dict__["_tornasole_tell"] = self._called_with

    def _called_with(self, inputs: Any) -> None:
        try:
            for placeholder, value in zip(self._function.inputs, tf.nest.flatten(inputs, expand_composites=True)):
                name, collection = self._fed.get(id(placeholder), (None, None))
                if name is None or value is None:
                    continue
                if tf.is_tensor(value):  # of a data set: it is made in the run
                    self._add(_Fetch(name, value, (collection,)))
                else:
                    array = numpy.array(value, dtype=placeholder.dtype.as_numpy_dtype)
                    self._added.append(_Added(_Fetch(name, None, (collection,)), False, None, None))
                    self._fetched[name] = array
        except Exception as error:
            guard.handle(error, "what the model is fed")

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
        own_class, self._own_class = self._own_class, None
        self._fed = {}
        if own_class is not None:
            function.__class__ = own_class
            function.__dict__.pop("_tornasole_tell", None)
        for added in reversed(all_added):
            tensor = added.fetch.tensor
            if tensor is None:
                continue
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

    def _wanted(self, hook: Any, run: GraphRun, mode: ModeKeys) -> Iterator[_Fetch]:
        for name, variable in hook._model_weights().items():
            kind = hook._weight_collection(name.split("/weights/", 1)[1])
            if hook._is_wanted(name, kind):
                yield _Fetch(name, self._value(variable), (kind,))
        for model in run.models:
            yield from self._wanted_of_layers(hook, model, run.running)
        if _is_named(hook, CollectionKeys.OUTPUTS):
            for name, tensor in numbered("predictions", _outputs(run.models[0])):
                if hook._is_wanted(name, CollectionKeys.OUTPUTS):
                    yield _Fetch(name, tensor, (CollectionKeys.OUTPUTS,))
        if mode is not ModeKeys.TRAIN:
            return
        for tensor in self._gradients:
            # Those of a function that was made before the model was compiled anew run no more.
            if tensor.op.name in run.running and hook._is_wanted(tensor.name, CollectionKeys.GRADIENTS):
                yield _Fetch(tensor.name, tensor, (CollectionKeys.GRADIENTS,))
        for name, variable in optimizer_variables(hook._optimizers.known(hook.model), hook._optimizers.added()):
            if hook._is_wanted(name, CollectionKeys.OPTIMIZER_VARIABLES):
                yield _Fetch(name, self._value(variable), (CollectionKeys.OPTIMIZER_VARIABLES,))

    def _wanted_of_script(self, hook: Any, function: Any) -> Iterator[_Fetch]:
        given, self._given = self._given, []
        fed = frozenset(tensor.name for tensor in function.inputs)
        # These have a value: Keras sees to it that they are initialized.
        has_value = frozenset(v.handle.op.name for variable in hook.model.variables for v in local_values(variable))
        for fetch in given:
            tensor = fetch.tensor
            if isinstance(tensor, tf.Variable):
                is_initialized = tf.compat.v1.keras.backend.get_session().run(tensor.is_initialized())
                tensor = self._value(tensor) if is_initialized else tensor.initial_value
                has_value |= {tensor.op.name} if is_initialized else set()
            if only_computes(tensor.op, has_value, fed, may_read=False):
                yield fetch._replace(tensor=tensor)
            else:
                hook._cannot_capture(fetch.name, "its value cannot be worked out beside a batch without doing more")

    def _wanted_of_layers(self, hook: Any, model: Any, running: FrozenSet[str]) -> Iterator[_Fetch]:
        is_named = _is_named(hook, CollectionKeys.OUTPUTS)  # then they are called predictions
        outputs = set() if is_named else {id(tensor) for tensor in _outputs(model)}
        added: Dict[int, Tuple[str, ...]] = {}  # by the script, to which collections
        for fetch in _of_collections(hook, set()):
            added[id(fetch.tensor)] = added.get(id(fetch.tensor), ()) + fetch.collections
        for layer, side, tensor in layer_tensors(model):
            name = f"{layer.name}/{side}/{tensor.name}"
            if tensor.op.name not in running or self._names.get(tensor.name, name) != name:
                continue
            kinds = (CollectionKeys.LAYERS,) + ((CollectionKeys.OUTPUTS,) if id(tensor) in outputs else ())
            asked = added.get(id(tensor), ())
            if asked or any(hook._is_wanted(name, kind, layer.name if kind == "layers" else None) for kind in kinds):
                self._names[tensor.name] = name
                yield _Fetch(name, tensor, kinds + asked)

    def _value(self, variable: Any) -> Any:
        if id(variable) not in self._values:
            self._values[id(variable)] = value_of_variable(variable)
        return self._values[id(variable)]


def _outputs(model: Any) -> List[Any]:
    return [tensor for tensor in tf.nest.flatten(getattr(model, "outputs", None) or []) if tf.is_tensor(tensor)]


def _of_collections(hook: Any, but: Set[int]) -> Iterator[_Fetch]:
    """The tensors of the graph that the script added to collections which are due, without those."""
    for collection in hook.collection_manager.collections.values():
        for name, tensor in collection._objects() if collection.name in hook._due else ():
            if isinstance(tensor, tf.Tensor) and id(tensor) not in but:
                yield _Fetch(name, tensor, (collection.name,))


def _is_named(hook: Any, collection: str) -> bool:
    """Whether a collection was asked for by its name, not with all others."""
    return collection in hook.include_collections and not hook.save_all
