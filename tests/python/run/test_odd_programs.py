"""Programs that train in other ways than by calling their model, captured all the same or told why not."""

import os
import sys

import pytest
import tornasole

sys.path.insert(0, os.path.join(os.path.dirname(__file__), "..", "torch"))
from test_zero_change import NET  # noqa: E402
from trial_dump import TrialDump  # noqa: E402

HEAD = """
import torch
from torch import nn
import torch.nn.functional as F
torch.manual_seed(0)
torch.set_num_threads(1)
"""
BY_METHOD = """
class Flow(nn.Module):
    def __init__(self):
        super().__init__()
        self.first, self.second = nn.Linear(4, 8), nn.Linear(8, 4)
    def forward(self, x):
        return self.second(torch.relu(self.first(x)))
    def loss(self, x):
        once = torch.relu(self.first(x)) {again}
        return (self.second(once) - x).square().mean()
flow = Flow()
{before}
optimizer = torch.optim.Adam(flow.parameters(), lr=1e-2)
for step in range(20):
    optimizer.zero_grad()
    flow.loss(torch.randn(16, 4)).backward()
    optimizer.step()
    {between}
print(sum(p.double().sum().item() for p in flow.parameters()))
"""
NO_GRAD = "with torch.no_grad(): flow(torch.zeros(1, 4))"
METHODS = [
    ("a method after a call of the model", "", "flow(torch.zeros(1, 4))", "", 16),
    ("a part that is used twice", "+ torch.relu(self.first(-x))", "flow(torch.zeros(1, 4))", "", 16),
    ("and the model without gradients", "", "flow(torch.zeros(1, 4))", NO_GRAD, 16),
]


@pytest.mark.parametrize("what, again, before, between, steps", METHODS, ids=[row[0] for row in METHODS])
def test_training_by_a_method(what, again, before, between, steps, run_program, tmp_path):
    text = HEAD + BY_METHOD.format(again=again, before=before, between=between)
    ran = run_program(text, under=["--out", "out"])
    assert ran.returncode == 0, ran.stderr
    if before and between:  # the most that can happen changes nothing
        assert ran.stdout == run_program(text).stdout
    trial = TrialDump(tmp_path / "out")
    trained = [step for step in trial.steps["TRAIN"] if "backward_loss_output_0" in trial.names_at(step)]
    assert steps <= len(trained) <= 20
    assert "gradient/Flow_first.weight" in trial.names


OWN_WEIGHTS = """
class Layer(nn.Module):
    def __init__(self, inputs):
        super().__init__()
        self.weight = nn.Parameter(torch.randn(8, inputs) / 3)
        self.activation = nn.ReLU()
        self.optimizer = torch.optim.Adam(self.parameters(), lr=1e-2)
    def forward(self, x):
        return self.activation(x @ self.weight.T)
    def learn(self, x):
        for step in range(20):
            self.optimizer.zero_grad()
            (self.forward(x) - 1).square().mean().backward()
            self.optimizer.step()
        return self.forward(x).detach()
layer = Layer(4)
layer.learn(torch.randn(16, 4))
print(layer(torch.ones(1, 4)).sum().item(), layer.weight.double().sum().item())
"""
CHANGED_INPUTS = """
class Model(nn.Module):
    def __init__(self):
        super().__init__()
        self.noise, self.body = nn.Dropout(0.1), nn.Linear(4, 2)
    def loss(self, x):
        return self.body(self.noise(x) if self.training else x).square().mean()
model = Model()
optimizer = torch.optim.SGD(model.parameters(), lr=0.1)
for epoch in range(3):
    for batch in range(4):
        optimizer.zero_grad()
        model.train().loss(torch.randn(8, 4)).backward()
        optimizer.step()
    with torch.no_grad():
        model.eval().loss(torch.randn(8, 4))
"""


def test_a_model_that_calls_nothing_but_a_part_without_weights(run_program, tmp_path):
    ran = run_program(HEAD + OWN_WEIGHTS, under=["--out", "out"])
    assert ran.returncode == 0, ran.stderr
    assert ran.stdout == run_program(HEAD + OWN_WEIGHTS).stdout
    trial = TrialDump(tmp_path / "out")
    trained = [step for step in trial.steps["TRAIN"] if "backward_loss_output_0" in trial.names_at(step)]
    assert len(trained) == 19, "it is found once a backward pass has told that no other part is called"
    assert {"Layer_weight", "gradient/Layer_weight", "scalar/learning_rate/0"} <= set(trial.names)


def test_a_part_that_changes_the_inputs_in_training_begins_no_steps(run_program, tmp_path):
    ran = run_program(HEAD + CHANGED_INPUTS, under=["--out", "out"])
    assert ran.returncode == 0, ran.stderr
    trial = TrialDump(tmp_path / "out")
    assert [mode for _, mode, _ in trial.modes()] == 3 * [*4 * ["TRAIN"], "EVAL"]


