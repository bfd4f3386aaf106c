"""A small training in NumPy: a perceptron of several layers that learns to tell clouds of points apart.

Everything that can go wrong with it is a field of :class:`SmallTraining`; what it does, it does by training, so that a
sick run is sick in all its tensors. Saved at every step, as a hook without a framework saves:

======================================  ==================================================================
``fc0.weight``, ``fc0.bias``            parameters, before the step
``gradient/fc0.weight``                 their gradients; the same as ``optimizer_gradient/fc0.weight``
``fc0.relu_input_0``, ``…_output_0``    what goes into the activation of a hidden layer and comes out
``input``, ``labels``, ``predictions``  of the batch
``loss``                                of the batch; in steps of mode EVAL that of other data
======================================  ==================================================================
"""

from __future__ import annotations

from dataclasses import dataclass

import numpy

from tornasole import _engine
from tornasole.core.collection import Collection
from tornasole.core.save_config import SaveConfig
from tornasole.modes import ModeKeys

_CLASSES = 3
_FEATURES = 8


@dataclass(frozen=True)
class SmallTraining:
    """How the training goes; the defaults are healthy."""

    steps: int = 60
    hidden: tuple[int, ...] = (16, 16)
    activation: str = "relu"  # or "tanh", "sigmoid"
    weight_scale: float = 1.0  # times what suits the activation
    last_weight_scale: float = 1.0
    hidden_bias: float = 0.0  # of the first hidden layer
    learning_rate: float = 0.1
    batch: int = 64
    points: int | None = None  # so many in all, seen again and again; None: always new ones
    spread: float = 1.0  # of the clouds
    shares: tuple[float, ...] = (1.0, 1.0, 1.0)  # of the classes
    random_labels: bool = False
    frozen: tuple[int, ...] = ()  # layers that are never updated
    keeps_gradients: bool = False  # nobody sets them to zero
    bad_batch: int | None = None  # a NaN in the input of this step
    masked_features: int = 0  # that are always zero
    evaluate_every: int = 0


class _Network:
    def __init__(self, training: SmallTraining, rng: numpy.random.Generator) -> None:
        self.training = training
        sizes = [_FEATURES, *training.hidden, _CLASSES]
        gain = 2.0 if training.activation == "relu" else 1.0
        self.weights, self.biases = [], []
        for layer, (fan_in, fan_out) in enumerate(zip(sizes, sizes[1:])):
            is_last = layer == len(sizes) - 2
            scale = training.last_weight_scale if is_last else training.weight_scale
            weights = rng.normal(0, numpy.sqrt(gain / fan_in), (fan_out, fan_in)) * scale
            self.weights.append(weights.astype(numpy.float32))
            bias = training.hidden_bias if layer == 0 else 0.0
            self.biases.append(numpy.full(fan_out, bias, numpy.float32))

    def forward(self, inputs):
        """(what goes into each activation, what comes out of it, probabilities of the classes)"""
        before, after, values = [], [], inputs
        for layer, (weights, biases) in enumerate(zip(self.weights, self.biases)):
            values = values @ weights.T + biases
            if layer == len(self.weights) - 1:
                break
            before.append(values)
            values = _activate(self.training.activation, values)
            after.append(values)
        values = values - values.max(axis=1, keepdims=True)
        powers = numpy.exp(values)
        return before, after, powers / powers.sum(axis=1, keepdims=True)

    def backward(self, inputs, after, probabilities, labels):
        """Gradients of weights and of biases, by layer."""
        error = probabilities.copy()
        error[numpy.arange(len(labels)), labels] -= 1
        error /= numpy.float32(len(labels))
        of_weights, of_biases = [], []
        for layer in reversed(range(len(self.weights))):
            below = inputs if layer == 0 else after[layer - 1]
            of_weights.insert(0, error.T @ below)
            of_biases.insert(0, error.sum(axis=0))
            if layer > 0:
                error = (error @ self.weights[layer]) * _slope(self.training.activation, below)
        return of_weights, of_biases


def _activate(activation, values):
    if activation == "relu":
        return numpy.maximum(values, 0)
    return numpy.tanh(values) if activation == "tanh" else 1 / (1 + numpy.exp(-values))


def _slope(activation, outputs):
    if activation == "relu":
        return (outputs > 0).astype(numpy.float32)
    return 1 - outputs**2 if activation == "tanh" else outputs * (1 - outputs)


class _Data:
    def __init__(self, training: SmallTraining, rng: numpy.random.Generator) -> None:
        self.training, self.rng = training, rng
        self.centres = rng.normal(0, 1.5, (_CLASSES, _FEATURES))
        self.pool = None if training.points is None else self.draw(training.points)

    def draw(self, count):
        shares = numpy.asarray(self.training.shares) / sum(self.training.shares)
        labels = self.rng.choice(_CLASSES, count, p=shares)
        inputs = self.rng.normal(self.centres[labels], self.training.spread).astype(numpy.float32)
        if self.training.random_labels:
            labels = self.rng.choice(_CLASSES, count)
        inputs[:, : self.training.masked_features] = 0
        return inputs, labels

    def batch(self):
        if self.pool is None:
            return self.draw(self.training.batch)
        chosen = self.rng.choice(len(self.pool[1]), self.training.batch)
        return self.pool[0][chosen], self.pool[1][chosen]


