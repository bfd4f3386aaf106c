"""Trainings whose loss stops being finite: what is saved then tells why, and nothing of the program changes."""

import pytest
import tornasole
from test_zero_change import NET


def test_a_program_that_stops_at_nan_leaves_what_tells_why(run_program, tmp_path):
    text = NET + """
for step in range(20):
    if step == 15:
        inputs[2, 1] = float("nan")
    optimizer.zero_grad()
    loss = F.cross_entropy(net(inputs), labels)
    if not torch.isfinite(loss):
        raise ValueError("the loss is not finite")
    loss.backward()
    optimizer.step()
"""
    ran = run_program(text, under=["--out", "out"])
    assert ran.returncode == 1
    first = tornasole.check(str(tmp_path / "out")).verdicts[0]
    assert (first.rule, first.first_step) == ("NonFiniteProvenance", 15)
    assert first.tensors == ["Net_input_0"] and "(input)" in first.message


@pytest.mark.parametrize("broken, told", [("points", "_input_0 (input)"), ("targets", "MSELoss_input_1 (labels)")])
def test_data_that_is_not_finite_is_told_from_what_is_computed(broken, told, run_program, tmp_path):
    text = f"""
import torch
from torch import nn
torch.manual_seed(0)
model, criterion = nn.Sequential(nn.Linear(4, 8), nn.ReLU(), nn.Linear(8, 1)), nn.MSELoss()
optimizer = torch.optim.Adam(model.parameters())
points, targets = torch.randn(800, 4), torch.randn(800, 1)
{broken}[600, 0] = float("nan")
for step in range(100):
    some = slice(8 * step, 8 * step + 8)
    optimizer.zero_grad()
    criterion(model(points[some]), targets[some]).backward()
    optimizer.step()
"""
    assert run_program(text, under=["--out", "out"]).returncode == 0
    first = tornasole.check(str(tmp_path / "out")).verdicts[0]
    assert (first.rule, first.first_step) == ("NonFiniteProvenance", 75)
    assert told in first.message


def test_what_a_checkpoint_computes_again_is_left_alone_where_the_loss_breaks(run_program):
    text = """
import torch
from torch import nn
from torch.utils.checkpoint import checkpoint
torch.manual_seed(0)
inner = nn.Sequential(nn.Linear(4, 8), nn.BatchNorm1d(8), nn.Dropout(0.5))
class Net(nn.Module):
    def __init__(self):
        super().__init__()
        self.inner, self.outer = inner, nn.Linear(8, 1)
    def forward(self, x):
        return self.outer(checkpoint(self.inner, x, use_reentrant=False))
model = Net()
optimizer = torch.optim.SGD(model.parameters(), lr=0.1)
for step in range(12):
    x, y = torch.randn(8, 4), torch.randn(8, 1)
    if step == 6:
        x[2, 1] = float("nan")
    loss = nn.functional.mse_loss(model(x), y)
    optimizer.zero_grad()
    if torch.isfinite(loss):
        loss.backward()
        optimizer.step()
print(inner[1].num_batches_tracked.item(), torch.randn(1).item(), model.outer.weight.sum().item())
"""
    plain, under = run_program(text), run_program(text, under=["--out", "out"])
    assert plain.returncode == under.returncode == 0
    assert plain.stdout == under.stdout
