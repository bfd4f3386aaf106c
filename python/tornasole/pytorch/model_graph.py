"""The graph of a module, as TensorBoard draws it."""

import collections
import copy
from typing import Any

import torch

# What is attached to modules: a copy that is traced calls nobody.
_CALLBACKS = ("_forward_hooks", "_forward_pre_hooks", "_backward_hooks", "_backward_pre_hooks")


def graph_def_of(module: torch.nn.Module, inputs: Any) -> bytes:
    """A serialized GraphDef of the module for these inputs, by PyTorch's own conversion.

    A copy without callbacks is traced, in evaluation mode; random numbers go on as if nothing had happened.
    """
    from torch.utils.tensorboard._pytorch_graph import graph

    copied: dict = {}
    for part in module.modules():
        for name in _CALLBACKS:
            attached = getattr(part, name, None)
            if attached is not None:
                copied[id(attached)] = collections.OrderedDict()
    replica = copy.deepcopy(module, copied).eval()
    with torch.random.fork_rng(), torch.no_grad():
        graph_def, _ = graph(replica, inputs)
    return graph_def.SerializeToString()