ACTOR_AND_CRITIC = """
class Both(nn.Module):
    def __init__(self):
        super().__init__()
        self.actor, self.critic = (nn.Sequential(nn.Linear(4, 16), nn.Tanh(), nn.Linear(16, n)) for n in (2, 1))
    @torch.no_grad()
    def play(self, x):
        return torch.distributions.Categorical(logits=self.actor(x)).sample()
both = Both()
optimizers = [torch.optim.Adam(part.parameters(), lr=1e-3) for part in (both.actor, both.critic)]
for epoch in range(3):
    x = torch.randn(200, 4)
    actions = torch.stack([both.play(one) for one in x])
    gain = x[:, 0] * (2 * actions - 1)
    for _ in range(40):
        optimizers[0].zero_grad()
        chance = both.actor(x).log_softmax(-1)[range(200), actions]
        (-chance * (gain - gain.mean())).mean().backward()
        optimizers[0].step()
    for _ in range(40):
        optimizers[1].zero_grad()
        (both.critic(x).squeeze(-1) - gain).square().mean().backward()
        optimizers[1].step()
print(sum(p.double().sum().item() for p in both.parameters()))
"""


def test_a_program_that_plays_before_it_trains(run_program, tmp_path):
    ran = run_program(HEAD + ACTOR_AND_CRITIC, under=["--out", "out"])
    assert ran.returncode == 0, ran.stderr
    assert ran.stdout == run_program(HEAD + ACTOR_AND_CRITIC).stdout
    trial = TrialDump(tmp_path / "out")
    with_gradients = [step for step in trial.steps["TRAIN"] if "gradient/Both_actor.0.weight" in trial.names_at(step)]
    assert with_gradients and with_gradients[0] >= 200
    # Losses without a name are told apart by where backward() is called on them.
    of_actor = [step for step in trial.steps["TRAIN"] if "backward_loss_output_0" in trial.names_at(step)]
    of_critic = [step for step in trial.steps["TRAIN"] if "backward_loss_2_output_0" in trial.names_at(step)]
    assert len(of_actor) >= 110 and len(of_critic) >= 100
    assert len(set(of_actor) & set(of_critic)) <= 3
    assert not tornasole.check(str(tmp_path / "out")).verdicts


def test_a_program_without_a_call_of_a_module_is_told_so(run_program, tmp_path):
    text = HEAD + "w = torch.zeros(3, requires_grad=True)\nfor _ in range(4): (w - 1).square().sum().backward()\n"
    ran = run_program(text, under=["--out", "out"])
    assert ran.returncode == 0
    assert "nothing was captured: backward() was called 4 times" in ran.stderr
    assert not (tmp_path / "out").exists()


def test_a_program_that_does_not_train_is_told_nothing(run_program):
    ran = run_program(HEAD + "nn.Linear(2, 2)(torch.zeros(1, 2))\n", under=["--out", "out"])
    assert ran.returncode == 0
    assert "nothing was captured" not in ran.stderr


def test_who_configured_nothing_is_warned_of_nothing(run_program):
    """A model without inputs that are tensors, targets that are no classes, labels that the loss ignores, and a loss
    that nobody knows."""
    losses = (
        "F.cross_entropy(net(x=inputs), labels)",
        "F.mse_loss(net(x=inputs), torch.randn(5, 3))",
        "F.cross_entropy(net(x=inputs), torch.where(labels == 0, -100, labels))",
        "net(x=inputs).square().mean()",
    )
    loop = "for step in range(3):\n    optimizer.zero_grad()\n    ({}).backward()\n    optimizer.step()\n"
    ran = run_program(NET + "".join(map(loop.format, losses)), under=["--out", "out"])
    assert ran.returncode == 0, ran.stderr
    assert "WARNING" not in ran.stderr


PER_SAMPLE = """
def loss_of(weights, x, y):
    return F.cross_entropy(torch.func.functional_call(net, weights, (x[None],)), y[None])
for step in range(6):
    optimizer.zero_grad()
    weights = {name: weight.detach() for name, weight in net.named_parameters()}
    torch.func.vmap(torch.func.grad(loss_of), in_dims=(None, 0, 0))(weights, inputs, labels)
    F.cross_entropy(net(inputs), labels).backward()
    optimizer.step()
    F.mse_loss(torch.zeros(3, device="meta"), torch.ones(3, device="meta"))
print(sum(p.double().sum().item() for p in net.parameters()))
"""


