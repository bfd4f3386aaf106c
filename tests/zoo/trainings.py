"""Small real trainings, sick in known ways or healthy but easily suspected: trainings.py NAME trains one of them.

Four classes of points in twenty dimensions, separated by a random linear map with noise; a few hundred steps of a
small network. What a training is expected to be told is in TRAININGS, which the tests hold against `tornasole check`.
"""

import dataclasses
import sys
from typing import Any, Callable

FEATURES, CLASSES, WIDTH = 20, 4, 64


@dataclasses.dataclass
class Recipe:
    """How a training differs from the plain one."""

    network: dict = dataclasses.field(default_factory=dict)  # arguments of make_network
    change: Callable[[Any], None] | None = None  # of the network before it is trained
    optimizer: str = "Adam"
    rate: float = 1e-3
    schedule: bool = False  # cosine down to nothing
    batch: int = 64
    steps: int = 200
    samples: int = 2000
    random_labels: bool = False
    fresh_labels: bool = False  # drawn anew for every batch: there is nothing to learn
    clip: float | None = None
    clears: bool = True  # gradients between steps
    makes_steps: bool = True
    trains_others: bool = False  # the optimizer has the parameters of another network
    leaves_out: str = ""  # parameters with this prefix are not given to the optimizer
    evaluates: bool = True  # calls eval() for evaluations
    bad_input: int | None = None  # the step whose batch holds a NaN
    accumulates: int = 1  # backward passes for one optimizer step


def scale_weights(factor):
    def change(network):
        for name, parameter in network.named_parameters():
            if name.endswith("weight"):
                parameter.data.mul_(factor)

    return change


def lower_biases(network):
    for layer in list(network.layers)[:-1]:
        if hasattr(layer, "bias") and layer.bias is not None:
            layer.bias.data.fill_(-10)


def freeze_first(network):
    for parameter in network.layers[0].parameters():
        parameter.requires_grad_(False)


def zero_last(network):
    for parameter in network.layers[-1].parameters():
        parameter.data.zero_()


# name -> recipe, and the rules of which check must name at least one and whose verdict must be no symptom; none: quiet.
TRAININGS = {
    "plain": (Recipe(), ()),
    "plain gradient descent": (Recipe(optimizer="SGD", rate=0.1), ()),
    "momentum": (Recipe(optimizer="SGD momentum", rate=0.02), ()),
    "drop-out and batch normalisation": (Recipe(network={"dropout": 0.3, "normalised": True}), ()),
    "tanh": (Recipe(network={"activation": "Tanh"}), ()),
    "clipped gradients": (Recipe(clip=1.0), ()),
    "a layer frozen on purpose": (Recipe(change=freeze_first), ()),
    "cosine schedule": (Recipe(optimizer="SGD", rate=0.1, schedule=True), ()),
    "one sample at a time": (Recipe(batch=1, rate=1e-3, steps=600), ()),
    "deep and normalised": (Recipe(network={"depth": 8, "normalised": True}), ()),
    "accumulated gradients": (Recipe(accumulates=4, steps=400), ()),
    "last layer starts at zero": (Recipe(change=zero_last), ()),
    "rate too high, gradient descent": (Recipe(optimizer="SGD", rate=10.0), ("LearningRateSanity",)),
    "rate too high, Adam": (Recipe(rate=1.0), ("LearningRateSanity",)),
    "rate so high that it breaks": (Recipe(optimizer="SGD", rate=1e4), ("LearningRateSanity", "NonFiniteProvenance")),
    "rate too low": (Recipe(rate=1e-9), ("LearningRateSanity",)),
    "NaN in the data": (Recipe(bad_input=30), ("NonFiniteProvenance",)),
    "deep sigmoid network": (
        Recipe(network={"activation": "Sigmoid", "depth": 10}, optimizer="SGD", rate=0.1),
        ("VanishingGradient",),
    ),
    "biases far below zero": (Recipe(change=lower_biases), ("DeadRelu",)),
    "weights far too large for tanh": (
        Recipe(network={"activation": "Tanh"}, change=scale_weights(30)),
        ("SaturatedActivation", "PoorWeightInitialization"),
    ),
    "gradients never cleared": (Recipe(optimizer="SGD", rate=0.01, clears=False), ("MissingZeroGrad",)),
    "no optimizer step": (Recipe(makes_steps=False), ("SilentOptimizer",)),
    "optimizer of another network": (Recipe(trains_others=True), ("SilentOptimizer",)),
    "a layer the optimizer does not have": (Recipe(leaves_out="layers.0"), ("FrozenLayers",)),
    "learned by heart": (
        Recipe(network={"width": 256}, samples=60, random_labels=True, steps=400),
        ("Overfit",),
    ),
    "evaluated in training mode": (
        Recipe(network={"dropout": 0.5, "normalised": True}, evaluates=False),
        ("TrainEvalMismatch",),
    ),
    "labels that say nothing": (Recipe(fresh_labels=True), ("LossNotDecreasing",)),
}


