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


def test_models_that_share_a_part_have_it_once(run_program, tmp_path):
    text = HEAD + """
class Headed(nn.Module):
    def __init__(self, encoder, classes):
        super().__init__()
        self.encoder, self.out = encoder, nn.Linear(8, classes)
    def forward(self, x):
        return self.out(torch.relu(self.encoder(x)))
class Signs(Headed): pass
class Places(Headed): pass
encoder = nn.Linear(4, 8)
models = [Signs(encoder, 2), Places(encoder, 3)]
optimizer = torch.optim.Adam(list(dict.fromkeys(p for model in models for p in model.parameters())), lr=1e-2)
for step in range(30):
    x = torch.randn(16, 4)
    optimizer.zero_grad()
    F.cross_entropy(models[0](x), (x[:, 0] > 0).long()).backward()
    F.cross_entropy(models[1](x), x[:, :3].argmax(1)).backward()
    optimizer.step()
print(sum(p.double().sum().item() for model in models for p in model.parameters()))
"""
    captured(text, run_program)
    trial = TrialDump(tmp_path / "out")
    assert len(trial.steps["TRAIN"]) == 30
    assert {"gradient/Places_out.weight", "Places_out.bias", "Places.out_output_0", "Places_output_0"} <= set(trial.names)
    assert {"gradient/Signs_encoder.weight", "encoder_output_0", "encoder_output_1"} <= set(trial.names)
    assert not any("Places_encoder" in name or "Places.encoder" in name for name in trial.names)


LATE = HEAD + """
import time
class Maker(nn.Sequential): pass
class Judge(nn.Sequential): pass
maker, judge = Maker(nn.Linear(2, 8), nn.Linear(8, 4)), Judge(nn.Linear(4, 8), nn.ReLU(), nn.Linear(8, 1))
{optimizers}
for step in range(90):
    time.sleep(0.01)  # a step that takes its time, of which statistics may take a part
    optimizer.zero_grad()
    made, real = maker(torch.randn(16, 2)), torch.randn(16, 4) + 1
    loss = F.mse_loss(made, real)
    if step >= 30:
        other.zero_grad()
        loss = loss + F.binary_cross_entropy_with_logits(judge(made), torch.ones(16, 1))
    loss.backward()
    optimizer.step()
    if step >= 30:
        other.step()
print(sum(p.double().sum().item() for model in (maker, judge) for p in model.parameters()))
print([p._backward_hooks for p in judge.parameters()], nn.Module.__call__.__qualname__.startswith("Module."))
"""


@pytest.mark.parametrize("optimizers", [
    "optimizer, other = [torch.optim.Adam(model.parameters(), lr=1e-3) for model in (maker, judge)]",
    "optimizer = other = torch.optim.Adam([*maker.parameters(), *judge.parameters()], lr=1e-3)",
], ids=["one each", "one"])
def test_a_model_that_comes_late(optimizers, run_program, tmp_path):
    captured(LATE.format(optimizers=optimizers), run_program)
    trial = TrialDump(tmp_path / "out")
    assert len(trial.steps["TRAIN"]) == 90
    known = [step for step in trial.steps["TRAIN"] if "gradient/Judge_0.weight" in trial.names_at(step)]
    assert known and known[0] > 30
    assert {"Judge_0.weight", "Judge.0_output_0", "Judge_output_0"} <= set(trial.names_at(known[0]))


def test_a_second_phase_is_another_training(run_program, tmp_path):
    text = HEAD + """
class First(nn.Sequential): pass
class Second(nn.Sequential): pass
models = [First(nn.Linear(4, 8), nn.Linear(8, 4)), Second(nn.Linear(4, 8), nn.Linear(8, 2))]
optimizers = [torch.optim.Adam(model.parameters(), lr=1e-2) for model in models]
for model, optimizer, steps in zip(models, optimizers, (40, 160)):
    for step in range(steps):
        x = torch.randn(16, 4)
        optimizer.zero_grad()
        F.cross_entropy(model(x), (x[:, 0] > 0).long()).backward()
        optimizer.step()
print(sum(p.double().sum().item() for model in models for p in model.parameters()))
"""
    captured(text, run_program)
    first, second = TrialDump(tmp_path / "out"), TrialDump(tmp_path / "out-2")
    assert len(first.steps["TRAIN"]) == 40 and "gradient/First_0.weight" in first.names
    assert 40 <= len(second.steps["TRAIN"]) <= 60 and "gradient/Second_0.weight" in second.names
    assert not any("Second" in name for name in first.names) and not any("First" in name for name in second.names)


def test_models_that_are_trained_in_turns_of_many_passes_stay_in_one_trial(run_program, tmp_path):
    text = HEAD + """
class Policy(nn.Sequential): pass
class Value(nn.Sequential): pass
models = [Policy(nn.Linear(4, 8), nn.Linear(8, 2)), Value(nn.Linear(4, 8), nn.Linear(8, 1))]
optimizers = [torch.optim.Adam(model.parameters(), lr=1e-2) for model in models]
for turn in range(3):
    for model, optimizer in zip(models, optimizers):
        for step in range(80):
            x = torch.randn(16, 4)
            optimizer.zero_grad()
            model(x).square().mean().backward()
            optimizer.step()
print(sum(p.double().sum().item() for model in models for p in model.parameters()))
"""
    captured(text, run_program)
    assert len(TrialDump(tmp_path / "out").steps["TRAIN"]) == 240
    assert not (tmp_path / "out-2").exists()


def test_an_optimizer_for_each_parameter_that_is_made_once_there_is_a_gradient(run_program, tmp_path):
    text = HEAD + """
encoder, decoder = nn.Linear(4, 2), nn.Sequential(nn.Linear(2, 8), nn.ReLU(), nn.Linear(8, 4))
optimizers = {}
for step in range(20):
    x = torch.randn(16, 4)
    (decoder(encoder(x)) - x).square().mean().backward()
    for parameter in [*encoder.parameters(), *decoder.parameters()]:
        if parameter not in optimizers:
            optimizers[parameter] = torch.optim.Adam([parameter], lr=1e-2)
        optimizers[parameter].step()
        optimizers[parameter].zero_grad()
print(sum(p.double().sum().item() for p in optimizers))
"""
    captured(text, run_program)
    assert [path.name for path in tmp_path.iterdir() if path.is_dir()] == ["out"]
    trial = TrialDump(tmp_path / "out")
    assert len(trial.steps["TRAIN"]) == 20
    assert {"gradient/Linear_weight", "gradient/Sequential_0.weight"} <= set(trial.names)
