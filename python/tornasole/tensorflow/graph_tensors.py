"""The tensors of a graph of TensorFlow 1 that can be fetched beside what a program fetches itself.

Fetching a tensor runs its operation, and an operation may do something: assign a variable, take a batch off a queue,
draw a random number. So beside the program's own fetches only two kinds of tensors are fetched: those of operations
that those need and that run in any case, and the values of variables.
"""

from typing import Any, Dict, FrozenSet, Iterable, List, NamedTuple, Optional, Set, Tuple

import tensorflow as tf

_v1 = tf.compat.v1


class GraphTensor(NamedTuple):
    """A tensor under the name it is saved by, and the collection it belongs to by its kind."""

    name: str
    tensor: Any
    collection: Optional[str]
    is_variable: bool


def value_of_variable(variable: Any) -> Any:
    """The tensor to fetch for a variable; an operation that is in the graph already, where there is one."""
    element = getattr(variable, "_graph_element", None)
    return element if element is not None else variable.value()


class GraphTensors:
    """All tensors of one graph that may be fetched."""

    def __init__(self, graph: Any):
        self._graph = graph
        self._by_name: Dict[str, GraphTensor] = {}
        self._running: Dict[Tuple, FrozenSet[str]] = {}

    def add_variable(self, variable: Any, collection: str) -> None:
        """A variable is saved by its own name, whatever operation reads it."""
        if variable.name not in self._by_name:
            tensor = value_of_variable(variable)
            self._by_name[variable.name] = GraphTensor(variable.name, tensor, collection, True)

    def add_tensor(self, tensor: Any, collection: Optional[str]) -> None:
        if isinstance(tensor, tf.IndexedSlices):
            tensor = tensor.values
        if tensor.name not in self._by_name or collection is not None:
            self._by_name[tensor.name] = GraphTensor(tensor.name, tensor, collection, False)

    def add_all_others(self) -> None:
        """Every other tensor that can be fetched and has numbers in it."""
        reads = {entry.tensor.name for entry in self._by_name.values() if entry.is_variable}
        for operation in self._graph.get_operations():
            if not self._graph.is_fetchable(operation):
                continue
            for tensor in operation.outputs:
                if tensor.dtype.base_dtype in (tf.resource, tf.variant, tf.string) or tensor.name in reads:
                    continue
                if tensor.name not in self._by_name:
                    self._by_name[tensor.name] = GraphTensor(tensor.name, tensor, None, False)

    def all(self) -> Iterable[GraphTensor]:
        return self._by_name.values()

    def that_run(self, tensors: List[GraphTensor], fetches: Any, feeds: Any) -> List[GraphTensor]:
        """Those of them that can be fetched along with these fetches and feeds of the program."""
        operations = _operations(self._graph, fetches)
        fed = frozenset(getattr(key, "name", str(key)) for key in (feeds or {}))
        key = (frozenset(operation.name for operation in operations), fed)
        if key not in self._running:
            self._running[key] = frozenset(_ancestors(operations, fed))
        running = self._running[key]
        return [t for t in tensors if t.tensor.name not in fed and (t.is_variable or t.tensor.op.name in running)]


def is_computable(tensor: Any, running: Iterable[str], unfed: Iterable[Any]) -> bool:
    """Whether a tensor has a value when these operations run, by name, and these placeholders are not fed.

    What the running operations need has its value; whatever else the tensor needs must not end in such a placeholder.
    """
    seen = [tensor]
    for needed in seen:
        if needed.op.name in running:
            continue
        if not needed.op.inputs and any(needed is placeholder for placeholder in unfed):
            return False
        seen += [given for given in needed.op.inputs if not any(given is known for known in seen)]
    return True


def _operations(graph: Any, fetches: Any) -> Set[Any]:
    """The operations of whatever nested thing a program fetches."""
    found = set()
    for fetch in tf.nest.flatten(fetches, expand_composites=True):
        if isinstance(fetch, (str, bytes)):
            fetch = graph.as_graph_element(fetch)
        elif not isinstance(fetch, (tf.Operation, tf.Tensor)):
            fetch = graph.as_graph_element(fetch, allow_tensor=True, allow_operation=True)
        found.add(fetch if isinstance(fetch, tf.Operation) else fetch.op)
    return found


def _ancestors(operations: Iterable[Any], fed: FrozenSet[str]) -> Set[str]:
    """The names of all operations that run for these; what only a fed tensor would need does not."""
    seen: Set[str] = set()
    waiting = list(operations)
    while waiting:
        operation = waiting.pop()
        if operation.name in seen:
            continue
        seen.add(operation.name)
        waiting += operation.control_inputs
        waiting += [tensor.op for tensor in operation.inputs if tensor.name not in fed]
    return seen
