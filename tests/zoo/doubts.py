"""Trainings whose numbers could mean two things: what looks like an activation, a collapse or a sample too few.

    doubts.py NAME

As in strangers.py, the rules of which at least one must be named as a cause stand above each.
"""

import sys

import torch
import torch.nn.functional as functional
from torch import nn

from architectures import dense
from strangers import batches, clouds, minimise

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


class Learned(nn.Module):
    """Layers that were trained for other classes, and are left as they are, in evaluation mode; a head of its own."""

    def __init__(self):
        super().__init__()
        self.body = nn.Sequential(nn.Linear(16, 32), nn.BatchNorm1d(32), nn.ReLU(), nn.Dropout(0.2))
        self.head = nn.Linear(32, 5)
        points, _labels = clouds(500)
        self.body(points)
        self.body.requires_grad_(False)
        self.eval()

    def forward(self, x):
        return self.head(self.body(x))


@training("a new head on layers that keep their statistics")
def _():
    model = Learned()
    draw = batches(clouds(1000))
    criterion = nn.CrossEntropyLoss()

    def loss(_):
        points, labels = draw()
        return criterion(model(points), labels)

    minimise(model.head.parameters(), loss, steps=250, rate=5e-3)


@training("a new head that came after the optimizer", "SilentOptimizer", "FrozenLayers")
def _():
    model = Learned()
    optimizer = torch.optim.Adam(model.head.parameters(), 5e-3)
    model.head = nn.Linear(32, 5)
    draw = batches(clouds(1000))
    criterion = nn.CrossEntropyLoss()
    for _ in range(250):
        points, labels = draw()
        optimizer.zero_grad()
        criterion(model(points), labels).backward()
        optimizer.step()


@training("a loss that is made as large as it can be", "LossDivergence")
def _():
    model = dense(16, 32, 5)
    draw = batches(clouds(1000))
    criterion = nn.CrossEntropyLoss()

    def loss(_):
        points, labels = draw()
        return -criterion(model(points), labels)

    minimise(model.parameters(), loss, steps=250)


@training("probabilities before a loss over sequences", "LossActivationMismatch")
def _():
    model = dense(16, 32, 6)
    model[0] = nn.Identity()  # frames stay apart
    points, labels = clouds(1000)
    lengths = torch.full((16,), 3)

    def loss(_):
        some = torch.randint(0, len(points), (16, 3))
        frames = points[some].repeat_interleave(4, 1).transpose(0, 1)
        return functional.ctc_loss(model(frames).softmax(-1), labels[some] + 1, 4 * lengths, lengths)

    minimise(model.parameters(), loss, rate=3e-3)


class Adapter(nn.Module):
    """What a frozen layer is corrected by: it starts at zero."""

    def __init__(self, layer):
        super().__init__()
        self.layer = layer.requires_grad_(False)
        self.down = nn.Parameter(0.05 * torch.randn(4, layer.in_features))
        self.up = nn.Parameter(torch.zeros(layer.out_features, 4))

    def forward(self, x):
        return self.layer(x) + x @ self.down.t() @ self.up.t()


@training("a loss that is cut off from adapters, which start at zero", "SilentOptimizer")
def _():
    model = nn.Sequential(Adapter(nn.Linear(16, 32)), nn.ReLU(), Adapter(nn.Linear(32, 5)))
    draw = batches(clouds(1000))
    criterion = nn.CrossEntropyLoss()

    def loss(_):
        points, labels = draw()
        return torch.tensor(criterion(model(points), labels).item(), requires_grad=True)

    minimise([p for p in model.parameters() if p.requires_grad], loss)


class Neighbours(nn.Module):
    """Words and their neighbours, whose table starts at zero."""

    def __init__(self):
        super().__init__()
        self.words, self.neighbours = nn.Embedding(40, 16), nn.Embedding(40, 16)
        nn.init.uniform_(self.words.weight, -0.03, 0.03)
        nn.init.zeros_(self.neighbours.weight)

    def forward(self, words, others):
        return (self.words(words) * self.neighbours(others)).sum(1)


@training("a rate that is too low, and a table that starts at zero", "LearningRateSanity")
def _():
    model = Neighbours()

    def loss(_):
        words = torch.randint(0, 40, (64,))
        near, far = (words + 1) % 40, torch.randint(0, 40, (64,))
        return -(functional.logsigmoid(model(words, near)) + functional.logsigmoid(-model(words, far))).mean()

    minimise(model.parameters(), loss, steps=300, rate=1e-8)


class Parts(nn.Module):
    """Shared layers, and two parts that answer by what these give."""

    def __init__(self, classes, backward=1.0):
        super().__init__()
        self.shared, self.place, self.kind = dense(16, 32, 32), nn.Linear(32, 4), nn.Linear(32, classes)
        self.backward = backward  # what gradients of the second part are multiplied by where it begins

    def forward(self, x):
        shared = torch.relu(self.shared(x))
        seen = shared.detach() + self.backward * (shared - shared.detach())
        return self.place(shared), self.kind(seen)


@training("one part of two, whose labels belong to other samples", "Plateau", "LossNotDecreasing")
def _():
    model = Parts(5)
    points, labels = clouds(1000)
    strange = labels[torch.randperm(len(labels))]
    distance, kinds = nn.SmoothL1Loss(), nn.CrossEntropyLoss()

    def loss(_):
        some = torch.randint(0, len(points), (32,))
        places, scores = model(points[some])
        return distance(places, points[some][:, :4]) + kinds(scores, strange[some])

    minimise(model.parameters(), loss, steps=300)


@training("a part that is to fail to tell where samples come from")
def _():
    model = Parts(2, backward=-1.0)
    points, _labels = clouds(1000)
    origins = torch.randint(0, 2, (len(points),))
    distance, kinds = nn.SmoothL1Loss(), nn.CrossEntropyLoss()

    def loss(_):
        some = torch.randint(0, len(points), (32,))
        places, scores = model(points[some])
        return distance(places, points[some][:, :4]) + kinds(scores, origins[some])

    minimise(model.parameters(), loss, steps=300)


@training("samples that are made in evaluation mode, by their gradients")
def _():
    model = nn.Sequential(nn.Linear(16, 32), nn.BatchNorm1d(32), nn.ReLU(), nn.Linear(32, 5))
    draw = batches(clouds(1000))
    criterion = nn.CrossEntropyLoss()

    def loss(_):
        points, labels = draw()
        model.eval()
        points.requires_grad_(True)
        criterion(model(points), labels).backward()
        model.train()
        model.zero_grad()
        return criterion(model((points + 0.1 * points.grad.sign()).detach()), labels)

    minimise(model.parameters(), loss, steps=250)


if __name__ == "__main__":
    torch.manual_seed(0)
    torch.set_num_threads(1)
    DOUBTS[sys.argv[1]][0]()
