"""What runs a batch of a Keras model with eager execution off, and what is computed in it.

A batch is the run of one function in a session. Of a model that is trained on several devices the function is that of
all replicas together: on each device there is a model of its own, which has the layers and variables of the one that
the script made, called anew. The function of the script's model exists too and is never run.
"""

from typing import Any, FrozenSet, Iterator, List, NamedTuple, Optional, Set, Tuple

import tensorflow as tf

from tornasole.tensorflow.graph_tensors import names_that_run
from tornasole.tensorflow.tf_values import local_values


class GraphRun(NamedTuple):
    """The function of one model for one mode, the models of its replicas, and the operations that run by name."""

    function: Any
    models: List[Any]
    running: FrozenSet[str]

    @staticmethod
    def of(model: Any, kind: str, known: Optional["GraphRun"] = None) -> Optional["GraphRun"]:
        """That of a model: ``kind`` is train, test or predict. None if it can fetch nothing; ``known`` if it is that."""
        is_distributed = getattr(model, "_distribution_strategy", None) is not None
        function, models = _distributed(model, kind) if is_distributed else _own(model, kind)
        if known is not None and known.function is function:
            return known
        if not hasattr(function, "fetch_callbacks"):
            return None
        ends = [*function.outputs, *([] if function.updates_op is None else [function.updates_op])]
        return GraphRun(function, models, names_that_run(ends, {tensor.name for tensor in function.inputs}))


def _own(model: Any, kind: str) -> Tuple[Any, List[Any]]:
    if getattr(model, f"{kind}_function", None) is None and hasattr(model, f"_make_{kind}_function"):
        getattr(model, f"_make_{kind}_function")()
    return getattr(model, f"{kind}_function", None), [model]


def _distributed(model: Any, kind: str) -> Tuple[Any, List[Any]]:
    replicas = getattr(model, "_distributed_model_cache", {}).get(hash(kind))
    return getattr(replicas, "_distributed_function", None), local_values(replicas)


def layer_tensors(model: Any) -> Iterator[Tuple[Any, str, Any]]:
    """(layer, ``inputs`` or ``outputs``, tensor) of every call of a layer that the model is made of."""
    nodes = {id(node) for at_depth in (getattr(model, "_nodes_by_depth", None) or {}).values() for node in at_depth}
    for layer in model.layers:
        for inputs, outputs in _calls(layer, nodes):
            for side, tensors in (("inputs", inputs), ("outputs", outputs)):
                for tensor in tf.nest.flatten(tensors):
                    if tf.is_tensor(tensor) and tensor.op.type not in ("Placeholder", "PlaceholderWithDefault"):
                        yield layer, side, tensor


def _calls(layer: Any, nodes: Set[int]) -> List[Tuple[Any, Any]]:
    """(inputs, outputs) of a layer's calls that belong to these nodes; of a model without nodes, of its only call."""
    if nodes:
        return [(one.input_tensors, one.output_tensors) for one in layer._inbound_nodes if id(one) in nodes]
    try:
        return [(layer.input, layer.output)]
    except (AttributeError, RuntimeError, ValueError):  # never called, or more than once
        return []
