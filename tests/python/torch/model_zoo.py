"""Models that debuggers have broken: each is a class, made without arguments and called with ``batch()``."""

import torch
from torch import nn
from torch.utils.checkpoint import checkpoint


class Plain(nn.Module):
    """Two dense layers and a module for the activation."""

    def __init__(self):
        super().__init__()
        self.fc1, self.relu, self.fc2 = nn.Linear(6, 8), nn.ReLU(), nn.Linear(8, 3)

    def forward(self, x):
        return self.fc2(self.relu(self.fc1(x)))


class InPlace(Plain):
    """The activation overwrites its input."""

    def __init__(self):
        super().__init__()
        self.relu = nn.ReLU(inplace=True)


class Residual(nn.Module):
    """The output of a module is added to in place."""

    def __init__(self):
        super().__init__()
        self.inner = nn.Sequential(nn.Linear(6, 6), nn.ReLU(inplace=True), nn.Linear(6, 6))
        self.head = nn.Linear(6, 3)

    def forward(self, x):
        y = self.inner(x)
        y += x
        return self.head(y)


class Reused(nn.Module):
    """One module called three times, one parameter in two places."""

    def __init__(self):
        super().__init__()
        self.cell, self.head = nn.Linear(6, 6), nn.Linear(6, 6)
        self.head.weight = self.cell.weight
        self.last = nn.Linear(6, 3)

    def forward(self, x):
        for _ in range(3):
            x = torch.tanh(self.cell(x))
        return self.last(self.head(x))


class Frozen(Plain):
    """A layer that does not learn."""

    def __init__(self):
        super().__init__()
        self.fc1.requires_grad_(False)


class Odd(nn.Module):
    """Modules that return tuples, dicts and nothing."""

    class Pair(nn.Linear):
        def forward(self, x):
            return super().forward(x), None, [x.sum()]

    class Named(nn.Linear):
        def forward(self, x):
            return {"out": super().forward(x), "rest": {"norm": x.norm(), "text": "none"}}

    class Silent(nn.Module):
        def forward(self, x):
            self.seen = int(x.shape[0])

    def __init__(self):
        super().__init__()
        self.pair, self.named, self.silent = self.Pair(6, 6), self.Named(6, 3), self.Silent()

    def forward(self, x):
        y, _, (total,) = self.pair(x)
        self.silent(y)
        return self.named(y + total * 0.01)["out"]


class Recurrent(nn.Module):
    """An LSTM, whose forward pass returns nested tuples, with dropout between its layers."""

    def __init__(self):
        super().__init__()
        self.lstm, self.head = nn.LSTM(3, 5, num_layers=2, dropout=0.3, batch_first=True), nn.Linear(5, 3)

    def forward(self, x):
        out, _ = self.lstm(x.view(x.shape[0], 2, 3))
        return self.head(out[:, -1])


class Attention(nn.Module):
    """Self-attention with dropout."""

    def __init__(self):
        super().__init__()
        self.block = nn.TransformerEncoderLayer(6, 2, dim_feedforward=12, dropout=0.2, batch_first=True)
        self.head = nn.Linear(6, 3)

    def forward(self, x):
        return self.head(self.block(x.unsqueeze(1).expand(-1, 4, -1)).mean(1))


class Checkpointed(nn.Module):
    """Activations that are computed again in the backward pass, with dropout in them."""

    use_reentrant = False

    def __init__(self):
        super().__init__()
        self.inner = nn.Sequential(nn.Linear(6, 8), nn.Dropout(0.3), nn.ReLU(), nn.Linear(8, 6))
        self.head = nn.Linear(6, 3)

    def forward(self, x):
        x = x.clone().requires_grad_()
        return self.head(checkpoint(self.inner, x, use_reentrant=self.use_reentrant))


class CheckpointedAgain(Checkpointed):
    use_reentrant = True


class Convolutional(nn.Module):
    """Convolutions, running statistics, random dropout."""

    def __init__(self):
        super().__init__()
        self.conv, self.norm, self.drop = nn.Conv2d(1, 4, 2), nn.BatchNorm2d(4), nn.Dropout2d(0.2)
        self.head = nn.Linear(8, 3)

    def forward(self, x):
        x = self.drop(torch.relu_(self.norm(self.conv(x.view(-1, 1, 2, 3)))))
        return self.head(x.flatten(1))


MODELS = [
    Plain,
    InPlace,
    Residual,
    Reused,
    Frozen,
    Odd,
    Recurrent,
    Attention,
    Checkpointed,
    CheckpointedAgain,
    Convolutional,
]


def batch(seed, size=5):
    generator = torch.Generator().manual_seed(seed)
    return torch.randn(size, 6, generator=generator), torch.randint(0, 3, (size,), generator=generator)
