"""The model in words: which modules, parameters, losses and optimizers there are. Roles, never values."""

import numbers
from typing import Any, Dict, Iterable, List, Tuple

import torch

from tornasole.pytorch.host_tensors import is_distributed, is_unmade


def describe(captures: Iterable, losses: Iterable[Tuple[str, str]], optimizers: Iterable) -> Dict[str, Any]:
    """The description that is stored beside the trial, as the engine's ``describe_model`` takes it.

    Losses are given by name and type: the class of a module, the name of a function.
    """
    modules: List[Dict] = []
    parameters: List[Dict] = []
    inputs: List[str] = []
    names: Dict[int, str] = {}
    device = ""
    called = 0  # modules of the models before
    for capture in captures:
        if capture.begins_steps:
            inputs.append(f"{capture.names.root}_input_0")
        for name, module in capture.modules():
            parent = "" if name == capture.names.root else name.rpartition(".")[0] or capture.names.root
            modules.append(
                {
                    "path": name,
                    "type": type(module).__name__,
                    "parent": parent,
                    "call_order": called + capture.call_order[name] if name in capture.call_order else -1,
                    "training": module.training,
                }
            )
        called += len(capture.call_order)
        owners = _owners(capture)
        for name, parameter in capture.parameters():
            names[id(parameter)] = name
            device = device or str(parameter.device)
            parameters.append(
                {
                    "name": name,
                    "module": owners.get(id(parameter), [capture.names.root])[0],
                    "shape": [] if is_unmade(parameter) else list(parameter.shape),
                    "dtype": str(parameter.dtype).replace("torch.", ""),
                    # As it was when its tensors were saved: one that was set free since may have stood still then.
                    "requires_grad": name in capture.trained,
                    "tied": _tied(capture, parameter, name),
                    "placement": _placement(parameter),
                }
            )
    return {
        "modules": modules,
        "parameters": parameters,
        "losses": [
            {
                "name": f"{name}_output_0",
                "type": type_name,
                "predictions": [f"{name}_input_0"],
                "labels": [f"{name}_input_1"],
            }
            for name, type_name in losses
        ],
        "inputs": inputs,
        "optimizers": [_optimizer(optimizer, names) for optimizer in optimizers],
        "versions": {"torch": torch.__version__},
        "device": device,
    }


def _owners(capture) -> Dict[int, List[str]]:
    owners: Dict[int, List[str]] = {}
    for name, module in capture.modules():
        for parameter in module._parameters.values():
            if parameter is not None:
                owners.setdefault(id(parameter), []).append(name)
    return owners


def _placement(parameter: torch.nn.Parameter) -> str:
    """How a distributed parameter lies on its processes, one word for each dimension of their mesh: ``Shard(dim=0)``."""
    placements = getattr(parameter, "placements", None) if is_distributed(parameter) else None
    return ", ".join(map(repr, placements or ()))


def _tied(capture, parameter: torch.nn.Parameter, name: str) -> List[str]:
    root = capture.root()
    if root is None:
        return []
    try:
        others = [path for path, other in root.named_parameters(remove_duplicate=False) if other is parameter]
    except TypeError:  # before PyTorch 2.0
        others = []
    return [other for other in map(capture.names.parameter, others) if other != name]


def _optimizer(optimizer: torch.optim.Optimizer, names: Dict[int, str]) -> Dict[str, Any]:
    return {
        "type": type(optimizer).__name__,
        "hyperparameters": {
            key: float(value)
            for key, value in _settings(optimizer).items()
            if isinstance(value, numbers.Real) and not isinstance(value, bool)
        },
        "groups": [
            [names[id(parameter)] for parameter in group["params"] if id(parameter) in names]
            for group in optimizer.param_groups
        ],
    }


def _settings(optimizer: torch.optim.Optimizer) -> Dict[str, Any]:
    """Those of most parameters, since groups may have their own. A rate that schedules change is the one they began at."""
    largest = max(optimizer.param_groups, key=lambda group: sum(map(torch.numel, group["params"])), default={})
    settings = {key: largest.get(key, value) for key, value in optimizer.defaults.items()}
    if "lr" in settings:
        settings["lr"] = largest.get("initial_lr", optimizer.defaults["lr"])
    return settings
