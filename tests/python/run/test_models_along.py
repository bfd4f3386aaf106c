"""Programs whose models are trained along with each other, without a module that holds them all."""

import os
import sys

import pytest

sys.path.insert(0, os.path.join(os.path.dirname(__file__), "..", "torch"))
from test_odd_programs import HEAD  # noqa: E402
from trial_dump import TrialDump  # noqa: E402

PAIR = HEAD + """
import weakref
class Part(nn.Module):
    def __init__(self, sizes):
        super().__init__()
        self.first, self.second = nn.Linear(*sizes[:2]), nn.Linear(*sizes[1:])
    def forward(self, x):
        return self.second(torch.relu(self.first(x)))
class Encoder(Part): pass
class Decoder(Part): pass
encoder, decoder, teacher = Encoder((4, 8, 3)), Decoder((3, 8, 4)), Part((4, 8, 4))
models = [encoder, decoder]
{optimizers}
for step in range(30):
    x = torch.randn(16, 4)
    for optimizer in optimizers:
        optimizer.zero_grad()
    code = encoder(x)
    F.mse_loss(decoder(code), x + teacher(x).detach()).backward()
    for optimizer in optimizers:
        optimizer.step()
print(sum(p.double().sum().item() for model in models for p in model.parameters()))
"""
OPTIMIZERS = [
    ("one", "optimizers = [torch.optim.Adam([p for model in models for p in model.parameters()], lr=1e-2)]"),
    ("one each", "optimizers = [torch.optim.SGD(model.parameters(), lr=1e-2) for model in models]"),
    ("one that is made after a call", "encoder(torch.ones(1, 4))\n"
     "optimizers = [torch.optim.SGD(model.parameters(), lr=1e-2) for model in models]"),
]
PARTS = ["first.weight", "first.bias", "second.weight", "second.bias"]


def captured(text, run_program, *options):
    ran = run_program(text, under=["--out", "out", *options])
    assert ran.returncode == 0, ran.stderr
    assert ran.stdout == run_program(text).stdout
    assert "Warning" not in ran.stderr and "WARNING" not in ran.stderr
    return ran


@pytest.mark.parametrize("what, optimizers", OPTIMIZERS, ids=[row[0] for row in OPTIMIZERS])
def test_an_encoder_and_a_decoder(what, optimizers, run_program, tmp_path):
    captured(PAIR.format(optimizers=optimizers), run_program)
    trial = TrialDump(tmp_path / "out")
    assert len(trial.steps["TRAIN"]) in (30, 31), "only calls of the encoder are steps"
    assert "backward_loss_output_0" not in trial.names
    for root in ("Encoder", "Decoder"):
        weights = {f"{root}_{part}" for part in PARTS}
        assert weights | {f"gradient/{name}" for name in weights} <= set(trial.names)
        together = [step for step in trial.steps["TRAIN"] if f"gradient/{root}_first.weight" in trial.names_at(step)]
        assert all(weights <= set(trial.names_at(step)) for step in together) and len(together) >= 3
    assert {"first_output_0", "Decoder.first_output_0", "Decoder.second_output_0", "Decoder_output_0"} <= set(trial.names)
    assert not any("Part" in name for name in trial.names), "no optimizer has the teacher"


def test_models_of_one_class_have_names_of_their_own(run_program, tmp_path):
    text = HEAD + """
nets = [nn.Sequential(nn.Linear(4, 8), nn.ReLU(), nn.Linear(8, 2)) for _ in range(3)]
optimizers = [torch.optim.Adam(net.parameters(), lr=1e-2) for net in nets]
for step in range(30):
    x = torch.randn(16, 4)
    for net, optimizer in zip(nets, optimizers):
        optimizer.zero_grad()
        F.cross_entropy(net(x), (x[:, 0] > 0).long()).backward()
        optimizer.step()
print(sum(p.double().sum().item() for net in nets for p in net.parameters()))
"""
    captured(text, run_program)
    trial = TrialDump(tmp_path / "out")
    for root in ("Sequential", "Sequential2", "Sequential3"):
        assert {f"{root}_0.weight", f"gradient/{root}_2.weight", f"{root}_output_0"} <= set(trial.names)
    assert {"0_output_0", "Sequential2.0_output_0", "Sequential3.2_output_0"} <= set(trial.names)


def test_the_generator_of_a_gan(run_program, tmp_path):
    text = HEAD + """
judge, maker = nn.Sequential(nn.Linear(4, 8), nn.ReLU(), nn.Linear(8, 1)), nn.Sequential(nn.Linear(2, 8), nn.Linear(8, 4))
optimizers = [torch.optim.Adam(model.parameters(), lr=1e-3) for model in (judge, maker)]
loss = nn.BCEWithLogitsLoss()
for step in range(30):
    optimizers[0].zero_grad()
    made = maker(torch.randn(16, 2))
    loss(judge(torch.randn(16, 4) + 1), torch.ones(16, 1)).backward()
    loss(judge(made.detach()), torch.zeros(16, 1)).backward()
    optimizers[0].step()
    optimizers[1].zero_grad()
    loss(judge(made), torch.ones(16, 1)).backward()
    optimizers[1].step()
print(sum(p.double().sum().item() for model in (judge, maker) for p in model.parameters()))
"""
    captured(text, run_program)
    trial = TrialDump(tmp_path / "out")
    # The maker is called first, and its calls are the steps.
    assert len(trial.steps["TRAIN"]) == 30
    assert {"gradient/Sequential_0.weight", "gradient/Sequential2_2.weight", "Sequential2.0_output_0"} <= set(trial.names)


def test_what_nobody_wants_of_it_is_left_alone(run_program, tmp_path):
    text = PAIR.format(optimizers=OPTIMIZERS[1][1]) + """
hung = [one for module in decoder.modules() for one in (*module._forward_hooks, *module._forward_pre_hooks)]
hung += [one for parameter in decoder.parameters() for one in parameter._backward_hooks or ()]
print(hung)
"""
    captured(text, run_program, "--preset", "light")
    trial = TrialDump(tmp_path / "out")
    assert len(trial.steps["TRAIN"]) == 30 and "mse_loss_output_0" in trial.names
    assert not any("Decoder" in name for name in trial.names)


def test_it_goes_with_its_last_reference(run_program):
    text = PAIR.format(optimizers=OPTIMIZERS[1][1]) + """
import gc
gc.disable()
known = [weakref.ref(decoder), weakref.ref(decoder.first.weight)]
del decoder, models, optimizers, optimizer
print([one() for one in known])
for step in range(5):
    encoder(torch.randn(2, 4)).sum().backward()
"""
    ran = run_program(text, under=["--out", "out"])
    assert ran.returncode == 0, ran.stderr
    assert ran.stdout == run_program(text).stdout
    assert "[None, None]" in ran.stdout
