"""Models that are called before or between what trains: to learn what shapes they give, or to play with."""

import json
import os
import sys

import pytest
import tornasole

sys.path.insert(0, os.path.join(os.path.dirname(__file__), "..", "torch"))
from test_odd_programs import HEAD  # noqa: E402
from trial_dump import TrialDump  # noqa: E402

TRIED = HEAD + """
class Net(nn.Module):
    def __init__(self, first=None):
        super().__init__()
        self.first = first or nn.Sequential(nn.Linear(6, 8), nn.ReLU())
        self.last = nn.Linear(self.width(), 3)
    def width(self):
        return self.features(torch.zeros(1, 6)).shape[1]
    def features(self, x):
        return self.first(x)
    def forward(self, x):
        return self.last(self.features(x))
class Other(nn.Sequential): pass
{tried}
optimizer = torch.optim.Adam(net.parameters(), lr=1e-2)
{after}
for step in range(20):
    x = torch.randn(16, 6)
    optimizer.zero_grad()
    F.cross_entropy(net(x), x[:, :3].argmax(1)).backward()
    optimizer.step()
print(sum(p.double().sum().item() for p in net.parameters()))
"""
CALLS = [
    ("a part, while the model is built", "kept = Net(); net = Net()", "", 20),
    ("another model", "kept = Other(nn.Linear(6, 3)); kept(torch.zeros(1, 6)); net = Net()", "", 19),
    ("another model, once there is an optimizer", "kept = Other(nn.Linear(6, 3)); net = Net()", "kept(torch.zeros(1, 6))", 19),
    ("both", "kept = Other(nn.Linear(6, 3)); net = Net(); kept(net(torch.zeros(1, 6)).repeat(1, 2))", "", 20),
    ("a part, before the model is built", "first = nn.Linear(6, 8); first(torch.zeros(1, 6)); net = Net(first)", "", 20),
]


@pytest.mark.parametrize("options", [(), ("--config", "config.json")], ids=["preset", "configuration"])
@pytest.mark.parametrize("what, tried, after, steps", CALLS, ids=[row[0] for row in CALLS])
def test_what_is_tried_out_is_not_what_is_trained(what, tried, after, steps, options, run_program, tmp_path):
    collections = [{"CollectionName": name} for name in ("weights", "gradients")]
    parameters = {"save_interval": "1"}
    config = {"HookParameters": parameters, "CollectionConfigurations": collections}
    (tmp_path / "config.json").write_text(json.dumps(config))
    text = TRIED.format(tried=tried, after=after)
    ran = run_program(text, under=["--out", "out", *options])
    assert ran.returncode == 0, ran.stderr
    assert ran.stdout == run_program(text).stdout
    assert [path.name for path in tmp_path.iterdir() if path.is_dir()] == ["out"]
    trial = TrialDump(tmp_path / "out")
    trained = [step for step in trial.steps["TRAIN"] if {"cross_entropy_output_0"} <= trial.names_at(step)]
    gradients = [step for step in trained if "gradient/Net_last.weight" in trial.names_at(step)]
    assert len(trained) == 20
    assert len(gradients) == steps if options else len(gradients) >= 3, "statistics are taken now and then"
    assert not any(name.startswith("cross_entropy_output_1") for name in trial.names), "a loss belongs to its own step"


PLAYED = HEAD + """
class Policy(nn.Module):
    def __init__(self):
        super().__init__()
        self.actor = nn.ModuleDict({"body": nn.Sequential(nn.Linear(4, 8), nn.ReLU()), "mean": nn.Linear(8, 1)})
        self.critic = nn.Sequential(nn.Linear(5, 8), nn.ReLU(), nn.Linear(8, 1))
    def forward(self, x):
        return self.actor["mean"](self.actor["body"](x))
policy, temperature = Policy(), torch.zeros(1, requires_grad=True)
optimizers = [torch.optim.Adam(p, lr=1e-3) for p in (policy.actor.parameters(), policy.critic.parameters())]
other = torch.optim.Adam([temperature], lr=1e-3)
for step in range(40):
    with torch.no_grad():
        policy.eval()(torch.randn(1, 4))
    policy.train()
    x = torch.randn(16, 4)
    action = policy.actor["mean"](policy.actor["body"](x))
    (temperature.exp() * (action.detach() - 0.5).square().mean()).backward()
    other.step()
    for optimizer in optimizers:
        optimizer.zero_grad()
    value = policy.critic(torch.cat([x, action.detach()], 1))
    F.mse_loss(value, x.sum(1, keepdim=True)).backward()
    optimizers[1].step()
    (-policy.critic(torch.cat([x, action], 1))).mean().backward()
    optimizers[0].step()
print(sum(p.double().sum().item() for p in policy.parameters()))
"""


def test_an_actor_that_plays_is_trained_by_its_parts(run_program, tmp_path):
    """Besides, an optimizer steps that has nothing of the model: such steps say nothing of the model's."""
    ran = run_program(PLAYED, under=["--out", "out"])
    assert ran.returncode == 0, ran.stderr
    assert ran.stdout == run_program(PLAYED).stdout
    trial = TrialDump(tmp_path / "out")
    training = {step for step, mode, _ in trial.modes() if mode == "TRAIN"}
    losses = ("mse_loss_output_0", "backward_loss_output_0", "backward_loss_2_output_0")
    steps = [{step for step in training if name in trial.names_at(step)} for name in losses]
    assert all(len(known) >= 35 for known in steps), "the actor's parts begin steps as the critic does"
    assert not steps[0] & steps[1] and not steps[1] & steps[2] and len(trial.steps["EVAL"]) == 40
    assert {"gradient/Policy_actor.body.0.weight", "gradient/Policy_critic.2.weight"} <= set(trial.names)


SEARCHED = HEAD + """
net = nn.Sequential(nn.Linear(4, 8), nn.ReLU(), nn.Linear(8, 3))
optimizer = torch.optim.Adam(net.parameters(), lr=1e-2)
for step in range(30):
    x = torch.randn(16, 4)
    loss = F.cross_entropy(net(x), x[:, :3].argmax(1))
    for parameter, gradient in zip(net.parameters(), torch.autograd.grad(loss, list(net.parameters()))):
        parameter.grad = gradient
    optimizer.step()
"""


def test_gradients_that_the_program_asks_for_are_added_to_nothing(run_program, tmp_path):
    ran = run_program(SEARCHED, under=["--out", "out"])
    assert ran.returncode == 0, ran.stderr
    assert "gradient/Sequential_0.weight" in TrialDump(tmp_path / "out").names
    assert not tornasole.check(str(tmp_path / "out")).verdicts
