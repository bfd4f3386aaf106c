"""What a program writes, is warned of and sees of itself is as under plain Python."""

import os
import sys

import pytest
from test_odd_programs import HEAD
from test_zero_change import NET

sys.path.insert(0, os.path.join(os.path.dirname(__file__), "..", "torch"))
from trial_dump import TrialDump  # noqa: E402

SAVED = NET + """
import copy, io, torch.jit
class Scripted(nn.Module):
    def __init__(self):
        super().__init__()
        self.net = net
    def forward(self, x, y):
        return F.cross_entropy(self.net(x), y) + F.mse_loss(x, x)
criterion = nn.CrossEntropyLoss()
for step in range(12):
    optimizer.zero_grad()
    criterion(net(inputs), labels).backward()
    optimizer.step()
    if step in (1, 10):  # with and without taps
        torch.save((net, criterion), f"whole{step}.pt")
        torch.save(copy.deepcopy(net), f"copy{step}.pt")
        print(len(copy.deepcopy(net)._forward_pre_hooks))
print(torch.jit.script(Scripted())(inputs, labels).item(), torch.jit.script(net)(inputs).sum().item())
print(torch.func.grad(lambda x: F.cross_entropy(net(x), labels))(inputs).sum().item())
"""


def test_a_model_is_saved_copied_and_scripted_as_it_is(run_program, tmp_path):
    """What a program writes of its model is the same, byte for byte, and TorchScript compiles what it would."""
    names = ["whole1.pt", "copy1.pt", "whole10.pt", "copy10.pt"]
    bare = run_program(SAVED)
    assert bare.returncode == 0, bare.stderr
    files = [(tmp_path / name).read_bytes() for name in names]
    ran = run_program(SAVED, under=["--out", "out"])
    assert ran.returncode == 0, ran.stderr
    assert ran.stdout == bare.stdout
    assert [(tmp_path / name).read_bytes() for name in names] == files
    assert "nothing will be captured" not in ran.stderr


COMPILED = NET + """
compiled = torch.compile(net, backend="eager")
for step in range(6):
    optimizer.zero_grad()
    loss = F.cross_entropy(compiled(inputs), labels)
    loss.backward()
    optimizer.step()
print(loss.item())
"""
WARNING = NET + """
for step in range(6):
    optimizer.zero_grad()
    loss = F.mse_loss(net(inputs)[:, :1], labels.float()) + nn.MSELoss()(net(inputs)[:, :1], labels.float())
    loss.backward()
    optimizer.step()
if True:
    F.nll_loss(net(inputs), labels[:2])
"""


@pytest.mark.parametrize("text", [COMPILED, WARNING], ids=["compiled", "warnings and a traceback"])
def test_what_a_program_is_warned_of_is_the_same(text, run_program, tmp_path):
    bare, ran = run_program(text), run_program(text, under=["--out", "out"])
    assert (ran.returncode, ran.stdout) == (bare.returncode, bare.stdout)
    told = [line for line in ran.stderr.splitlines() if not line.startswith("tornasole:")]
    assert told == bare.stderr.splitlines()
    assert "Net_fc1.weight" in TrialDump(tmp_path / "out").names


def test_what_a_function_keeps_of_its_names_is_the_same(run_program):
    """``locals()`` is one dict for each call of a function, which a look at its frame would bring up to date."""
    text = (
        NET
        + """
def train(rate, steps):
    settings = locals()
    local = torch.optim.SGD(net.parameters(), lr=rate)
    for _ in range(steps):
        local.zero_grad()
        F.cross_entropy(net(inputs), labels).backward()
        local.step()
    print(settings)
train(0.1, 5)
"""
    )
    bare, ran = run_program(text), run_program(text, under=["--out", "out"])
    assert bare.stdout == "{'rate': 0.1, 'steps': 5}\n"
    assert (ran.returncode, ran.stdout) == (bare.returncode, bare.stdout)


def test_a_warning_of_a_function_in_the_forward_pass_names_the_programs_line(run_program):
    text = (
        HEAD
        + """
class Net(nn.Module):
    def __init__(self):
        super().__init__()
        self.layer = nn.Linear(4, 3)
    def forward(self, x):
        return F.log_softmax(self.layer(x)) + F.softmax(F.relu(x)[:, :3])
net = Net()
for _ in range(2):
    net(torch.randn(8, 4)).sum().backward()
"""
    )
    told = run_program(text).stderr
    assert told.count("train.py:13: UserWarning: Implicit dimension choice") == 2, told
    ours = run_program(text, under=["--out", "out"]).stderr
    assert [line for line in ours.splitlines() if not line.startswith("tornasole:")] == told.splitlines()


def test_nothing_is_told_into_an_open_progress_bar(run_program, tmp_path):
    text = (
        HEAD
        + """
from tqdm import tqdm
net = nn.Linear(4, 3)
for _ in tqdm(range(3), desc="epochs", mininterval=0):
    net(torch.randn(8, 4)).sum().backward()
"""
    )
    ran = run_program(text, under=["--out", "out"])
    assert ran.returncode == 0, ran.stderr
    told = f"tornasole: capturing into {tmp_path / 'out'}"
    written = ran.stderr.replace("\r", "\n").splitlines()
    assert any(line.strip() in (told, "tornasole: capturing into out") for line in written), written