def test_losses_without_a_value_of_their_own_stop_nothing(run_program, tmp_path):
    plain = run_program(NET + PER_SAMPLE)
    ran = run_program(NET + PER_SAMPLE, under=["--out", "out"])
    assert (ran.returncode, ran.stdout) == (0, plain.stdout), ran.stderr
    assert "torch.func" in ran.stderr, "what is left out is told"
    trial = TrialDump(tmp_path / "out")
    saved = [step for step, _, _ in trial.modes() if "cross_entropy_output_0" in trial.names_at(step)]
    assert len(saved) == 6, "the losses that have a value are saved"


FOLDS = NET + """
for fold in range(3):
    net = Net()
    optimizer = torch.optim.SGD(net.parameters(), lr=0.1)
    criterion = nn.CrossEntropyLoss()
    for step in range(8):
        optimizer.zero_grad()
        loss = criterion(net(inputs), labels)
        loss.backward()
        optimizer.step()
    print(loss.item())
net = Net().eval()  # another model, which is not trained: no training
with torch.no_grad():
    print(net(inputs).sum().item())
"""


def test_each_training_of_a_program_has_a_trial(run_program, tmp_path):
    bare, ran = run_program(FOLDS), run_program(FOLDS, under=["--out", "out"])
    assert ran.returncode == 0, ran.stderr
    assert ran.stdout == bare.stdout
    assert sorted(path.name for path in tmp_path.iterdir() if path.is_dir()) == ["out", "out-2", "out-3"]
    for name in ("out", "out-2", "out-3"):
        trial = TrialDump(tmp_path / name)
        assert trial.steps["TRAIN"] == list(range(8))
        assert trial.collection("losses") == ["CrossEntropyLoss_output_0"]


TRAIN = NET + """
import os, subprocess
def train():
    for step in range(8):
        optimizer.zero_grad()
        F.cross_entropy(net(inputs), labels).backward()
        optimizer.step()
train()
if not os.environ.get("IS_CHILD"):
    subprocess.run([sys.executable, __file__], env={**os.environ, "IS_CHILD": "1"}, check=True)
train()
"""


def test_each_process_of_a_program_has_a_trial(run_program, tmp_path):
    ran = run_program("import sys\n" + TRAIN, under=["--out", "out"])
    assert ran.returncode == 0, ran.stderr
    lines = [line for line in ran.stderr.splitlines() if "tornasole" in line]
    assert lines == [
        f"tornasole: capturing into {tmp_path / 'out'}",
        f"tornasole: capturing into {tmp_path / 'out-2'}, since another run lives in {tmp_path / 'out'}",
    ]
    for name in ("out", "out-2"):
        assert TrialDump(tmp_path / name).steps["TRAIN"] == list(range(16))
    # The same command again: nothing that is there is lost, and nothing is left out.
    again = run_program("import sys\n" + TRAIN, under=["--out", "out"], environment={"IS_CHILD": "1"})
    assert again.returncode == 0, again.stderr
    assert TrialDump(tmp_path / "out-3").steps["TRAIN"] == list(range(16))


def test_a_loss_of_a_subclass_of_tensors_is_known_once(run_program, tmp_path):
    text = (
        NET
        + """
class Named(torch.Tensor):
    pass
criterion = nn.CrossEntropyLoss()
for _ in range(6):
    optimizer.zero_grad()
    criterion(net(inputs).as_subclass(Named), labels).backward()
    optimizer.step()
"""
    )
    ran = run_program(text, under=["--out", "out"])
    assert ran.returncode == 0, ran.stderr
    names = TrialDump(tmp_path / "out").names
    assert "CrossEntropyLoss_output_0" in names and "backward_loss_output_0" not in names


ANEW = """
class Wrapper(nn.Module):
    def __init__(self, model):
        super().__init__()
        self.model = model
    def forward(self, x):
        return self.model(x)
class Twin(nn.Module):
    def __init__(self, model):
        super().__init__()
        self.fc2 = nn.Linear(6, 3)
        self.fc2._parameters.update(weight=model.weight * 1, bias=model.bias * 1)
    def forward(self, x):
        return self.fc2(x)
model = nn.Sequential(nn.Linear(6, 3))
optimizer = torch.optim.SGD(model.parameters(), lr=0.1)
for step in range({steps}):
    optimizer.zero_grad()
    wrapped = {wrapped}
    output = wrapped(torch.randn(5, 6)) + wrapped(torch.randn(5, 6))
    del wrapped
    F.mse_loss(output, torch.ones(5, 3)).backward()
    optimizer.step()
print(sum(p.double().sum().item() for p in model.parameters()))
"""
MADE_ANEW = [
    ("around a part that lives on", "Wrapper(model)", "Sequential_0.weight"),
    ("whole", "Twin(model[0])", None),
]


