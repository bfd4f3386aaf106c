"""Trainings as strangers write them: other domains, other losses, and mistakes that leave a program running.

    strangers.py NAME

Each is a function; what check is expected to say of it stands above it: the rules of which at least one must be named
as a cause, or nothing.
"""

import copy
import sys

import torch
import torch.nn.functional as functional
from torch import nn

from architectures import dense, fit

STRANGERS = {}  # name -> (function, rules)


def training(name, *rules):
    def add(function):
        STRANGERS[name] = (function, rules)
        return function

    return add


def clouds(count, classes=5, noise=1.0, seed=0):
    """Points around one centre per class, and the classes."""
    drawn = torch.Generator().manual_seed(seed)
    centres = 1.2 * torch.randn(classes, 16, generator=torch.Generator().manual_seed(77))
    labels = torch.randint(0, classes, (count,), generator=drawn)
    return centres[labels] + noise * torch.randn(count, 16, generator=drawn), labels


def plane(count=1000):
    """Points, and a linear function of them, as a row."""
    points = torch.randn(count, 8)
    return points, points @ torch.randn(8)


def minimise(parameters, loss_of, steps=200, rate=1e-3, optimizer=torch.optim.Adam, **options):
    """A loop whose loss is a function of the step."""
    chosen = optimizer(parameters, rate, **options)
    for step in range(steps):
        chosen.zero_grad()
        loss_of(step).backward()
        chosen.step()


def batches(data, size=32):
    """A batch, drawn at random, at every call."""
    points, answers = data

    def draw():
        chosen = torch.randint(0, len(points), (size,))
        return points[chosen], answers[chosen]

    return draw


def train_in_two_parts(points, labels):
    """A classifier whose body and head have an optimizer each."""
    body, head = nn.Sequential(nn.Linear(16, 64), nn.ReLU()), nn.Linear(64, 5)
    model, draw = nn.Sequential(body, head), batches((points, labels), 64)
    chosen = [torch.optim.SGD(body.parameters(), 0.05, momentum=0.9), torch.optim.Adam(head.parameters(), 1e-3)]
    for _ in range(200):
        for optimizer in chosen:
            optimizer.zero_grad()
        x, y = draw()
        functional.cross_entropy(model(x), y).backward()
        for optimizer in chosen:
            optimizer.step()


# ---- healthy


@training("a body and a head with an optimizer each")
def _():
    train_in_two_parts(*clouds(2000))


@training("variational, a sum over all pixels")
def _():
    class Variational(nn.Module):
        def __init__(self):
            super().__init__()
            self.encoder, self.decoder = nn.Linear(64, 32), nn.Linear(4, 64)
            self.mean, self.spread = nn.Linear(32, 4), nn.Linear(32, 4)

        def forward(self, x):
            hidden = functional.relu(self.encoder(x))
            mean, spread = self.mean(hidden), self.spread(hidden)
            return torch.sigmoid(self.decoder(mean + torch.randn_like(mean) * (spread / 2).exp())), mean, spread

    model, pictures = Variational(), (torch.rand(10, 64) > 0.5).float()

    def loss(_):
        x = pictures[torch.randint(0, 10, (32,))]
        made, mean, spread = model(x)
        distance = -0.5 * torch.sum(1 + spread - mean.pow(2) - spread.exp())
        return functional.binary_cross_entropy(made, x, reduction="sum") + distance

    minimise(model.parameters(), loss, rate=2e-3)


@training("contrast of samples, where the first is always right")
def _():
    points, _ = clouds(2000, 20)
    asks, keys = dense(16, 64, 8), dense(16, 64, 8)

    def loss(_):
        x = points[torch.randint(0, 2000, (64,))]
        a, b = (functional.normalize(net(x + 0.3 * torch.randn_like(x)), dim=1) for net in (asks, keys))
        others = (a @ functional.normalize(torch.randn(8, 32), dim=0)) / 0.5
        return functional.cross_entropy(torch.cat([(a * b).sum(1, keepdim=True) / 0.5, others], 1), torch.zeros(64).long())

    minimise([*asks.parameters(), *keys.parameters()], loss)


