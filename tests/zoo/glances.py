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


@training("prices as they are", "InputRange")
def _():
    model = dense(10, 64, 1)

    def loss(_):
        points = torch.randn(32, 10)
        return functional.l1_loss(model(points), 2e4 + 4e3 * points[:, :1])

    minimise(model.parameters(), loss, steps=300)


@training("weights of people, learned")
def _():
    model = dense(10, 64, 1)
    nn.init.constant_(model[-1].bias, 120.0)

    def loss(_):
        points = torch.randn(64, 10)
        return functional.mse_loss(model(points), 120 + 30 * points[:, :1] - 15 * points[:, 1:2])

    minimise(model.parameters(), loss, steps=300, rate=5e-3)


@training("a batch after which nothing is as before", "LossSpike")
def _():
    model, draw = dense(16, 64, 5), batches(clouds(1000, noise=2.0), 40)

    def loss(step):
        points, labels = draw()
        return functional.cross_entropy(model(points * 1000 if step == 150 else points), labels)

    minimise(model.parameters(), loss, rate=0.05, steps=300, optimizer=torch.optim.SGD)


@training("batches of two, normalised", "TrainEvalMismatch")
def _():
    model = nn.Sequential(nn.Linear(16, 48), nn.BatchNorm1d(48), nn.ReLU(), nn.Linear(48, 5))
    draw = batches(clouds(800), 2)

    def loss(_):
        points, labels = draw()
        return functional.cross_entropy(model(points), labels)

    minimise(model.parameters(), loss, steps=300)


@training("batches of two images, normalised")
def _():
    model = nn.Sequential(nn.Conv2d(1, 12, 3, padding=1), nn.BatchNorm2d(12), nn.ReLU(), nn.Conv2d(12, 1, 1))

    def loss(_):
        images = torch.randn(2, 1, 16, 16)
        masks = (functional.avg_pool2d(images, 3, 1, 1) > 0).float()
        return functional.binary_cross_entropy_with_logits(model(images), masks)

    minimise(model.parameters(), loss, rate=5e-3)


@training("samples that are mixed")
def _():
    model, draw = dense(16, 64, 5), batches(clouds(1000), 32)
    mixture = torch.distributions.Beta(0.4, 0.4)

    def loss(_):
        (points, labels), (others, their_labels) = draw(), draw()
        share = mixture.sample()
        scores = model(share * points + (1 - share) * others)
        return share * functional.cross_entropy(scores, labels) + (1 - share) * functional.cross_entropy(
            scores, their_labels
        )

    minimise(model.parameters(), loss, rate=5e-3, steps=300)


class Block(nn.Module):
    """Answers a part of what is asked, and says what is left to explain."""

    def __init__(self):
        super().__init__()
        self.body, self.rest, self.answer = nn.Linear(24, 48), nn.Linear(48, 24), nn.Linear(48, 4)

    def forward(self, x):
        found = torch.relu(self.body(x))
        return x - self.rest(found), self.answer(found)


class Blocks(nn.Module):
    def __init__(self):
        super().__init__()
        self.blocks = nn.ModuleList(Block() for _ in range(3))

    def forward(self, x):
        answers = 0
        for block in self.blocks:
            x, answer = block(x)
            answers = answers + answer
        return answers


@training("what the last block leaves to explain")
def _():
    model = Blocks()

    def loss(_):
        waves = torch.sin(torch.arange(28) / 3 + 6 * torch.rand(48, 1))
        return functional.l1_loss(model(waves[:, :24]), waves[:, 24:])

    minimise(model.parameters(), loss)


@training("logarithms of shares that become zero", "NonFiniteProvenance")
def _():
    model = nn.Sequential(dense(8, 64, 1), nn.Sigmoid())
    data = 3 * torch.randn(600, 8)
    draw = batches((data, (data.sum(1, keepdim=True) > 0).float()), 64)

    def loss(_):
        points, labels = draw()
        share = model(points)
        return -(labels * torch.log(share) + (1 - labels) * torch.log(1 - share)).mean()

    minimise(model.parameters(), loss, rate=0.03, steps=150)


if __name__ == "__main__":
    torch.set_num_threads(1)
    torch.manual_seed(0)
    GLANCES[sys.argv[1]][0]()
