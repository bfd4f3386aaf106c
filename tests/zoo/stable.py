"""The zoo under one `tornasole run`: trains what it is told, each training in a process of its own.

    tornasole run --out anywhere stable.py

reads lines of JSON, [name of a training, directory of its trial, file for what it prints], and answers each with the
training's exit status. A training is a fork of this process, which has imported PyTorch and has not called a model: it
is captured from its first step on, as a script of its own would be, and saves the imports.
"""

import json
import os
import sys

import torch
from torch import nn  # noqa: F401
from torch._dynamo import config  # noqa: F401, what an optimizer imports when the first one is made

from architectures import ARCHITECTURES
from doubts import DOUBTS
from glances import GLANCES
from often_called import OFTEN_CALLED
from rates import RATES
from strangers import STRANGERS
from tornasole.run import OUT_VARIABLE, presets, torch_attachment  # noqa: F401
from trainings import TRAININGS, train

ZOOS = (ARCHITECTURES, STRANGERS, OFTEN_CALLED, RATES, GLANCES, DOUBTS)
ALL = {name: function for zoo in ZOOS for name, (function, _) in zoo.items()}
ALL.update({name: lambda recipe=recipe: train(recipe) for name, (recipe, _) in TRAININGS.items()})


def start(name, out, log):
    """Trains in a child; its process number."""
    child = os.fork()
    if child:
        return child
    told = os.open(log, os.O_CREAT | os.O_WRONLY | os.O_TRUNC)
    os.dup2(told, 1)
    os.dup2(told, 2)
    os.environ[OUT_VARIABLE] = out
    torch.manual_seed(0)
    ALL[name]()
    sys.exit()


if __name__ == "__main__":
    torch.set_num_threads(1)
    while line := sys.stdin.readline():
        _, status = os.waitpid(start(*json.loads(line)), 0)
        print(os.waitstatus_to_exitcode(status), flush=True)
