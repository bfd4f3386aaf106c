"""Names of what a Keras model is made of.

A layer is known by its own name; what is inside a model or a layer of the user's own, by the path from the model to it.
A variable is known as in TensorFlow 2: ``dense/kernel:0``. Keras 3 has paths in the place of such names, which begin
with the name of the model: that is left out.
"""

from typing import Any, Dict, Iterator, List, Tuple

import tensorflow as tf

IS_KERAS_3 = str(getattr(tf.keras, "__version__", "2")).startswith("3")
_OWN_MODULES = ("keras.", "tf_keras.", "tensorflow.", "tensorflow_addons.", "keras_nlp.", "keras_hub.")


def _parts(layer: Any) -> List[Any]:
    """The layers that a model or a layer holds itself."""
    if isinstance(layer, tf.keras.Model):
        return list(layer.layers)
    if hasattr(layer, "_flatten_layers"):
        found = list(layer._flatten_layers(recursive=False, include_self=False))
    else:
        found = list(getattr(layer, "_layers", ()))
    return [part for part in found if isinstance(part, tf.keras.layers.Layer) and not _is_metric(part)]


def _is_metric(layer: Any) -> bool:
    return isinstance(layer, tf.keras.metrics.Metric)


def is_composite(layer: Any) -> bool:
    """Whether its parts are layers to be shown: a model, or a layer that Keras does not come with."""
    return isinstance(layer, tf.keras.Model) or not type(layer).__module__.startswith(_OWN_MODULES)


def named_layers(model: Any) -> Iterator[Tuple[str, Any, str]]:
    """(name, layer, name of what it is a part of) of all layers, each once, outer ones first."""
    seen = {id(model)}

    def walk(parent: Any, prefix: str, parent_name: str) -> Iterator[Tuple[str, Any, str]]:
        for layer in _parts(parent):
            if id(layer) in seen:
                continue
            seen.add(id(layer))
            name = prefix + layer.name
            yield name, layer, parent_name
            if is_composite(layer):
                yield from walk(layer, name + "/", name)

    return walk(model, "", model.name)


def variable_name(variable: Any, model_name: str = "") -> str:
    """``dense/kernel:0``; of a variable of Keras 3, its path without the name of the model."""
    path = getattr(variable, "path", None)
    if path is None:
        return variable.name
    if model_name and path.startswith(model_name + "/"):
        path = path[len(model_name) + 1 :]
    return path + ":0"


def is_weight(source: Any) -> bool:
    """Whether what a tape was asked about is a variable, and not what layers of Keras 3 draw random numbers from, which
    is among the variables of a model too."""
    if not hasattr(source, "path"):
        return isinstance(source, tf.Variable)
    return source.name != "seed_generator_state"


def gradient_name(variable: str) -> str:
    """``gradients/dense/kernelGrad``, of the name of a variable."""
    return f"gradients/{variable.split(':')[0]}Grad"


def weight_names(model: Any) -> Dict[str, Any]:
    """``<layer>/weights/<variable>`` of every weight, under the outermost layer that holds it; each weight once."""
    names: Dict[str, Any] = {}
    seen = set()
    for layer in list(model.layers) + [model]:
        for variable in layer.weights:
            if id(variable) not in seen:
                seen.add(id(variable))
                names[f"{layer.name}/weights/{variable_name(variable, model.name)}"] = variable
    return names


def numbered(name: str, values: List[Any]) -> List[Tuple[str, Any]]:
    """(name, value) of one value; ``name_0``, ``name_1``, ... of several."""
    return [(name, values[0])] if len(values) == 1 else [(f"{name}_{i}", value) for i, value in enumerate(values)]
