"""Trainings that call their model many times for one step, or change its weights themselves.

Each is a function; what check is expected to say of it stands above it, as in strangers.py.
"""

import torch
import torch.nn.functional as functional
from torch import nn

OFTEN_CALLED = {}  # name -> (function, rules)


def training(name, *rules):
    def add(function):
        OFTEN_CALLED[name] = (function, rules)
        return function

    return add


def play(rate=1e-2, clears=True):
    """A policy that is asked for every move of a game, and learns when the game is over."""
    policy = nn.Sequential(nn.Linear(4, 64), nn.ReLU(), nn.Linear(64, 2))
    optimizer = torch.optim.Adam(policy.parameters(), rate)
    for game in range(40):
        logs, rewards = [], []
        for _ in range(20 + game):
            state = torch.randn(1, 4)
            choice = torch.distributions.Categorical(logits=policy(state))
            move = choice.sample()
            logs.append(choice.log_prob(move))
            rewards.append(float((state[0, 0] > 0) == (move[0] == 1)))
        won = torch.tensor(rewards)
        if clears:
            optimizer.zero_grad()
        (-torch.cat(logs) * (won - won.mean())).sum().backward()
        optimizer.step()


class Cell(nn.Module):
    """One step of a recurrent classifier."""

    def __init__(self):
        super().__init__()
        self.inner, self.outer = nn.Linear(3 + 16, 16), nn.Linear(3 + 16, 4)

    def forward(self, x, state):
        both = torch.cat([x, state], 1)
        return functional.log_softmax(self.outer(both), 1), torch.tanh(self.inner(both))


def unroll(clears=True, optimizer=True):
    """Sequences of any length, one at a time."""
    cell, rate = Cell(), 0.05
    chosen = torch.optim.SGD(cell.parameters(), rate) if optimizer else None
    for _ in range(250):
        x = torch.randn(1, int(torch.randint(5, 13, ())), 3)
        answer = 2 * (x[:, :, 0].sum(1) > 0).long() + (x[:, :, 1].sum(1) > 0).long()
        state = torch.zeros(1, 16)
        for i in range(x.shape[1]):
            said, state = cell(x[:, i], state)
        if clears:
            cell.zero_grad()
        functional.nll_loss(said, answer).backward()
        nn.utils.clip_grad_norm_(cell.parameters(), 1.0)
        if chosen:
            chosen.step()
            continue
        for parameter in cell.parameters():
            parameter.data.add_(parameter.grad, alpha=-rate)


@training("a game of many moves for one step")
def _():
    play()


@training("a game of many moves, gradients never cleared", "MissingZeroGrad")
def _():
    play(clears=False)


@training("a game of many moves, rate far too low", "LearningRateSanity")
def _():
    play(rate=1e-8)


@training("a cell unrolled by hand")
def _():
    unroll()


@training("a cell unrolled by hand, gradients clipped and never cleared", "MissingZeroGrad")
def _():
    unroll(clears=False)


@training("weights changed by hand")
def _():
    unroll(optimizer=False)


@training("weights changed by hand, gradients clipped and never cleared", "MissingZeroGrad")
def _():
    unroll(clears=False, optimizer=False)
