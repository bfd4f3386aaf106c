"""Trainings whose steps are too large or too small in ways that do not show in the last loss, and what resembles them.

    rates.py NAME

As in strangers.py, the rules of which at least one must be named as a cause stand above each.
"""

import sys

import torch
import torch.nn.functional as functional
from torch import nn

from architectures import dense
from strangers import batches, clouds, minimise

RATES = {}  # name -> (function, rules)


def training(name, *rules):
    def add(function):
        RATES[name] = (function, rules)
        return function

    return add


def quantiles(rate):
    """The quantiles of what scatters by as much as its second column."""
    model, wanted = dense(6, 64, 3), torch.tensor([0.1, 0.5, 0.9])

    def loss(_):
        points = torch.randn(64, 6)
        left = (3 * points[:, 0] + points[:, 1].abs() * torch.randn(64))[:, None] - model(points)
        return torch.max(wanted * left, (wanted - 1) * left).sum(1).mean()

    minimise(model.parameters(), loss, rate=rate, optimizer=torch.optim.RMSprop)


@training("quantiles")
def _():
    quantiles(1e-3)


@training("quantiles, thrown off before they are learned", "LearningRateSanity")
def _():
    quantiles(0.3)


def pairs(rate):
    """Distances of pairs, small for those of one class."""
    model, draw = nn.Sequential(nn.Linear(16, 64), nn.ReLU(), nn.BatchNorm1d(64), nn.Linear(64, 8)), batches(clouds(800))

    def loss(_):
        (left, ones), (right, others) = draw(), draw()
        apart = functional.pairwise_distance(model(left), model(right))
        differ = (ones != others).float()
        return ((1 - differ) * apart**2 + differ * torch.clamp(2 - apart, min=0) ** 2).mean()

    minimise(model.parameters(), loss, rate=rate)


@training("pairs")
def _():
    pairs(1e-3)


@training("pairs whose first steps ruin the model", "LearningRateSanity")
def _():
    pairs(1.0)


class Words(nn.Module):
    """Vectors of words, and those of their neighbours, which start at zero."""

    def __init__(self):
        super().__init__()
        self.centres, self.contexts = nn.Embedding(120, 16), nn.Embedding(120, 16)
        nn.init.uniform_(self.centres.weight, -0.03, 0.03)
        nn.init.zeros_(self.contexts.weight)

    def forward(self, centres, contexts, others):
        vectors = self.centres(centres)
        likely = functional.logsigmoid((vectors * self.contexts(contexts)).sum(1))
        unlikely = functional.logsigmoid(-(self.contexts(others) @ vectors[:, :, None])).sum((1, 2))
        return -(likely + unlikely).mean()


@training("vectors of words and of their neighbours")
def _():
    model = Words()

    def loss(_):
        centres = torch.randint(0, 120, (64,))
        contexts = (centres + 6 * torch.randint(1, 20, (64,))) % 120
        return model(centres, contexts, torch.randint(0, 120, (64, 5)))

    minimise(model.parameters(), loss, rate=0.01, steps=300)


class Factors(nn.Module):
    """A layer that is kept, and two factors beside it, one of which starts at zero."""

    def __init__(self, layer, rank=4):
        super().__init__()
        self.layer = layer.requires_grad_(False)
        self.down = nn.Parameter(torch.randn(rank, layer.in_features) / layer.in_features**0.5)
        self.up = nn.Parameter(torch.zeros(layer.out_features, rank))

    def forward(self, x):
        return self.layer(x) + x @ self.down.T @ self.up.T


def factors(rate, clear=True):
    model, draw = nn.Sequential(Factors(nn.Linear(16, 32)), nn.ReLU(), Factors(nn.Linear(32, 5))), batches(clouds(1000))
    chosen = torch.optim.AdamW([p for p in model.parameters() if p.requires_grad], rate)
    for _ in range(200):
        points, labels = draw()
        if clear:
            chosen.zero_grad()
        functional.cross_entropy(model(points), labels).backward()
        chosen.step()


@training("factors beside layers that are kept")
def _():
    factors(5e-3)


@training("factors that hardly move", "LearningRateSanity")
def _():
    factors(5e-8)


@training("factors whose gradients are never cleared", "MissingZeroGrad")
def _():
    factors(5e-3, clear=False)


@training("gradients cleared between the last pass and the step", "SilentOptimizer")
def _():
    model, draw = dense(16, 32, 5), batches(clouds(1000))
    chosen = torch.optim.AdamW(model.parameters(), 2e-3)
    for step in range(400):
        points, labels = draw()
        (functional.cross_entropy(model(points), labels) / 4).backward()
        if step % 4 == 3:
            chosen.zero_grad()
            chosen.step()


if __name__ == "__main__":
    torch.set_num_threads(1)
    torch.manual_seed(0)
    RATES[sys.argv[1]][0]()
