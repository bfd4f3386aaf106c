"""Models with parts that Python does not run: they train as without us, and what can be had of them is captured."""

import os
import sys

import pytest

sys.path.insert(0, os.path.join(os.path.dirname(__file__), "..", "torch"))
from test_zero_change import NET  # noqa: E402
from trial_dump import TrialDump  # noqa: E402

SCRIPTED = """
class Outer(nn.Module):
    def __init__(self, inner):
        super().__init__()
        self.inner, self.last = inner, nn.Linear(3, 3)
    def forward(self, x):
        return self.last(self.inner(x))
outer = Outer({inner})
optimizer = torch.optim.SGD(outer.parameters(), lr=0.1)
for step in range(12):
    optimizer.zero_grad()
    F.cross_entropy(outer(inputs), labels).backward()
    optimizer.step()
print(sum(p.double().sum().item() for p in outer.parameters()))
print(torch.jit.script(outer)(inputs).sum().item())
"""
PARTS = [
    ("torch.jit.script(net)", True),
    ("torch.jit.trace(net, inputs, check_trace=False)", False),
]


@pytest.mark.parametrize("inner, is_told", PARTS, ids=[row[0] for row in PARTS])
def test_a_part_that_torchscript_runs(inner, is_told, run_program, tmp_path):
    text = NET + SCRIPTED.format(inner=inner)
    bare, ran = run_program(text), run_program(text, under=["--out", "out"])
    assert bare.returncode == 0, bare.stderr
    assert (ran.returncode, ran.stdout) == (0, bare.stdout), ran.stderr
    assert ("code made by TorchScript hides them" in ran.stderr) == is_told
    trial = TrialDump(tmp_path / "out")
    assert trial.steps["TRAIN"] == list(range(12))
    wanted = {"Outer_last.weight", "Outer_inner.fc1.weight", "last_output_0", "cross_entropy_output_0"}
    assert {*wanted, "gradient/Outer_inner.fc1.weight"} <= trial.names_at(0)


COMPILED_IN_PLACE = """
class Wrapper(nn.Module):
    def __init__(self):
        super().__init__()
        self.net = net
    def learn(self, x, y):
        return F.cross_entropy(self.net(x), y)
net.compile(backend="eager")
{before}
optimizer = torch.optim.SGD(net.parameters(), lr=0.1)
for step in range(6):
    optimizer.zero_grad()
    loss = {loss}
    loss.backward()
    optimizer.step()
print(loss.item())
"""
WAYS = [
    ("which is the model", "", "F.cross_entropy(net(inputs), labels)", "Net"),
    ("which a method of the model calls", "model = Wrapper()", "model.learn(inputs, labels)", "Wrapper_net"),
]


@pytest.mark.parametrize("what, before, loss, name", WAYS, ids=[row[0] for row in WAYS])
def test_a_module_that_was_compiled_in_place(what, before, loss, name, run_program, tmp_path):
    text = NET + COMPILED_IN_PLACE.format(before=before, loss=loss)
    bare, ran = run_program(text), run_program(text, under=["--out", "out"])
    assert bare.returncode == 0, bare.stderr
    assert (ran.returncode, ran.stdout) == (0, bare.stdout), ran.stderr
    trial = TrialDump(tmp_path / "out")
    assert trial.steps["TRAIN"] == list(range(6))
    weight = f"{name}.fc1.weight" if "_" in name else f"{name}_fc1.weight"
    assert {weight, f"gradient/{weight}", "cross_entropy_output_0"} <= trial.names_at(0)


TRACED = """
net = nn.Sequential(net, nn.Softmax(dim=-1))
print(torch.jit.trace(net, inputs).inlined_graph.str(False))
optimizer = torch.optim.SGD(net.parameters(), lr=0.1)
for step in range(20):
    optimizer.zero_grad()
    F.cross_entropy(net(inputs), labels).backward()
    optimizer.step()
    if step in (0, 5, 19):  # with and without taps
        print(torch.jit.trace(net, inputs).inlined_graph.str(False))
"""


def test_what_is_traced_is_the_model_alone(run_program, tmp_path):
    bare, ran = run_program(NET + TRACED), run_program(NET + TRACED, under=["--out", "out", "--preset", "full"])
    assert bare.returncode == 0, bare.stderr
    assert (ran.returncode, ran.stdout) == (0, bare.stdout), ran.stderr
    assert "TracerWarning" not in ran.stderr
    assert "gradient/Sequential_0.fc1.weight" in TrialDump(tmp_path / "out").names


STOPPED = """
import torch._dynamo.utils
@torch.compile(backend="eager")
def learn(x, y):
    loss = F.cross_entropy(net(x), y)
    loss.backward()
    return loss
for step in range(4):
    learn(inputs, labels)
    net.zero_grad()
counters = torch._dynamo.utils.counters
print(len(counters["graph_break"]), counters["stats"])
"""


def test_a_backward_pass_within_a_compiled_function_is_no_more_to_compile(run_program):
    bare, ran = run_program(NET + STOPPED), run_program(NET + STOPPED, under=["--out", "out"])
    assert bare.returncode == 0, bare.stderr
    assert (ran.returncode, ran.stdout) == (0, bare.stdout), ran.stderr
