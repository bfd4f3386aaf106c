"""A Keras model in words: which layers, weights, losses and optimizers there are. Roles, never values."""

import numbers
from typing import Any, Dict, Iterable, List

import tensorflow as tf

from tornasole.tensorflow.keras_names import named_layers, variable_name, weight_names


def describe(model: Any, weights: Dict[str, Any], call_order: List[str], optimizers: Iterable) -> Dict[str, Any]:
    """The description that is stored beside the trial, as the engine's ``describe_model`` takes it.

    ``weights`` have the names that they are saved by.
    """
    order = {name: i for i, name in enumerate(call_order)}
    modules = [{"path": model.name, "type": type(model).__name__, "parent": "", "training": True}]
    for name, layer, parent in named_layers(model):
        module = {"path": name, "type": type(layer).__name__, "parent": parent, "training": bool(layer.trainable)}
        module["activation"] = _activation(layer)
        modules.append({**module, "call_order": order[name]} if name in order else module)
    trainable = {id(variable) for variable in model.trainable_variables}
    holders = {id(variable): name.split("/weights/", 1)[0] for name, variable in weight_names(model).items()}
    parameters = [
        {
            "name": name,
            "module": holders.get(id(variable), model.name),
            "shape": [int(size) for size in variable.shape],
            "dtype": _dtype(variable),
            "requires_grad": id(variable) in trainable,
            "tied": [],
        }
        for name, variable in weights.items()
    ]
    names = {variable_name(variable, model.name): name for name, variable in weights.items()}
    optimizers = list(optimizers)
    of_optimizers = [_updated_by(one, model, len(optimizers) == 1) for one in optimizers]
    groups = [[names[key] for key in (variable_name(v, model.name) for v in of) if key in names] for of in of_optimizers]
    return {
        "modules": modules,
        "parameters": parameters,
        "losses": _losses(model),
        "inputs": _several("inputs", getattr(model, "inputs", None)),
        "optimizers": [_optimizer(optimizer, group) for optimizer, group in zip(optimizers, groups)],
        "versions": {"tensorflow": tf.__version__, "keras": str(getattr(tf.keras, "__version__", ""))},
        "device": "GPU" if tf.config.list_physical_devices("GPU") else "CPU",
    }


def _dtype(variable: Any) -> str:
    return str(getattr(variable.dtype, "name", variable.dtype))


def _activation(layer: Any) -> str:
    """The function that a layer applies to its own result, by name; the layers that are nothing else have none."""
    function = getattr(layer, "activation", None)
    name = getattr(function, "__name__", None) or getattr(function, "name", None)
    return name if isinstance(name, str) and name != "linear" else ""


def _several(name: str, values: Any) -> List[str]:
    count = len(values) if isinstance(values, (list, tuple, dict)) else 1
    return [name] if count <= 1 else [f"{name}_{i}" for i in range(count)]


def _losses(model: Any) -> List[Dict[str, Any]]:
    try:
        loss = model.loss
    except (AttributeError, RuntimeError):
        return []
    if loss is None or (callable(loss) and getattr(loss, "__self__", None) is model):
        return []
    several = loss if isinstance(loss, (list, tuple)) else list(loss.values()) if isinstance(loss, dict) else [loss]
    kinds = map(_kind_of_loss, several)
    outputs = getattr(model, "outputs", None)
    predictions, labels = _several("predictions", outputs), _several("labels", outputs)
    return [{"name": "loss", "type": ", ".join(kinds), "predictions": predictions, "labels": labels}]


def _kind_of_loss(loss: Any) -> str:
    """Its name; what it takes besides, where that is not what all of its kind do."""
    if isinstance(loss, str):
        return loss
    name = str(getattr(loss, "__name__", type(loss).__name__))
    try:
        is_from_logits = bool(loss.get_config().get("from_logits"))
    except Exception:  # a loss of the program, which may have no configuration
        return name
    return f"{name}(from_logits=True)" if is_from_logits else name


def _updated_by(optimizer: Any, model: Any, is_alone: bool) -> List[Any]:
    """The variables that an optimizer updates: those it knows, once it was used; until then all of the model.

    One of Keras 2 that is alone need not know them all.
    """
    known = getattr(optimizer, "_trainable_variables", None)  # of Keras 3
    if known:
        return list(known)
    indices = getattr(optimizer, "_index_dict", None)  # of Keras 2
    return [v for v in model.trainable_variables if is_alone or not indices or optimizer._var_key(v) in indices]


def _optimizer(optimizer: Any, parameters: List[str]) -> Dict[str, Any]:
    try:
        settings = optimizer.get_config()
    except (AttributeError, NotImplementedError):
        settings = {}
    return {
        "type": type(optimizer).__name__,
        "hyperparameters": {
            key: float(value)
            for key, value in settings.items()
            if isinstance(value, numbers.Real) and not isinstance(value, bool)
        },
        "groups": [parameters],
    }