def run_training(training: SmallTraining, path: str, seed: int = 0) -> None:
    """Trains, and writes the run to a directory."""
    rng = numpy.random.default_rng(seed)
    network, data = _Network(training, rng), _Data(training, rng)
    every_step = SaveConfig(save_interval=1)._plain()
    options = {"out_dir": str(path), "save_all": True, "save_config": every_step, "when_full": "block"}
    options["include_collections"] = ["weights", "biases", "gradients", "losses"]
    hook = _engine.Hook.open(options)
    hook.set_collection(Collection("optimizer_gradients", include_regex=["^optimizer_gradient/"])._plain())
    hook.include_collection("optimizer_gradients")
    hook.describe_model(_description(training, network))
    sums = None
    with numpy.errstate(all="ignore"):  # a sick training does what it does
        for step in range(training.steps):
            inputs, labels = data.batch()
            if step == training.bad_batch:
                inputs[0, 0] = numpy.nan
            before, after, probabilities = network.forward(inputs)
            gradients = network.backward(inputs, after, probabilities, labels)
            if training.keeps_gradients and sums is not None:
                gradients = tuple([old + new for old, new in zip(*pair)] for pair in zip(sums, gradients))
            sums = gradients
            hook.begin_step(ModeKeys.TRAIN.value)
            hook.set_usual_facts(step, True, True)
            _save(hook, training, network, inputs, labels, before, after, probabilities, gradients)
            hook.end_step()
            _update(network, training, gradients)
            if training.evaluate_every and step % training.evaluate_every == 0:
                inputs, labels = data.draw(512)
                hook.begin_step(ModeKeys.EVAL.value)
                hook.set_usual_facts(step + 1, False, False)
                hook.save("loss", _loss(network.forward(inputs)[2], labels))
                hook.end_step()
    hook.close()


def _update(network: _Network, training: SmallTraining, gradients) -> None:
    for parameters, slopes in zip((network.weights, network.biases), gradients):
        for layer, slope in enumerate(slopes):
            if layer not in training.frozen:
                parameters[layer] = parameters[layer] - numpy.float32(training.learning_rate) * slope


def _loss(probabilities, labels):
    chosen = probabilities[numpy.arange(len(labels)), labels]
    return numpy.array(-numpy.log(numpy.maximum(chosen, 1e-30)).mean(), numpy.float32).reshape(())


def _save(hook, training, network, inputs, labels, before, after, probabilities, gradients) -> None:
    hook.save("input", inputs)
    for layer, (weights, biases) in enumerate(zip(network.weights, network.biases)):
        hook.save(f"fc{layer}.weight", weights)
        hook.save(f"fc{layer}.bias", biases)
    for layer, (entering, leaving) in enumerate(zip(before, after)):
        hook.save_input(f"fc{layer}.{training.activation}", entering)
        hook.save_output(f"fc{layer}.{training.activation}", leaving)
    hook.save("predictions", probabilities)
    hook.save("labels", labels)
    hook.save("loss", _loss(probabilities, labels))
    for layer in reversed(range(len(network.weights))):
        for prefix in ("gradient", "optimizer_gradient"):
            hook.save(f"{prefix}/fc{layer}.weight", gradients[0][layer])
            hook.save(f"{prefix}/fc{layer}.bias", gradients[1][layer])


def _description(training: SmallTraining, network: _Network) -> dict:
    modules, parameters = [], []
    for layer, weights in enumerate(network.weights):
        name = f"fc{layer}"
        modules.append({"path": name, "type": "Linear", "call_order": 2 * layer})
        if layer < len(network.weights) - 1:
            kind = {"relu": "ReLU", "tanh": "Tanh", "sigmoid": "Sigmoid"}[training.activation]
            path = f"{name}.{training.activation}"
            modules.append({"path": path, "type": kind, "parent": name, "call_order": 2 * layer + 1})
        for parameter, shape in (("weight", list(weights.shape)), ("bias", [len(weights)])):
            parameters.append({"name": f"{name}.{parameter}", "module": name, "shape": shape, "dtype": "float32"})
    loss = {"name": "loss", "type": "CrossEntropyLoss", "predictions": ["predictions"], "labels": ["labels"]}
    names = [parameter["name"] for parameter in parameters]
    optimizer = {"type": "SGD", "hyperparameters": {"lr": training.learning_rate}, "groups": [names]}
    described = {"modules": modules, "parameters": parameters, "losses": [loss], "inputs": ["input"]}
    return {**described, "optimizers": [optimizer]}