@training("a policy and its rewards")
def _():
    policy = dense(4, 32, 2, activation=nn.Tanh)

    def loss(_):
        states = torch.randn(64, 4)
        choice = torch.distributions.Categorical(logits=policy(states))
        taken = choice.sample()
        rewards = (taken == (states[:, 0] > 0)).float()
        return -(choice.log_prob(taken) * (rewards - rewards.mean())).mean()

    minimise(policy.parameters(), loss, rate=5e-3)


@training("a policy that plays longer as it learns, and adds up its losses")
def _():
    policy = nn.Sequential(nn.Linear(2, 32), nn.Tanh(), nn.Linear(32, 2))
    optimizer = torch.optim.Adam(policy.parameters(), 1e-2)
    for _ in range(80):
        place, speed, chosen = 0.1 * torch.randn(1).item(), 0.0, []
        while abs(place) < 1 and len(chosen) < 100:
            choice = torch.distributions.Categorical(logits=policy(torch.tensor([[place, speed]])))
            taken = choice.sample()
            chosen.append(choice.log_prob(taken))
            speed += 0.1 * (2 * taken.item() - 1) + 0.1 * place
            place += 0.3 * speed
        optimizer.zero_grad()
        (-torch.cat(chosen) * torch.arange(len(chosen), 0, -1.0)).sum().backward()
        optimizer.step()


@training("likelihoods that grow beyond one")
def _():
    points, answers = plane()
    model = dense(8, 32, 2)

    def loss(_):
        chosen = torch.randint(0, 1000, (64,))
        said = model(points[chosen])
        spread = functional.softplus(said[:, 1]) + 1e-4
        return functional.gaussian_nll_loss(said[:, 0], answers[chosen], spread)

    minimise(model.parameters(), loss, rate=1e-2, steps=250)


@training("words that follow each other, learned by pairs")
def _():
    class Pairs(nn.Module):
        def __init__(self):
            super().__init__()
            self.words, self.contexts = nn.Embedding(200, 16), nn.Embedding(200, 16)
            nn.init.zeros_(self.contexts.weight)

        def forward(self, words, near, far):
            near = functional.logsigmoid((self.words(words) * self.contexts(near)).sum(1))
            far = functional.logsigmoid(-(self.words(words)[:, None] * self.contexts(far)).sum(2))
            return -(near + far.sum(1)).mean()

    model = Pairs()

    def loss(_):
        words = torch.randint(0, 200, (128,))
        return model(words, (words + torch.randint(1, 3, (128,))) % 200, torch.randint(0, 200, (128, 5)))

    minimise(model.parameters(), loss, rate=1e-2, steps=250)


@training("translated tokens, some of which never come")
def _():
    class Translator(nn.Module):
        def __init__(self):
            super().__init__()
            self.embedding, self.head = nn.Embedding(20, 32), nn.Linear(64, 20)
            self.reader, self.writer = nn.GRU(32, 64, batch_first=True), nn.GRU(32, 64, batch_first=True)

        def forward(self, given, before):
            return self.head(self.writer(self.embedding(before), self.reader(self.embedding(given))[1])[0])

    model = Translator()

    def loss(_):
        given = torch.randint(2, 20, (32, 6))
        wanted = given.flip(1)
        before = torch.cat([torch.ones(32, 1).long(), wanted[:, :-1]], 1)
        return functional.cross_entropy(model(given, before).flatten(0, 1), wanted.flatten())

    minimise(model.parameters(), loss, rate=5e-3, steps=150)


