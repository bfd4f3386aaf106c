"""The graph of a Keras model as TensorBoard draws it: a node for each layer, those of a nested model inside of it."""

from typing import Any, Dict, Iterator, List

import tensorflow as tf

from tornasole.core.graph_nodes import GraphNode, graph_def


def layer_graph(model: Any) -> bytes:
    """The bytes of the graph.

    Edges are those of functional and sequential models; of a model of one's own class the layers alone are known.
    """
    nodes: List[GraphNode] = []
    _walk(model, "", [], nodes)
    return graph_def(nodes)


def _walk(model: Any, prefix: str, given: List[str], nodes: List[GraphNode]) -> List[str]:
    """Adds the layers of a model that gets its inputs from these nodes; the nodes that make its outputs."""
    layers = list(model.layers)
    made: Dict[int, List[str]] = {id(layer): [] for layer in layers}  # by a layer, the nodes of its outputs
    for place, layer in enumerate(layers):
        sources = [name for source in _sources(layer) for name in made.get(id(source), ())]
        is_entry = isinstance(layer, tf.keras.layers.InputLayer) or place == 0
        sources = list(dict.fromkeys(sources)) or (given if is_entry else [])
        name = prefix + layer.name
        if isinstance(layer, tf.keras.Model) and layer.layers:
            made[id(layer)] = _walk(layer, name + "/", sources, nodes)
        else:
            nodes.append(GraphNode(name, type(layer).__name__, sources))
            made[id(layer)] = [name]
    last = [_maker(tensor) for tensor in tf.nest.flatten(getattr(model, "outputs", None) or [])]
    outputs = [name for layer in last for name in made.get(id(layer), ())]
    return outputs or (made[id(layers[-1])] if layers else [])


def _sources(layer: Any) -> Iterator[Any]:
    """The layers whose tensors a layer was called with."""
    for node in getattr(layer, "_inbound_nodes", None) or ():
        tensors = getattr(node, "input_tensors", None)  # of Keras 3, and of Keras 2
        for tensor in tf.nest.flatten(tensors if tensors is not None else []):
            maker = _maker(tensor)
            if maker is not None and maker is not layer:
                yield maker


def _maker(tensor: Any) -> Any:
    history = getattr(tensor, "_keras_history", None)
    return None if history is None else history[0]
