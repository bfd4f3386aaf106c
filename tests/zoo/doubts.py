"""Trainings whose numbers could mean two things: what looks like an activation, a collapse or a sample too few.

    doubts.py NAME

As in strangers.py, the rules of which at least one must be named as a cause stand above each.
"""

import sys

import torch
import torch.nn.functional as functional
from torch import nn

from architectures import dense
from strangers import clouds, minimise

DOUBTS = {}  # name -> (function, rules)


def training(name, *rules):
    def add(function):
        DOUBTS[name] = (function, rules)
        return function

    return add


@training("contrast of samples, where none is asked about itself")
def _():
    points, _labels = clouds(1000)
    model = nn.Sequential(nn.Linear(points.shape[1], 48), nn.BatchNorm1d(48), nn.ReLU(), nn.Linear(48, 16))
    partners = torch.cat([torch.arange(32) + 32, torch.arange(32)])

    def loss(_):
        some = points[torch.randint(0, len(points), (32,))]
        views = torch.cat([some + 0.2 * torch.randn_like(some) for _ in range(2)])
        answers = functional.normalize(model(views), dim=1)
        likeness = answers @ answers.T / 0.3
        return functional.cross_entropy(likeness.fill_diagonal_(-torch.inf), partners)

    minimise(model.parameters(), loss, rate=2e-3)


@training("an adversary whose first scores are small and positive")
def _():
    generator = nn.Sequential(nn.Linear(8, 32), nn.BatchNorm1d(32), nn.ReLU(), nn.Linear(32, 16), nn.Tanh())
    adversary = nn.Sequential(nn.Linear(16, 32), nn.LeakyReLU(0.2), nn.Linear(32, 1))
    with torch.no_grad():
        adversary[2].weight.mul_(0.3)
        adversary[2].bias.fill_(0.5)
    optimizers = [torch.optim.Adam(model.parameters(), 2e-4, betas=(0.5, 0.999)) for model in (generator, adversary)]
    criterion = nn.BCEWithLogitsLoss()
    kinds = torch.tanh(torch.randn(3, 16))
    yes, no = torch.ones(32, 1), torch.zeros(32, 1)
    for _ in range(200):
        real = kinds[torch.randint(0, 3, (32,))] + 0.1 * torch.randn(32, 16)
        made = generator(torch.randn(32, 8))
        optimizers[1].zero_grad()
        (criterion(adversary(real), yes) + criterion(adversary(made.detach()), no)).backward()
        optimizers[1].step()
        optimizers[0].zero_grad()
        criterion(adversary(made), yes).backward()
        optimizers[0].step()


@training("a softmax over the samples, before a loss that holds one", "LossActivationMismatch")
def _():
    points, labels = clouds(1000)
    model = nn.Sequential(dense(points.shape[1], 32, 5), nn.Softmax(dim=0))
    criterion = nn.CrossEntropyLoss()

    def loss(_):
        some = torch.randint(0, len(points), (32,))
        return criterion(model(points[some]), labels[some])

    minimise(model.parameters(), loss, steps=250, rate=3e-3)


@training("one sample over and over", "InputRange")
def _():
    points, labels = clouds(1000)
    model = dense(points.shape[1], 32, 5)
    criterion = nn.CrossEntropyLoss()

    def loss(_):
        return criterion(model(points[0].repeat(32, 1)), labels[torch.randint(0, len(points), (32,))])

    minimise(model.parameters(), loss, steps=150)


if __name__ == "__main__":
    torch.manual_seed(0)
    torch.set_num_threads(1)
    DOUBTS[sys.argv[1]][0]()
