"""The tensors of a graph of TensorFlow 1 that can be fetched beside what a program fetches itself.

Fetching a tensor runs its operation, and an operation may do something: assign a variable, take a batch off a queue,
draw a random number. So beside the program's own fetches only these are fetched: tensors of operations that those need
and that run in any case, what the program feeds, the values of variables, and losses and tensors that the program gave
to a collection if all that has to run for them besides does nothing but compute. (The gradients of a mean do not need
the mean: a program that fetches its training operation alone never computes its loss.)
"""

from typing import Any, Dict, FrozenSet, Iterable, Iterator, List, NamedTuple, Optional, Set, Tuple

import tensorflow as tf

# Operations that TensorFlow counts among those with a state, although they change none.
_ONLY_READ = {"VarHandleOp", "ReadVariableOp", "Variable", "VariableV2", "VarIsInitializedOp", "IsVariableInitialized"}


class GraphTensor(NamedTuple):
    """A tensor under the name it is saved by, and the collection it belongs to by its kind."""

    name: str
    tensor: Any
    collection: Optional[str]
    is_variable: bool


class GraphFacts:
    """What is known of a graph besides its operations: which tensors are gradients, and so on."""

    def __init__(self) -> None:
        self.gradients: List[Any] = []
        self.optimizer_variables: List[Any] = []
        self.minimized: List[Any] = []  # what optimizers were told to minimize

    @staticmethod
    def of(graph: Any) -> "GraphFacts":
        """Those of a graph, kept with it so that they end with it."""
        if getattr(graph, "_tornasole_facts", None) is None:
            graph._tornasole_facts = GraphFacts()
        return graph._tornasole_facts

    @staticmethod
    def add(known: List[Any], found: Iterable[Any]) -> None:
        """Adds to one of the lists what is not in it."""
        known += [one for one in found if one is not None and not any(one is other for other in known)]


def value_of_variable(variable: Any) -> Any:
    """The tensor to fetch for a variable; an operation that is in the graph already, where there is one."""
    element = getattr(variable, "_graph_element", None)
    return element if element is not None else variable.value()


class GraphTensors:
    """All tensors of one graph that may be fetched."""

    def __init__(self, graph: Any):
        self._graph = graph
        self._by_name: Dict[str, GraphTensor] = {}
        self._given: Set[str] = set()  # by the program, to a collection
        self._running: Dict[Tuple, FrozenSet[str]] = {}
        self._computable: Dict[Tuple, bool] = {}

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

    def mark_given(self, tensor: Any) -> None:
        """A tensor that the program itself put into a collection, as an object: it is wanted for its own sake."""
        self._given.add(tensor.name)

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

    def that_run(self, tensors: List[GraphTensor], fetches: Any, feeds: Any, losses: str) -> List[GraphTensor]:
        """Those of them that can be fetched along with these fetches and feeds of the program.

        Tensors of the collection ``losses`` and those that were given can if nothing but computing is to be done for
        them.
        """
        operations = _operations(self._graph, fetches)
        fed = frozenset(getattr(key, "name", str(key)) for key in (feeds or {}))
        key = (frozenset(operation.name for operation in operations), fed)
        if key not in self._running:
            self._running[key] = frozenset(_ancestors(operations, fed))
        running = self._running[key]

        def can_be_fetched(entry: GraphTensor) -> bool:
            if entry.tensor.name in fed or entry.is_variable or entry.tensor.op.name in running:
                return True
            if entry.collection != losses and entry.tensor.name not in self._given:
                return False
            known = (key, entry.name)
            if known not in self._computable:
                self._computable[known] = only_computes(entry.tensor.op, running, fed)
            return self._computable[known]

        return [entry for entry in tensors if can_be_fetched(entry)]


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


def names_that_run(ends: Iterable[Any], fed: Iterable[str]) -> FrozenSet[str]:
    """The names of all operations that run for these tensors and operations, when these tensors are fed."""
    operations = [end if isinstance(end, tf.Operation) else end.op for end in ends]
    return frozenset(_ancestors(operations, frozenset(fed)))


def _ancestors(operations: Iterable[Any], fed: FrozenSet[str]) -> Set[str]:
    """The names of all operations that run for these; what only a fed tensor would need does not."""
    return {operation.name for operation in _that_run_for(operations, frozenset(), fed)}


def _that_run_for(operations: Iterable[Any], running: FrozenSet[str], fed: FrozenSet[str]) -> Iterator[Any]:
    """The operations that run for these besides those that do in any case."""
    seen = set(running)
    waiting = list(operations)
    while waiting:
        operation = waiting.pop()
        if operation.name in seen:
            continue
        seen.add(operation.name)
        yield operation
        waiting += operation.control_inputs
        waiting += [tensor.op for tensor in operation.inputs if tensor.name not in fed]


def only_computes(operation: Any, running: FrozenSet[str], fed: FrozenSet[str], may_read: bool = True) -> bool:
    """Whether an operation can run with others, and nothing that has to run besides does more than compute.

    Variables may be read unless ``may_read`` is false: then one that nobody else reads may have no value.
    """
    for one in _that_run_for([operation], running, fed):
        is_read = one.type in _ONLY_READ and (may_read or one.type == "ReadVariableOp")
        if one.type in ("Placeholder", "PlaceholderV2") or (one.op_def.is_stateful and not is_read):
            return False
    return True