@pytest.mark.parametrize("what, wrapped, parameter", MADE_ANEW, ids=[row[0] for row in MADE_ANEW])
def test_a_model_that_is_made_anew_for_each_step(what, wrapped, parameter, run_program, tmp_path):
    text = HEAD + ANEW.format(wrapped=wrapped, steps=40)
    ran = run_program(text, under=["--out", "out"])
    assert ran.returncode == 0, ran.stderr
    assert ran.stdout == run_program(text).stdout
    assert "Warning" not in ran.stderr
    trial = TrialDump(tmp_path / "out")
    trained = [step for step in trial.steps["TRAIN"] if "mse_loss_output_0" in trial.names_at(step)]
    assert len(trained) >= 39, "each backward pass belongs to a step of its own"
    assert not any(name.startswith("mse_loss_output_") and name != "mse_loss_output_0" for name in trial.names)
    if parameter is not None:
        assert {parameter, f"gradient/{parameter}", "gradient/Wrapper_model.0.weight"} <= set(trial.names)


def test_a_program_that_lets_go_of_every_model_is_told_that_capture_ends(run_program, tmp_path):
    text = HEAD + ANEW.format(wrapped="Twin(model[0])", steps=110)
    ran = run_program(text, under=["--out", "out"])
    assert ran.returncode == 0, ran.stderr
    assert ran.stdout == run_program(text).stdout
    assert "nothing more will be captured: RuntimeError: the program has called 100 models" in ran.stderr
    trial = TrialDump(tmp_path / "out")
    assert len([step for step in trial.steps["TRAIN"] if "mse_loss_output_0" in trial.names_at(step)]) >= 100


def test_learning_rates_are_saved_once_for_a_step_of_the_optimizer(run_program, tmp_path):
    text = NET + """
for step in range(12):
    net(inputs), net(inputs)
    F.cross_entropy(net(inputs), labels).backward()
    optimizer.step()
    optimizer.zero_grad()
net.eval()
with torch.no_grad():
    net(inputs), net(inputs)
"""
    ran = run_program(text, under=["--out", "out", "--preset", "light"])
    assert ran.returncode == 0, ran.stderr
    trial = TrialDump(tmp_path / "out")
    with_rate = [step for step, _, _ in trial.modes() if "scalar/learning_rate/0" in trial.names_at(step)]
    # The optimizer is known after its first step.
    assert with_rate == [*range(3, 36, 3), 36, 37], "at the first of three calls, and at every call of the evaluation"


ASIDE = """
import copy
mean = copy.deepcopy(net)
criterion = nn.CrossEntropyLoss()
def train(net, optimizer):
    for epoch in range(3):
        for _ in range(4):
            optimizer.zero_grad()
            criterion(net(inputs), labels).backward()
            optimizer.step()
            with torch.no_grad():
                for old, new in zip(mean.parameters(), net.parameters()):
                    old.lerp_(new, 0.1)
        with torch.no_grad():
            for _ in range(3):
                criterion(mean(inputs), labels), F.cross_entropy(mean(inputs), labels)
train(net, optimizer)
other = Net()
optimizer = torch.optim.SGD(other.parameters(), lr=0.1)
with torch.no_grad():
    criterion(other(inputs), labels)
train(other, optimizer)
"""


def test_losses_of_a_model_that_is_only_evaluated_belong_to_no_step(run_program, tmp_path):
    """As that of averaged weights is; a model that is evaluated before it is trained has that in its own trial."""
    ran = run_program(NET + ASIDE, under=["--out", "out", "--preset", "light"])
    assert ran.returncode == 0, ran.stderr
    for name, steps in (("out", 12), ("out-2", 13)):
        trial = TrialDump(tmp_path / name)
        assert trial.steps["TRAIN"] == list(range(steps))
        assert trial.collection("losses") == ["CrossEntropyLoss_output_0"]


UNSEEN = """
def train(loss, optimizer, steps):
    for _ in range(steps):
        optimizer.zero_grad()
        loss(inputs, labels).backward()
        optimizer.step()
train(lambda x, y: F.cross_entropy(net(x), y), optimizer, 4)
weight = torch.zeros(6, 3, requires_grad=True)
optimizer = torch.optim.SGD([weight], lr=0.1)
criterion = nn.CrossEntropyLoss()
train(lambda x, y: F.cross_entropy(x @ weight, y), optimizer, 150)
train(lambda x, y: criterion(x @ weight, y), optimizer, 150)
train(lambda x, y: (x @ weight).square().mean(), optimizer, 150)
"""


def test_a_training_that_no_step_knows_of_does_not_pile_up_losses(run_program, tmp_path):
    ran = run_program(NET + UNSEEN, under=["--out", "out", "--preset", "light"])
    assert ran.returncode == 0, ran.stderr
    trial = TrialDump(tmp_path / "out")
    assert trial.steps["TRAIN"] == list(range(4))
    assert len(trial.collection("losses")) <= 100
