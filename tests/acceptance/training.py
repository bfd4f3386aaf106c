"""A small training of PyTorch, and hooks that need no framework."""

import numpy
import torch

import tornasole.pytorch as ts
from tornasole.core.hook import BaseHook


class Net(torch.nn.Module):
    """Two linear layers with a ReLU between them."""

    def __init__(self):
        super().__init__()
        self.fc1 = torch.nn.Linear(4, 3)
        self.relu = torch.nn.ReLU()
        self.fc2 = torch.nn.Linear(3, 2)

    def forward(self, x):
        """The scores of two classes."""
        return self.fc2(self.relu(self.fc1(x)))


WEIGHTS = {"Net_fc1.weight", "Net_fc2.weight"}
BIASES = {"Net_fc1.bias", "Net_fc2.bias"}
GRADIENTS = {f"gradient/{name}" for name in WEIGHTS | BIASES}
LOSS = {"CrossEntropyLoss_output_0"}
RELU = {"relu_input_0", "relu_output_0"}


class Training:
    """A model with its loss and optimizer, registered with a hook."""

    def __init__(self, hook):
        torch.manual_seed(0)
        self.hook = hook
        self.model = Net()
        self.loss = torch.nn.CrossEntropyLoss()
        self.optimizer = torch.optim.SGD(self.model.parameters(), lr=0.1)
        hook.register_module(self.model)
        hook.register_loss(self.loss)

    def run(self, steps, mode=None, scale=1.0):
        """So many steps in a mode; in training, with backward pass and update."""
        if mode is not None:
            self.hook.set_mode(mode)
        for _ in range(steps):
            loss = self.loss(self.model(torch.ones(5, 4) * scale), torch.zeros(5, dtype=torch.long))
            if mode in (None, ts.modes.TRAIN):
                self.optimizer.zero_grad()
                loss.backward()
                self.optimizer.step()
        return self


def train(hook, steps=1, mode=None):
    """A training of so many steps, closed at its end; the hook."""
    Training(hook).run(steps, mode)
    hook.close()
    return hook


class PlainHook(BaseHook):
    """A hook with the collections of a framework, whose values come from the test."""

    def run(self, steps, names=(), mode=None):
        """So many steps with a value for each name; then the hook is closed."""
        for _ in range(steps):
            if self._begin_step(mode):
                for name in names:
                    self._engine_hook.save(name, numpy.ones(2))
            self._end_step()
        self.close()
        return self


def plain_hook(framework):
    """The class for a framework."""
    return type("FrameworkHook", (PlainHook,), {"_framework": framework})
