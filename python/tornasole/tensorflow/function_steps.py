"""Steps of a custom loop that the program has compiled: its tape is inside a function of TensorFlow.

While such a function is traced, nothing has a value; what the tape and the layers handle is noted as tensors of the
graph. From then on each call of the function is a step. At a due one the part of the graph that leads to what is wanted
runs first, as a function of its own with the same arguments; then the program's own runs, as it would have. A part that
changes variables has them put back. One with other effects, as taking a batch off a data set, is not run at all.

The loss is taken from what the function returns, if that is among it: then it costs nothing.
"""

import functools
import re
import types
import weakref
from typing import Any, Callable, Dict, FrozenSet, Iterator, List, NamedTuple, Optional, Set, Tuple

import tensorflow as tf
from tensorflow.python.eager import wrap_function
from tensorflow.python.framework import op_def_registry

from tornasole.core.collection import CollectionKeys
from tornasole.core.guard import guard
from tornasole.tensorflow.step_recorder import Tap
from tornasole.tensorflow.variable_states import VariableStates

_ATTRIBUTE = "_tornasole_step"  # of the graph of a function that is a step
LOSS = Tap("loss", CollectionKeys.LOSSES, "loss")
# Operations with a state. Random numbers that are no variable's are drawn by each function for itself.
_HARMLESS = re.compile(
    "ReadVariableOp|VarHandleOp|VarIsInitializedOp|VariableShape|ResourceGather|Random|Parameterized|TruncatedNormal|"
    "Multinomial|(Stateful)?PartitionedCall|If|While|Case|Placeholder|Assert|LookupTable(Find|Size)|HashTable"
)
_CHANGES_VARIABLES = re.compile(
    "Assign|Resource(Apply|Sparse|Scatter|Strided)|Rng|Stateful(Uniform|StandardNormal|TruncatedNormal|Random)"
)


class Given(NamedTuple):
    """What a tape gave out: with values, or as tensors of a graph."""

    loss: Any
    weights: Dict[str, Any]  # name -> variable
    taps: List[Tuple[Tap, Any]]
    out_of_reach: List[Tap]


class _GraphPart:
    """A function that gives some tensors of the graph of another, for the same arguments."""

    def __init__(self, graph: Any, wanted: Dict[str, Any]):
        # What is read of the function whose graph it is.
        whole = types.SimpleNamespace(
            graph=graph, _func_graph=graph, _variable_holder=wrap_function.VariableHolder(share_variables=True)
        )
        self._function = wrap_function.WrappedFunction.prune(whole, graph.inputs, wanted)
        effects = {name for name in _stateful(self._function.graph) if not _HARMLESS.match(name)}
        others = sorted(name for name in effects if not _CHANGES_VARIABLES.match(name))
        if others:
            raise ValueError(f"its function has effects that cannot be undone ({', '.join(others)})")
        self._states = VariableStates(_variables_of(graph)) if effects else None

    def __call__(self, inputs: Any) -> Dict[str, Any]:
        if self._states is None:
            return self._run(inputs)
        before = self._states.note()
        try:
            return self._run(inputs)
        finally:
            self._states.restore(before)

    def _run(self, inputs: Any) -> Dict[str, Any]:
        return self._function._call_flat(list(inputs), self._function.captured_inputs)


def _stateful(graph: Any) -> Iterator[str]:
    """The kinds of operations with a state that a graph runs, those inside its functions included."""
    definition = graph.as_graph_def()
    library = {function.signature.name: function.node_def for function in definition.library.function}
    seen: Set[str] = set()
    left = [definition.node]
    while left:
        for node in left.pop():
            kind = op_def_registry.get(node.op)
            if kind is not None and kind.is_stateful:
                yield node.op
            called = [node.op] + [one.name for v in node.attr.values() for one in (v.func, *v.list.func)]
            new = [name for name in called if name in library and name not in seen]
            seen.update(new)
            left += [library[name] for name in new]


def _variables_of(graph: Any) -> List[Any]:
    variables = list(graph.variables)
    handles = {id(variable.handle) for variable in variables}
    if any(held.dtype == tf.resource and id(held) not in handles for held in graph.external_captures):
        raise ValueError("its function may change what is no variable")
    return variables


