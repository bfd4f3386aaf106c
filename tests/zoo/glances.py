"""Trainings of which the first thing that meets the eye is not the cause, or is none at all.

    glances.py NAME

As in strangers.py, the rules of which at least one must be named as a cause stand above each.
"""

import sys

import torch
import torch.nn.functional as functional
from torch import nn

from architectures import dense
from strangers import batches, clouds, minimise

GLANCES = {}  # name -> (function, rules)


def training(name, *rules):
    def add(function):
        GLANCES[name] = (function, rules)
        return function

    return add


class Drawn(nn.Module):
    """A layer whose weights are drawn anew at every call. Their deviations start equal."""

    def __init__(self, inputs, units):
        super().__init__()
        self.centre = nn.Parameter(0.3 * torch.randn(units, inputs))
        self.rho = nn.Parameter(torch.full((units, inputs), -4.0))

    def forward(self, x):
        deviation = functional.softplus(self.rho)
        self.cost = (0.5 * (deviation**2 + self.centre**2) - torch.log(deviation)).sum()
        return functional.linear(x, self.centre + deviation * torch.randn_like(deviation))


@training("weights that are drawn anew")
def _():
    first, last = Drawn(2, 32), Drawn(32, 1)
    model = nn.Sequential(first, nn.ReLU(), last)

    def loss(_):
        points = torch.rand(64, 2) * 4 - 2
        wanted = points[:, :1] ** 3 / 4 + points[:, 1:]
        return 100 * functional.mse_loss(model(points), wanted) + 0.01 * (first.cost + last.cost)

    minimise(model.parameters(), loss, rate=5e-3)


@training("a rare class, one score to a sample", "ClassImbalance")
def _():
    model = dense(16, 32, 1)

    def loss(_):
        points = torch.randn(64, 16)
        rare = (points[:, :4].sum(1) > 3.5).float()
        return functional.binary_cross_entropy_with_logits(model(points).squeeze(1), rare)

    minimise(model.parameters(), loss)


@training("attention thrown off by its first steps", "LearningRateSanity")
def _():
    layer = nn.TransformerEncoderLayer(32, 4, 64, 0.0, batch_first=True)
    model = nn.Sequential(nn.Embedding(12, 32), nn.TransformerEncoder(layer, 3), nn.Linear(32, 12))

    def loss(_):
        tokens = torch.randint(0, 12, (32, 8))
        return functional.cross_entropy(model(tokens).transpose(1, 2), tokens.flip(1))

    minimise(model.parameters(), loss, rate=0.05)


@training("sigmoids over sigmoids, moved by noise", "VanishingGradient")
def _():
    layers = [layer for _ in range(14) for layer in (nn.Linear(16, 16), nn.Sigmoid())]
    model, draw = nn.Sequential(*layers, nn.Linear(16, 5)), batches(clouds(800))

    def loss(_):
        points, labels = draw()
        return functional.cross_entropy(model(points), labels)

    minimise(model.parameters(), loss, rate=3e-3)


@training("an encoder cut off from its decoder", "FrozenLayers")
def _():
    encoder, decoder, draw = dense(16, 32, 4), dense(4, 32, 16), batches(clouds(800))

    def loss(_):
        points, _ = draw()
        return functional.mse_loss(decoder(encoder(points).detach()), points)

    minimise([*encoder.parameters(), *decoder.parameters()], loss)


@training("samples that are poisoned", "LossSpike")
def _():
    model = dense(9, 64, 1)

    def loss(step):
        points = torch.randn(32, 9)
        wanted = 60 + 12 * points[:, :1]
        if step % 50 == 40:
            points[7] *= 3e4
        return functional.mse_loss(model(points), wanted)

    minimise(model.parameters(), loss, rate=5e-3, steps=300)


@training("a penalty of log 0 that no gradient shows", "NonFiniteProvenance")
def _():
    model, draw = dense(16, 32, 5), batches(clouds(800))

    def loss(_):
        points, labels = draw()
        scores = model(points)
        return functional.cross_entropy(scores, labels) - 0.01 * torch.log(torch.relu(scores)).mean()

    minimise(model.parameters(), loss)


if __name__ == "__main__":
    torch.set_num_threads(1)
    torch.manual_seed(0)
    GLANCES[sys.argv[1]][0]()
