"""Losses that belong to the model, and losses that the program makes of one value for each sample."""

import os
import sys

import pytest

sys.path.insert(0, os.path.join(os.path.dirname(__file__), "..", "torch"))
from test_odd_programs import HEAD  # noqa: E402
from trial_dump import TrialDump  # noqa: E402

OWN = HEAD + """
class Model(nn.Module):
    def __init__(self):
        super().__init__()
        self.body, self.{name} = nn.Linear(4, 3), nn.CrossEntropyLoss({options})
    def training_step(self, x):
        return self.{name}(self(x), x[:, :3].argmax(1))
    def forward(self, x):
        return self.body(x)
model = Model()
optimizer = torch.optim.Adam(model.parameters(), lr=1e-2)
for step in range(30):
    optimizer.zero_grad()
    loss = model.training_step(torch.randn(16, 4)){reduced}
    print(loss.item())
    loss.backward()
    optimizer.step()
"""
LOSSES = [
    ("criterion", "", "", ["CrossEntropyLoss_output_0"]),
    ("loss_fn", "", "", ["loss_fn_output_0"]),
    ("criterion", "reduction='none'", ".square().mean()", ["CrossEntropyLoss_output_0", "backward_loss_output_0"]),
]


@pytest.mark.parametrize("name, options, reduced, losses", LOSSES)
def test_a_loss_that_is_a_part_of_the_model(name, options, reduced, losses, run_program, tmp_path):
    text = OWN.format(name=name, options=options, reduced=reduced)
    ran = run_program(text, under=["--out", "out"])
    assert ran.returncode == 0, ran.stderr
    assert ran.stdout == run_program(text).stdout
    trial = TrialDump(tmp_path / "out")
    assert trial.steps["TRAIN"] == list(range(30))
    assert sorted(trial.collection("losses")) == losses
    values = [trial.value(losses[-1], step)[0] for step in range(30)]
    assert values == pytest.approx([float(line) for line in ran.stdout.split()])
