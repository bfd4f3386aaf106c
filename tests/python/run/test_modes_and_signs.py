"""Which steps are of the training, where the model's own mode does not tell; which way backward passes go."""

import types

import pytest
import torch

from tornasole.modes import ModeKeys
from tornasole.run.torch_attachment import Attachment
from tornasole.trials import create_trial

HEAD = """
import torch
from torch import nn
import torch.nn.functional as F
torch.manual_seed(0)
torch.set_num_threads(1)
model = nn.Sequential(nn.Linear(4, 8), nn.BatchNorm1d(8), nn.ReLU(), nn.Linear(8, 3))
criterion = nn.CrossEntropyLoss()
x, y = torch.randn(16, 4), torch.randint(0, 3, (16,))

def train(loss_of=lambda: criterion(model(x), y)):
    optimizer.zero_grad()
    loss_of().backward()
    optimizer.step()

def evaluate():
    with torch.no_grad():
        criterion(model(x), y)
"""
OF_HEAD = "optimizer = torch.optim.SGD(model[3].parameters(), lr=0.1)\n"
OF_ALL = "optimizer = torch.optim.SGD(model.parameters(), lr=0.1)\n"
MODES = [
    (
        "trained in evaluation mode, and evaluated in between",
        OF_HEAD + "model.eval()\nfor i in range(10):\n    train()\n    if i % 5 == 4: evaluate()",
        9,
        3,
    ),
    (
        "an optimizer of another model's parameters",
        "optimizer = torch.optim.SGD(nn.Linear(4, 3).parameters(), lr=0.1)\nmodel.eval()\nfor i in range(10): train()",
        9,
        1,
    ),
    (
        "samples that are made for the training in evaluation mode",
        OF_ALL + "for i in range(10):\n  model.eval()\n  criterion(model(x), y).backward()\n  model.train()\n  train()",
        10,
        10,
    ),
    (
        "what inputs have to do with answers, after the training",
        OF_ALL + "for i in range(10): train()\nmodel.eval()\nfor i in range(4): criterion(model(x), y).backward()",
        10,
        4,
    ),
    ("an ordinary training", OF_ALL + "for i in range(10):\n    train()\nmodel.eval()\nevaluate()", 10, 1),
]


@pytest.mark.parametrize("what, text, training, evaluation", MODES, ids=[row[0] for row in MODES])
def test_steps_that_train(what, text, training, evaluation, run_program, tmp_path):
    ran = run_program(HEAD + text, under=["--out", "out"])
    assert ran.returncode == 0, ran.stderr
    trial = create_trial(str(tmp_path / "out"))
    assert len(trial.steps(mode=ModeKeys.TRAIN)) == training, what
    assert len(trial.steps(mode=ModeKeys.EVAL)) == evaluation, what
    assert "Sequential_3.weight" in trial.tensor_names(mode=ModeKeys.TRAIN)


def test_a_backward_pass_from_the_negative_of_a_loss(run_program, tmp_path):
    text = OF_ALL + "for i in range(5): train(lambda: -criterion(model(x), y) if i % 2 else criterion(model(x), y) / 2)"
    ran = run_program(HEAD + text, under=["--out", "out"])
    assert ran.returncode == 0, ran.stderr
    trial = create_trial(str(tmp_path / "out"))
    assert trial.tensor("scalar/loss_sign").steps() == [1, 3]
    assert len(trial.tensor("CrossEntropyLoss_output_0").steps()) == 5


def gone_back_from(value):
    value.backward()
    return value


SIGNS = [
    ("the loss itself", lambda loss, other: loss, {1}),
    ("its negative", lambda loss, other: -loss, {-1}),
    ("its negative, divided", lambda loss, other: -loss / 4, {-1}),
    ("divided by a negative number", lambda loss, other: loss / -4, {-1}),
    ("what it is short of one", lambda loss, other: 1 - loss, {-1}),
    ("taken off what is no loss", lambda loss, other: other - loss, {-1}),
    ("less what is no loss", lambda loss, other: loss - other, {1}),
    ("a sum of both ways", lambda loss, other: loss - 0.1 * (loss * 1), {1}),
    ("the negative of its negative", lambda loss, other: -(-2 * loss), {1}),
    ("a factor that is learned", lambda loss, other: -loss * other, {0}),
    ("a function of it", lambda loss, other: -torch.exp(-loss), {0}),
    ("a product that is no number", lambda loss, other: loss * float("nan"), {0}),
    ("a graph that was gone back through", lambda loss, other: gone_back_from(loss * -2), {0}),
    ("something else", lambda loss, other: other * 2, set()),
]


@pytest.mark.parametrize("what, made, signs", SIGNS, ids=[row[0] for row in SIGNS])
def test_which_way_a_value_goes_with_a_loss(what, made, signs):
    parameter = torch.ones(3, requires_grad=True)
    loss, other = parameter.square().mean(), parameter.sum()
    known = types.SimpleNamespace(has=lambda node: node is loss.grad_fn)
    attachment = types.SimpleNamespace(losses=types.SimpleNamespace(known=known))
    assert Attachment._signs_of_known_losses(attachment, made(loss, other)) == signs, what