@training("low-rank changes of frozen layers")
def _():
    class LowRank(nn.Module):
        def __init__(self, layer):
            super().__init__()
            self.layer = layer.requires_grad_(False)
            self.down = nn.Parameter(torch.randn(4, layer.in_features) * 0.02)
            self.up = nn.Parameter(torch.zeros(layer.out_features, 4))

        def forward(self, x):
            return self.layer(x) + 2 * (x @ self.down.t() @ self.up.t())

    model = nn.Sequential(LowRank(nn.Linear(16, 64)), nn.ReLU(), LowRank(nn.Linear(64, 5)))
    fit(model, clouds(1000), torch.optim.AdamW([p for p in model.parameters() if p.requires_grad], 5e-3))


@training("a chosen action, played and remembered")
def _():
    chooser = dense(4, 32, 2)
    target = copy.deepcopy(chooser)
    optimizer = torch.optim.RMSprop(chooser.parameters(), 1e-3)
    states, actions, rewards = [], [], []
    for step in range(250):
        states.append(torch.randn(4))
        with torch.no_grad():
            actions.append(int(chooser(states[-1][None]).argmax()) if step % 3 else step % 2)
        rewards.append(float((states[-1][0] > 0) == actions[-1]))
        if step < 60:
            continue
        chosen = torch.randint(0, step, (32,))
        with torch.no_grad():
            later = target(torch.stack([states[k + 1] for k in chosen])).max(1).values
        wanted = torch.tensor([rewards[k] for k in chosen]) + 0.9 * later
        said = chooser(torch.stack([states[k] for k in chosen]))
        said = said.gather(1, torch.tensor([actions[k] for k in chosen])[:, None]).squeeze(1)
        optimizer.zero_grad()
        functional.smooth_l1_loss(said, wanted).backward()
        optimizer.step()


@training("much noise and little to learn")
def _():
    points = torch.randn(5000, 10)
    answers = 0.3 * points[:, :1] + torch.randn(5000, 1)
    model = dense(10, 32, 1)
    fit(model, (points, answers), torch.optim.Adam(model.parameters(), 3e-3), nn.MSELoss(), steps=300, batch=64)


@training("half precision that keeps its range")
def _():
    model = dense(16, 64, 5).bfloat16()
    draw = batches(clouds(1500), 64)

    def loss(_):
        points, labels = draw()
        return functional.cross_entropy(model(points.bfloat16()).float(), labels)

    minimise(model.parameters(), loss, rate=0.05, optimizer=torch.optim.SGD, momentum=0.9)


# ---- sick


@training("labels of other samples, for a body and a head with an optimizer each", "LossNotDecreasing", "Plateau")
def _():
    points, labels = clouds(20000)
    train_in_two_parts(points, labels[torch.randperm(20000)])


@training("scores where logarithms are meant", "LossActivationMismatch")
def _():
    model = dense(16, 64, 5)
    fit(model, clouds(1000), torch.optim.Adam(model.parameters(), 1e-3), nn.NLLLoss())


@training("a log-softmax over the samples", "LossActivationMismatch")
def _():
    model = nn.Sequential(dense(16, 64, 5), nn.LogSoftmax(dim=0))
    fit(model, clouds(1000), torch.optim.Adam(model.parameters(), 1e-3), nn.NLLLoss())


@training("a sigmoid before a function that holds one", "LossActivationMismatch")
def _():
    model = dense(16, 32, 1)
    draw = batches(clouds(1000, 2))

    def loss(_):
        points, labels = draw()
        return functional.binary_cross_entropy_with_logits(torch.sigmoid(model(points)), labels.float()[:, None])

    minimise(model.parameters(), loss)


@training("predictions in a row, labels in a column", "LossActivationMismatch")
def _():
    model, draw = dense(8, 32, 1), batches(plane())

    def loss(_):
        points, answers = draw()
        return functional.mse_loss(model(points).squeeze(1), answers[:, None])

    minimise(model.parameters(), loss, rate=5e-3)


@training("a loss of what the model said, not of the model", "SilentOptimizer")
def _():
    model, draw = dense(16, 64, 5), batches(clouds(1000))

    def loss(_):
        points, labels = draw()
        return functional.cross_entropy(model(points).detach().requires_grad_(), labels)

    minimise(model.parameters(), loss)


