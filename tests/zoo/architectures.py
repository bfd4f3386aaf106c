"""Small real trainings of many kinds of models, sick in known ways or healthy but easily suspected.

    architectures.py NAME

Each is a function; what check is expected to say of it stands above it: the rules of which at least one must be named
as a cause, or nothing.
"""

import math
import sys

import torch
import torch.nn.functional as functional
from torch import nn

ARCHITECTURES = {}  # name -> (function, rules)


def training(name, *rules):
    def add(function):
        ARCHITECTURES[name] = (function, rules)
        return function

    return add


# ---- data


def images(count, classes=4, seed=0, noise=0.5):
    """Noisy copies of one picture per class, and the classes."""
    drawn = torch.Generator().manual_seed(seed)
    pictures = torch.randn(classes, 1, 12, 12, generator=torch.Generator().manual_seed(99))
    labels = torch.randint(0, classes, (count,), generator=drawn)
    return pictures[labels] + noise * torch.randn(count, 1, 12, 12, generator=drawn), labels


def sentences(count, seed=0, length=20):
    """Tokens, and whether most of them are low numbers."""
    tokens = torch.randint(0, 50, (count, length), generator=torch.Generator().manual_seed(seed))
    return tokens, ((tokens < 25).sum(1) > length // 2).long()


# ---- models


class Convolutions(nn.Module):
    def __init__(self, normalised=True, classes=4, softmax=False):
        super().__init__()
        self.first = nn.Conv2d(1, 8, 3, padding=1)
        self.first_norm = nn.BatchNorm2d(8) if normalised else nn.Identity()
        self.second = nn.Conv2d(8, 16, 3, padding=1)
        self.second_norm = nn.BatchNorm2d(16) if normalised else nn.Identity()
        self.pool = nn.MaxPool2d(2)
        self.hidden = nn.Linear(16 * 9, 32)
        self.head = nn.Linear(32, classes)
        self.softmax = softmax

    def forward(self, x):
        x = self.pool(functional.relu(self.first_norm(self.first(x))))
        x = self.pool(functional.relu(self.second_norm(self.second(x))))
        x = self.head(functional.relu(self.hidden(x.flatten(1))))
        return functional.softmax(x, 1) if self.softmax else x


class Recurrent(nn.Module):
    def __init__(self):
        super().__init__()
        self.embedding = nn.Embedding(50, 16)
        self.cells = nn.LSTM(16, 32, batch_first=True)
        self.head = nn.Linear(32, 2)

    def forward(self, tokens):
        return self.head(self.cells(self.embedding(tokens))[0][:, -1])


class Language(nn.Module):
    def __init__(self, words=40, width=32):
        super().__init__()
        self.embedding = nn.Embedding(words, width)
        self.places = nn.Parameter(torch.randn(1, 16, width) * 0.02)
        self.layers = nn.TransformerEncoder(nn.TransformerEncoderLayer(width, 4, 64, 0.1, batch_first=True), 2)
        self.head = nn.Linear(width, words, bias=False)
        self.head.weight = self.embedding.weight
        nn.init.normal_(self.embedding.weight, std=0.1)

    def forward(self, tokens):
        mask = nn.Transformer.generate_square_subsequent_mask(tokens.shape[1])
        return self.head(self.layers(self.embedding(tokens) + self.places, mask=mask, is_causal=True))


class Residual(nn.Module):
    """Branches that start at zero, as many residual networks have them."""

    def __init__(self):
        super().__init__()
        self.stem = nn.Conv2d(1, 8, 3, padding=1)
        self.branches = nn.ModuleList([nn.Conv2d(8, 8, 3, padding=1) for _ in range(4)])
        self.norms = nn.ModuleList([nn.BatchNorm2d(8) for _ in range(4)])
        self.activation = nn.ReLU(inplace=True)
        self.head = nn.Linear(8, 4)
        for norm in self.norms:
            nn.init.zeros_(norm.weight)

    def forward(self, x):
        x = self.activation(self.stem(x))
        for branch, norm in zip(self.branches, self.norms):
            x = self.activation(x + norm(branch(x)))
        return self.head(x.mean((2, 3)))


def dense(*widths, activation=nn.ReLU):
    layers = [nn.Flatten()]
    for inputs, outputs in zip(widths, widths[1:]):
        layers += [nn.Linear(inputs, outputs), activation()]
    return nn.Sequential(*layers[:-1])


def fit(model, data, optimizer, loss=None, steps=200, batch=32, held_out=None, schedule=None, clip=None, retrains=True):
    """An ordinary loop, with an evaluation at every twentieth step where data is held out for it."""
    inputs, answers = data
    loss = loss or nn.CrossEntropyLoss()
    drawn = torch.Generator().manual_seed(1)
    model.train()
    for step in range(steps):
        if retrains:
            model.train()
        chosen = torch.randint(0, len(inputs), (batch,), generator=drawn)
        optimizer.zero_grad()
        loss(model(inputs[chosen]), answers[chosen]).backward()
        if clip:
            nn.utils.clip_grad_norm_(model.parameters(), clip)
        optimizer.step()
        if schedule:
            schedule.step()
        if held_out and step % 20 == 19:
            model.eval()
            with torch.no_grad():
                loss(model(held_out[0]), held_out[1])


def learn_language(rate, warm_up, steps=250):
    model = Language()
    optimizer = torch.optim.AdamW(model.parameters(), lr=rate)
    schedule = torch.optim.lr_scheduler.LambdaLR(
        optimizer,
        lambda step: min(1, step / warm_up) * 0.5 * (1 + math.cos(math.pi * step / steps)) if warm_up else 1.0,
    )
    for _ in range(steps):
        counted = torch.randint(0, 40, (16, 1)) + torch.randint(1, 3, (16, 1)) * torch.arange(17)
        tokens = counted % 40
        optimizer.zero_grad()
        scores = model(tokens[:, :-1])
        functional.cross_entropy(scores.reshape(-1, 40), tokens[:, 1:].reshape(-1)).backward()
        nn.utils.clip_grad_norm_(model.parameters(), 1.0)
        optimizer.step()
        schedule.step()


# ---- healthy


@training("convolutions, momentum, falling rate")
def _():
    model = Convolutions()
    optimizer = torch.optim.SGD(model.parameters(), 0.05, momentum=0.9, weight_decay=1e-4)
    schedule = torch.optim.lr_scheduler.StepLR(optimizer, 80, 0.1)
    fit(model, images(1000), optimizer, schedule=schedule, held_out=images(300, seed=5))


@training("recurrent, clipped")
def _():
    model = Recurrent()
    fit(model, sentences(2000), torch.optim.Adam(model.parameters(), 5e-3), clip=1.0, held_out=sentences(300, 7))


@training("language model, warm-up and cosine, tied weights")
def _():
    learn_language(3e-3, warm_up=30)


@training("adversarial")
def _():
    maker, judge = dense(8, 32, 2), nn.Sequential(nn.Linear(2, 32), nn.LeakyReLU(0.2), nn.Linear(32, 1))
    makers = torch.optim.Adam(maker.parameters(), 1e-3, betas=(0.5, 0.9))
    judges = torch.optim.Adam(judge.parameters(), 1e-3, betas=(0.5, 0.9))
    loss, yes, no = nn.BCEWithLogitsLoss(), torch.ones(64, 1), torch.zeros(64, 1)
    for _ in range(200):
        noise = torch.randn(64, 8)
        judges.zero_grad()
        real = torch.randn(64, 2) * 0.3 + torch.tensor([1.0, 2.0])
        (loss(judge(real), yes) + loss(judge(maker(noise).detach()), no)).backward()
        judges.step()
        makers.zero_grad()
        loss(judge(maker(noise)), yes).backward()
        makers.step()


@training("large regression targets")
def _():
    points = torch.randn(2000, 10)
    model = dense(10, 64, 1)
    answers = (points @ torch.randn(10, 1)) * 500 + 1000
    fit(model, (points, answers), torch.optim.Adam(model.parameters(), 3e-2), nn.MSELoss(), steps=300)


@training("linear regression to convergence, full batches")
def _():
    points = torch.randn(500, 5)
    answers = points @ torch.randn(5, 1) + 0.3
    model = nn.Linear(5, 1)
    optimizer = torch.optim.SGD(model.parameters(), 0.1)
    for _ in range(300):
        optimizer.zero_grad()
        functional.mse_loss(model(points), answers).backward()
        optimizer.step()


@training("embedding with unused rows")
def _():
    model = nn.Sequential(nn.EmbeddingBag(5000, 16), nn.Linear(16, 2))
    tokens = torch.randint(0, 5000, (2000, 8))
    fit(model, (tokens, tokens[:, 0] % 2), torch.optim.Adam(model.parameters(), 1e-2), steps=250)


@training("warm restarts")
def _():
    model = Convolutions()
    optimizer = torch.optim.SGD(model.parameters(), 0.1, momentum=0.9)
    schedule = torch.optim.lr_scheduler.CosineAnnealingWarmRestarts(optimizer, 50)
    fit(model, images(1000), optimizer, schedule=schedule, steps=250, held_out=images(300, seed=5))


@training("converged, and goes on")
def _():
    model = Convolutions()
    optimizer = torch.optim.Adam(model.parameters(), 1e-3)
    fit(model, images(300, noise=0.1), optimizer, steps=300, held_out=images(300, seed=5, noise=0.1))


@training("target network")
def _():
    chooser, target = dense(4, 32, 2), dense(4, 32, 2)
    target.load_state_dict(chooser.state_dict())
    optimizer = torch.optim.Adam(chooser.parameters(), 1e-3)
    for step in range(250):
        states, actions = torch.randn(64, 4), torch.randint(0, 2, (64, 1))
        with torch.no_grad():
            best = target(torch.randn(64, 4)).max(1, keepdim=True)[0]
        wanted = states[:, :1] * (actions * 2 - 1).float() + 0.9 * best
        optimizer.zero_grad()
        functional.smooth_l1_loss(chooser(states).gather(1, actions), wanted).backward()
        optimizer.step()
        if step % 50 == 0:
            target.load_state_dict(chooser.state_dict())


@training("a teacher and its student")
def _():
    teacher, student = Convolutions(), Convolutions(normalised=False)
    points, labels = images(800)
    fit(teacher, (points, labels), torch.optim.Adam(teacher.parameters(), 1e-3), steps=80)
    teacher.eval()
    optimizer = torch.optim.Adam(student.parameters(), 1e-3)
    for _ in range(120):
        chosen = torch.randint(0, 800, (32,))
        with torch.no_grad():
            answers = functional.softmax(teacher(points[chosen]), 1)
        optimizer.zero_grad()
        said = functional.log_softmax(student(points[chosen]), 1)
        functional.kl_div(said, answers, reduction="batchmean").backward()
        optimizer.step()


@training("residual branches that start at zero")
def _():
    model = Residual()
    fit(model, images(1000), torch.optim.SGD(model.parameters(), 0.1, momentum=0.9), held_out=images(300, seed=5))


@training("few pixels are positive")
def _():
    model = nn.Sequential(nn.Conv2d(1, 8, 3, padding=1), nn.ReLU(), nn.Conv2d(8, 1, 3, padding=1))
    points = torch.randn(500, 1, 12, 12)
    answers = (functional.avg_pool2d(points, 3, 1, 1) > 0.6).float()
    fit(model, (points, answers), torch.optim.Adam(model.parameters(), 3e-3), nn.BCEWithLogitsLoss())


@training("one cycle of the rate, up for a third of the run")
def _():
    model = dense(144, 64, 64, 4)
    optimizer = torch.optim.SGD(model.parameters(), 0.05, momentum=0.9)
    schedule = torch.optim.lr_scheduler.OneCycleLR(optimizer, 0.1, total_steps=301)
    fit(model, images(2000, noise=2.0), optimizer, schedule=schedule, steps=300)


# ---- sick


@training("language model, rate far too high", "LearningRateSanity")
def _():
    learn_language(1.0, warm_up=0)


@training("softmax before a loss that holds one", "LossActivationMismatch")
def _():
    model = Convolutions(softmax=True)
    fit(model, images(1000), torch.optim.SGD(model.parameters(), 0.01))


@training("all weights zero", "PoorWeightInitialization")
def _():
    model = dense(144, 32, 32, 4)
    for parameter in model.parameters():
        nn.init.zeros_(parameter)
    fit(model, images(1000), torch.optim.SGD(model.parameters(), 0.1))


@training("all weights equal", "PoorWeightInitialization")
def _():
    model = dense(144, 32, 32, 4)
    for parameter in model.parameters():
        nn.init.constant_(parameter, 0.05)
    fit(model, images(1000), torch.optim.Adam(model.parameters(), 1e-3))


@training("last layer far too large", "PoorWeightInitialization", "InitialLoss")
def _():
    model = Convolutions(normalised=False)
    with torch.no_grad():
        model.head.weight.mul_(300)
    fit(model, images(1000), torch.optim.SGD(model.parameters(), 1e-4))


@training("weights far too small for the depth", "PoorWeightInitialization", "VanishingGradient")
def _():
    model = dense(144, *[64] * 8, 4, activation=nn.Tanh)
    for parameter in model.parameters():
        if parameter.ndim == 2:
            nn.init.normal_(parameter, std=0.01)
    fit(model, images(1000), torch.optim.SGD(model.parameters(), 0.05))


@training("raw bytes of images", "InputRange")
def _():
    points, labels = images(1000)
    model = Convolutions(normalised=False)
    bytes_of = ((points + 3) / 6 * 255).clamp(0, 255)
    fit(model, (bytes_of, labels), torch.optim.SGD(model.parameters(), 0.01))


@training("a column that nobody scaled", "InputRange")
def _():
    points = torch.randn(1000, 10)
    answers = points[:, :1].clone()
    points[:, 3] = points[:, 3] * 3e4 + 1e5
    model = dense(10, 32, 1)
    fit(model, (points, answers), torch.optim.Adam(model.parameters(), 1e-3), nn.MSELoss())


@training("an encoder cut off from the loss", "FrozenLayers")
def _():
    class CutOff(nn.Module):
        def __init__(self):
            super().__init__()
            self.encoder = dense(144, 32)
            self.head = nn.Linear(32, 4)

        def forward(self, x):
            return self.head(functional.relu(self.encoder(x)).detach())

    model = CutOff()
    fit(model, images(1000), torch.optim.Adam(model.parameters(), 1e-3))


@training("a head whose rate is zero", "FrozenLayers")
def _():
    model = Convolutions()
    heads = [*model.hidden.parameters(), *model.head.parameters()]
    others = [p for name, p in model.named_parameters() if not name.startswith(("hidden", "head"))]
    fit(model, images(1000), torch.optim.SGD([{"params": others}, {"params": heads, "lr": 0.0}], lr=0.05))


@training("one sample in fifty is of the other class", "ClassImbalance")
def _():
    points, labels = images(4000, classes=2, noise=3.0)
    kept = (labels == 0) | (torch.rand(4000) < 0.02)
    model = Convolutions(classes=2)
    fit(model, (points[kept], labels[kept]), torch.optim.Adam(model.parameters(), 1e-3))


@training("logarithm of zero in a loss written by hand", "NonFiniteProvenance")
def _():
    model = nn.Sequential(nn.Linear(10, 16), nn.ReLU(), nn.Linear(16, 2), nn.Softmax(1))
    points = torch.randn(1000, 10)
    points[500] = 1e4
    labels = (points[:, 0] > 0).long()
    optimizer = torch.optim.Adam(model.parameters(), 1e-2)
    for _ in range(200):
        chosen = torch.randint(0, 1000, (32,))
        optimizer.zero_grad()
        (-torch.log(model(points[chosen])[torch.arange(32), labels[chosen]])).mean().backward()
        optimizer.step()


@training("never back in training mode", "TrainEvalMismatch")
def _():
    model = Convolutions()
    optimizer = torch.optim.Adam(model.parameters(), 1e-3)
    fit(model, images(1000), optimizer, held_out=images(300, seed=5), retrains=False)


@training("gradients clipped to nothing", "LearningRateSanity")
def _():
    model = Convolutions(normalised=False)
    fit(model, images(1000), torch.optim.SGD(model.parameters(), 0.01), clip=1e-6)


@training("weight decay that outweighs the loss", "LearningRateSanity")
def _():
    model = Convolutions(normalised=False)
    fit(model, images(1000), torch.optim.SGD(model.parameters(), 0.1, weight_decay=1.0), steps=300)


@training("few noisy samples learned by heart", "Overfit")
def _():
    model = dense(144, 256, 4)
    held_out = images(500, seed=5, noise=6.0)
    fit(model, images(80, noise=6.0), torch.optim.Adam(model.parameters(), 1e-3), steps=400, held_out=held_out)


@training("rate so high that it gets nowhere", "LearningRateSanity", "OscillatingLoss")
def _():
    points, labels = images(2000, noise=2.0)
    model = dense(144, 64, 64, 4)
    fit(model, (points, labels), torch.optim.Adam(model.parameters(), 0.3), steps=250)


@training("one sample in forty is a one", "ClassImbalance")
def _():
    points, labels = images(6000, classes=2, noise=3.0)
    kept = (labels == 0) | (torch.rand(6000) < 0.025)
    model = dense(144, 32, 1)
    answers = labels[kept].float()[:, None]
    fit(model, (points[kept], answers), torch.optim.Adam(model.parameters(), 1e-3), nn.BCEWithLogitsLoss(), batch=64)


@training("predictions in a column, labels in a row", "LossActivationMismatch")
def _():
    points = torch.randn(1000, 8)
    model = dense(8, 32, 1)
    answers = points @ torch.randn(8)
    fit(model, (points, answers), torch.optim.Adam(model.parameters(), 1e-2), nn.MSELoss())


if __name__ == "__main__":
    torch.set_num_threads(1)
    torch.manual_seed(0)
    ARCHITECTURES[sys.argv[1]][0]()
