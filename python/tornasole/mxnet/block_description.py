"""The model in words: which blocks, parameters and losses there are. Roles, never values."""

from __future__ import annotations

import json
from typing import Any, Dict, Iterator, List, Optional

import mxnet
from mxnet.gluon import Block

from tornasole.core.graph_nodes import GraphNode, graph_def


def blocks_of(root: Block) -> Iterator[Block]:
    """A block and all its parts, each once, the block itself first."""
    seen, left = set(), [root]
    while left:
        block = left.pop()
        if id(block) not in seen:
            seen.add(id(block))
            yield block
            left += reversed(list(block._children.values()))


def describe(roots: List[Block], losses: List[Block]) -> Dict[str, Any]:
    """The description that is stored beside the trial, as the engine's ``describe_model`` takes it."""
    modules, parameters = [], []
    for root in roots:
        parents = {id(part): block.name for block in blocks_of(root) for part in block._children.values()}
        for block in blocks_of(root):
            modules.append({"path": block.name, "type": type(block).__name__, "parent": parents.get(id(block), "")})
            parameters += [_parameter(parameter, block) for parameter in block._reg_params.values()]
    return {
        "modules": modules,
        "parameters": parameters,
        "losses": [
            {
                "name": f"{loss.name}_output_0",
                "type": type(loss).__name__,
                "predictions": [f"{loss.name}_input_0"],
                "labels": [f"{loss.name}_input_1"],
            }
            for loss in losses
        ],
        "inputs": [f"{root.name}_input_0" for root in roots],
        "versions": {"mxnet": mxnet.__version__},
    }


def block_graph(root: Block) -> Optional[bytes]:
    """The graph of a block as TensorBoard draws it; None unless the block was hybridized and has been called.

    Gluon keeps the graph of such a block alone. Calling another with symbols to learn of its graph would run whatever
    is attached to it.
    """
    traced = getattr(root, "_cached_graph", None)
    if not traced:
        return None
    found = json.loads(traced[1].tojson())["nodes"]
    names = [node["name"] for node in found]
    kinds = ["Placeholder" if node["op"] == "null" else node["op"] for node in found]
    inputs = [[names[place] for place, *_ in node["inputs"]] for node in found]
    return graph_def(map(GraphNode, names, kinds, inputs))


def _parameter(parameter: Any, block: Block) -> Dict[str, Any]:
    return {
        "name": parameter.name,
        "module": block.name,
        "shape": list(parameter.shape or ()),
        "dtype": getattr(parameter.dtype, "__name__", str(parameter.dtype)),
        "requires_grad": parameter.grad_req != "null",
    }