@training("gradients cleared before they are used", "SilentOptimizer")
def _():
    model, draw = dense(16, 64, 5), batches(clouds(1000))
    optimizer = torch.optim.SGD(model.parameters(), 0.1)
    for _ in range(150):
        points, labels = draw()
        functional.cross_entropy(model(points), labels).backward()
        optimizer.zero_grad()
        optimizer.step()


@training("a loss that counts mistakes", "VanishingGradient")
def _():
    model, draw = dense(16, 64, 5), batches(clouds(1000))

    def loss(_):
        points, labels = draw()
        said = model(points)
        return (said.argmax(1) != labels).float().mean() + 0 * said.sum()

    minimise(model.parameters(), loss)


@training("labels that are all the same", "ClassImbalance")
def _():
    points, labels = clouds(1000)
    model = dense(16, 64, 5)
    fit(model, (points, labels * 0), torch.optim.Adam(model.parameters(), 1e-3))


@training("data sorted by class", "ClassImbalance")
def _():
    points, labels = clouds(2000)
    order = labels.argsort()
    model = dense(16, 64, 5)
    parts = order.split(20)

    def loss(step):
        return functional.cross_entropy(model(points[parts[step % 100]]), labels[parts[step % 100]])

    minimise(model.parameters(), loss, rate=0.1, optimizer=torch.optim.SGD)


@training("inputs that were never filled", "InputRange")
def _():
    points, labels = clouds(1000)
    model = dense(16, 64, 5)
    fit(model, (torch.zeros_like(points), labels), torch.optim.Adam(model.parameters(), 1e-3))


@training("a rate that falls at every batch", "LearningRateSanity")
def _():
    model = dense(16, 64, 5)
    optimizer = torch.optim.SGD(model.parameters(), 0.05)
    fit(model, clouds(1000), optimizer, schedule=torch.optim.lr_scheduler.ExponentialLR(optimizer, 0.8), steps=300)


@training("a schedule made for a much shorter run", "LearningRateSanity")
def _():
    model = dense(16, 64, 5)
    optimizer = torch.optim.SGD(model.parameters(), 0.05)
    schedule = torch.optim.lr_scheduler.LambdaLR(optimizer, lambda step: max(0.0, 1 - step / 15))
    fit(model, clouds(1000), optimizer, schedule=schedule, steps=300)


@training("units that start as copies of one", "PoorWeightInitialization")
def _():
    model = dense(16, 64, 5)
    with torch.no_grad():
        model[1].weight.copy_(model[1].weight[:1].repeat(64, 1))
    fit(model, clouds(1000), torch.optim.SGD(model.parameters(), 0.05))


@training("an infinity in the middle of a computation", "NonFiniteProvenance")
def _():
    class Shares(nn.Module):
        def __init__(self):
            super().__init__()
            self.layers = dense(16, 32, 5)

        def forward(self, x):
            raised = torch.exp(60 * self.layers(x))
            return raised / raised.sum(1, keepdim=True)

    model, draw = Shares(), batches(clouds(1000))

    def loss(_):
        points, labels = draw()
        return functional.nll_loss(torch.log(model(points) + 1e-8), labels)

    minimise(model.parameters(), loss, rate=5e-3)


@training("a memory too short for what it reads", "Plateau", "LossNotDecreasing")
def _():
    class Reader(nn.Module):
        def __init__(self):
            super().__init__()
            self.cells, self.head = nn.RNN(4, 16, batch_first=True), nn.Linear(16, 2)

        def forward(self, x):
            return self.head(self.cells(x)[0][:, -1])

    model = Reader()

    def loss(_):
        points = torch.randn(64, 60, 4)
        return functional.cross_entropy(model(points), (points[:, 0, 0] > 0).long())

    minimise(model.parameters(), loss, rate=0.01, optimizer=torch.optim.SGD, steps=150)


if __name__ == "__main__":
    torch.set_num_threads(1)
    torch.manual_seed(0)
    STRANGERS[sys.argv[1]][0]()