class FunctionStep:
    """The step that one traced function is, for the tapes of one hook."""

    def __init__(self, tapes: Any):
        self._tapes = weakref.ref(tapes)
        self._weights: Dict[str, Any] = {}
        self._taps: Dict[str, Tuple[Tap, Any]] = {}  # name -> what it is, the tensor
        self._out_of_reach: List[Tap] = []
        self._parts: Dict[FrozenSet[str], Any] = {}  # names of tensors -> what gives them; the reason if nothing can

    def is_of(self, tapes: Any) -> bool:
        return self._tapes() is tapes

    def add(self, given: Given) -> None:
        """Several tapes of one function are one step; the loss is that of the first."""
        self._weights = {**given.weights, **self._weights}
        self._out_of_reach += given.out_of_reach
        loss = [(LOSS, given.loss)] if tf.is_tensor(given.loss) else []
        for tap, tensor in loss + given.taps:
            self._taps.setdefault(tap.name, (tap, tensor))

    def run(self, graph: Any, inputs: Any, own: Callable[[], Any]) -> Any:
        """Calls the program's own function; whatever is due is saved."""
        tapes = self._tapes()
        hook = None if tapes is None else tapes.begin_call()
        if hook is None:
            return own()
        place = self._place_of_loss(graph)
        self._save_before(hook, graph, inputs, place is not None)
        try:
            result = own()
        except BaseException:
            hook._fail_step()
            raise
        if place is not None:
            self._save_returned_loss(hook, result, place)
        return result

    def _save_before(self, hook: Any, graph: Any, inputs: Any, is_loss_returned: bool) -> None:
        try:
            save_weights(hook, self._weights)
            wanted = frozenset(name for name, (tap, _) in self._taps.items() if hook._is_wanted(*tap))
            # Presets run nothing at every step.
            if is_loss_returned or (hook._is_of_preset and wanted == {LOSS.name}):
                wanted -= {LOSS.name}
            for name, value in self._values(hook, graph, inputs, wanted).items():
                save_tap(hook, self._taps[name][0], value)
            tell_out_of_reach(hook, self._out_of_reach)
        except Exception as error:
            guard.handle(error, "a step inside a function of TensorFlow")

    def _values(self, hook: Any, graph: Any, inputs: Any, names: FrozenSet[str]) -> Dict[str, Any]:
        if not names:
            return {}
        if names not in self._parts:
            try:
                self._parts[names] = _GraphPart(graph, {name: self._taps[name][1] for name in names})
            except Exception as error:
                self._parts[names] = f"it is inside a function of TensorFlow: {error}"
        part = self._parts[names]
        if not isinstance(part, str):
            return part(inputs)
        for name in sorted(names):
            hook._cannot_capture(name, part)
        return {}

    def _place_of_loss(self, graph: Any) -> Optional[int]:
        """Where among what the function returns the loss is."""
        loss = self._taps[LOSS.name][1] if LOSS.name in self._taps else None
        for place, output in enumerate(graph.outputs):
            while output is not loss and output.op.type == "Identity":
                output = output.op.inputs[0]
            if output is loss:
                return place
        return None

    def _save_returned_loss(self, hook: Any, result: Any, place: int) -> None:
        try:
            returned = [value for value in tf.nest.flatten(result, expand_composites=True) if value is not None]
            if hook._is_wanted(*LOSS):
                save_tap(hook, LOSS, returned[place])
        except Exception as error:
            guard.handle(error, "the loss of a function of TensorFlow")


def save_tap(hook: Any, tap: Tap, value: Any) -> None:
    """Saves what a tape gave out, indexed slices as the whole they are of."""
    hook._save_as(tap.name, tf.convert_to_tensor(value) if isinstance(value, tf.IndexedSlices) else value, tap.collection)
    if tap is LOSS and hook._watcher is not None:
        hook._watcher.loss(value)


def save_weights(hook: Any, weights: Dict[str, Any]) -> None:
    """Saves those of these variables that are wanted, and what the optimizers hold; describes the model."""
    for name, variable in weights.items():
        kind = hook._weight_collection(name)
        if hook._is_wanted(name, kind):
            hook._save_as(name, variable, kind)
    hook._save_optimizers()
    hook._describe_loop(weights)


def tell_out_of_reach(hook: Any, taps: List[Tap]) -> None:
    """Says which tensors are wanted and cannot be had."""
    for tap in taps:
        if hook._is_wanted(*tap):
            hook._cannot_capture(tap.name, "it is inside a loop or another function of TensorFlow")


def note(tapes: Any, given: Given) -> None:
    """The function that is being traced gave this to one of the tapes: its calls are steps from now on."""
    graph = tf.compat.v1.get_default_graph()
    step = getattr(graph, _ATTRIBUTE, None)
    if step is None or not step.is_of(tapes):
        step = FunctionStep(tapes)
        setattr(graph, _ATTRIBUTE, step)
    step.add(given)
    _watch_calls()


def is_nested() -> bool:
    """Whether the function that is being traced is a part of another one, which alone is called."""
    outer = getattr(tf.compat.v1.get_default_graph(), "outer_graph", None)
    return getattr(outer, "outer_graph", None) is not None


def _watch_calls() -> None:
    """All functions of TensorFlow are called through here, from the first on that is a step."""
    kind = wrap_function.WrappedFunction.__mro__[1]
    own_call = kind._call_flat
    if hasattr(own_call, _ATTRIBUTE):
        return

    @functools.wraps(own_call)
    def call_flat(function, inputs, *arguments, **options):
        step = getattr(function.graph, _ATTRIBUTE, None)
        if step is None or not tf.executing_eagerly():
            return own_call(function, inputs, *arguments, **options)
        return step.run(function.graph, inputs, lambda: own_call(function, inputs, *arguments, **options))

    setattr(call_flat, _ATTRIBUTE, True)
    kind._call_flat = call_flat