def make_network(depth=3, width=WIDTH, activation="ReLU", dropout=0.0, normalised=False):
    from torch import nn

    class Network(nn.Module):
        def __init__(self):
            super().__init__()
            layers, inputs = [], FEATURES
            for _ in range(depth):
                layers.append(nn.Linear(inputs, width))
                if normalised:
                    layers.append(nn.BatchNorm1d(width))
                layers.append(getattr(nn, activation)())
                if dropout:
                    layers.append(nn.Dropout(dropout))
                inputs = width
            self.layers = nn.Sequential(*layers, nn.Linear(inputs, CLASSES))

        def forward(self, x):
            return self.layers(x)

    return Network()


def make_optimizer(recipe, network):
    import torch

    owner = make_network(**recipe.network) if recipe.trains_others else network
    parameters = [
        parameter
        for name, parameter in owner.named_parameters()
        if not (recipe.leaves_out and name.startswith(recipe.leaves_out))
    ]
    if recipe.optimizer == "SGD momentum":
        return torch.optim.SGD(parameters, recipe.rate, momentum=0.9)
    return getattr(torch.optim, recipe.optimizer)(parameters, lr=recipe.rate)


def train(recipe):
    import torch

    torch.manual_seed(0)
    torch.set_num_threads(1)
    teacher = torch.randn(FEATURES, CLASSES)

    def draw(count):
        points = torch.randn(count, FEATURES)
        return points, (points @ teacher + 0.5 * torch.randn(count, CLASSES)).argmax(1)

    points, labels = draw(recipe.samples)
    if recipe.random_labels:
        labels = torch.randint(0, CLASSES, labels.shape)
    other_points, other_labels = draw(500)
    network = make_network(**recipe.network)
    if recipe.change:
        recipe.change(network)
    optimizer = make_optimizer(recipe, network)
    schedule = torch.optim.lr_scheduler.CosineAnnealingLR(optimizer, recipe.steps) if recipe.schedule else None
    criterion = torch.nn.CrossEntropyLoss()
    for step in range(recipe.steps):
        network.train()
        chosen = torch.randint(0, len(points), (min(recipe.batch, len(points)),))
        batch, answers = points[chosen].clone(), labels[chosen]
        if recipe.fresh_labels:
            answers = torch.randint(0, CLASSES, answers.shape)
        if step == recipe.bad_input:
            batch[0, 3] = float("nan")
        if recipe.clears and step % recipe.accumulates == 0:
            optimizer.zero_grad()
        loss = criterion(network(batch), answers)
        loss.backward()
        if recipe.clip:
            torch.nn.utils.clip_grad_norm_(network.parameters(), recipe.clip)
        if recipe.makes_steps and (step + 1) % recipe.accumulates == 0:
            optimizer.step()
        if schedule:
            schedule.step()
        if step % 20 == 19:
            if recipe.evaluates:
                network.eval()
            with torch.no_grad():
                criterion(network(other_points), other_labels)


if __name__ == "__main__":
    train(TRAININGS[sys.argv[1]][0])
