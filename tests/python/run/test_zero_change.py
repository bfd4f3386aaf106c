"""Programs that know nothing of tornasole, captured by the command that starts them."""

import json
import os
import subprocess
import sys

import pytest

sys.path.insert(0, os.path.join(os.path.dirname(__file__), "..", "torch"))
from trial_dump import TrialDump, program  # noqa: E402

NET = """
import torch
from torch import nn
import torch.nn.functional as F
torch.manual_seed(0)
torch.set_num_threads(1)
class Net(nn.Module):
    def __init__(self):
        super().__init__()
        self.fc1, self.fc2 = nn.Linear(6, 8), nn.Linear(8, 3)
    def forward(self, x):
        return self.fc2(F.relu(self.fc1(x)))
net = Net()
optimizer = torch.optim.SGD(net.parameters(), lr=0.1)
inputs, labels = torch.randn(5, 6), torch.randint(0, 3, (5,))
"""
LOOP = """
for step in range(6):
    optimizer.zero_grad()
    loss = {loss}
    loss.backward()
    optimizer.step()
net.eval()
with torch.no_grad():
    net(inputs)
print(sum(p.double().sum().item() for p in net.parameters()))
"""

LOSSES = [
    ("a loss module", "nn.CrossEntropyLoss()(net(inputs), labels)", "CrossEntropyLoss_output_0"),
    ("a loss function", "F.cross_entropy(net(inputs), labels)", "cross_entropy_output_0"),
    ("a loss function divided", "F.nll_loss(net(inputs).log_softmax(1), labels) / 2", "nll_loss_output_0"),
    (
        "a loss weighted by what is trained",
        "(net.fc1.bias[0] + 1) * F.cross_entropy(net(inputs), labels).sqrt().square()",
        "cross_entropy_output_0",
    ),
    ("a loss written by hand", "(net(inputs).square().mean() + 1).log()", "backward_loss_output_0"),
]


@pytest.mark.parametrize("what, loss, name", LOSSES, ids=[row[0] for row in LOSSES])
def test_losses(what, loss, name, run_program, tmp_path):
    text = NET + LOOP.format(loss=loss)
    ran = run_program(text, under=["--out", "out"])
    assert ran.returncode == 0, ran.stderr
    assert len(ran.stdout.splitlines()) == 1, "the program's own output and nothing else"
    trial = TrialDump(tmp_path / "out")
    assert trial.collection("losses") == [name]
    assert [step for step, mode, _ in trial.modes() if mode == "TRAIN"] == list(range(6))
    assert all(name in trial.names_at(step) for step in range(6))
    assert "tornasole: capturing into" in ran.stderr


def test_the_standard_preset_keeps_statistics_at_the_start(run_program, tmp_path):
    ran = run_program(NET + LOOP.format(loss="F.cross_entropy(net(inputs), labels)"), under=["--out", "out"])
    trial = TrialDump(tmp_path / "out")
    assert ran.returncode == 0, ran.stderr
    entries = trial.entries()
    for name in ("Net_fc1.weight", "gradient/Net_fc2.bias", "optimizer_gradient/Net_fc1.weight", "fc1_output_0"):
        entry = entries[name, 1, "worker_0"]
        assert set(entry["reductions"]) >= {"mean", "l2"}, name
        assert not entry["value_announced"], f"{name} is kept as statistics only"
    assert "Net.relu()_0_output_0" in trial.names
    derived = {tuple(name.split("/", 2)[1:]) for name in trial.names if name.startswith("derived/")}
    of_weights, of_gradients = (
        {statistic for statistic, tensor in derived if tensor == known}
        for known in ("Net_fc1.weight", "gradient/Net_fc1.weight")
    )
    # What rules ask for, and no more.
    assert of_weights == {"counts", "update", "across_samples"} and of_gradients == {"counts", "cosine_previous"}
    assert {"unit_activity", "across_samples"} <= {one for one, tensor in derived if tensor == "fc1_output_0"}
    assert ("quantiles", "Net_input_0") in derived
    assert "scalar/learning_rate/0" in trial.names


def test_a_configuration_file_decides(run_program, tmp_path):
    (tmp_path / "config.json").write_text(
        json.dumps(
            {
                "LocalPath": str(tmp_path / "there"),
                "HookParameters": {"save_interval": 2},
                "CollectionConfigurations": [{"CollectionName": "weights"}],
            }
        )
    )
    text = NET + LOOP.format(loss="F.cross_entropy(net(inputs), labels)")
    expected = {"cross_entropy_output_0", "Net_fc1.weight", "Net_fc2.weight"}
    assert run_program(text, under=["--config", "config.json"]).returncode == 0
    trial = TrialDump(tmp_path / "there")
    assert set(trial.names) == expected
    assert trial.steps["TRAIN"] == [0, 2, 4]
    assert run_program(text, under=["--config", "config.json", "--out", "here"]).returncode == 0
    assert set(TrialDump(tmp_path / "here").names) == expected


BEHAVIOUR = [
    ("the exit status is the program's", "import sys; sys.exit(7)"),
    ("an exception is the program's", "raise ValueError('mine')"),
    ("a signal is the program's", "import os, signal; os.kill(os.getpid(), signal.SIGTERM)"),
    ("arguments and __main__ are the program's", "import sys; print(sys.argv, __name__, __file__, __spec__)"),
    ("the path is the program's", "import sys; print(sys.path[0]); print([p for p in sys.path if 'startup' in p])"),
    (
        "objects of __main__ can be pickled",
        "import pickle\nclass Mine: pass\nprint(type(pickle.loads(pickle.dumps(Mine()))).__module__)",
    ),
    (
        "processes can be spawned",
        "import multiprocessing as mp\n"
        "def square(x): return x * x\n"
        "if __name__ == '__main__':\n"
        "    with mp.get_context('spawn').Pool(1) as pool: print(pool.map(square, [1, 2, 3]))",
    ),
    (
        "a training is the same",
        NET + LOOP.format(loss="F.cross_entropy(net(inputs), labels)") + "import sys; sys.exit(3)",
    ),
]


@pytest.mark.parametrize("what, text", BEHAVIOUR, ids=[row[0] for row in BEHAVIOUR])
def test_as_under_plain_python(what, text, run_program):
    bare, ran = run_program(text, "--flag", "a b"), run_program(text, "--flag", "a b", under=["--out", "out"])
    assert ran.returncode == bare.returncode
    assert ran.stdout == bare.stdout
    if bare.stderr:
        assert ran.stderr.splitlines()[-1] == bare.stderr.splitlines()[-1]


USE = [
    ("no program", [], 2, "a program to run is missing"),
    ("no such script", ["nothing.py"], 2, "there is no nothing.py"),
    ("no such preset", ["--preset", "huge", "x.py"], 2, "invalid choice: 'huge'"),
    ("no such configuration", ["--config", "no.json", "x.py"], 2, "no.json is not a file"),
    ("both", ["--config", "a", "--preset", "full", "x.py"], 2, "not allowed with"),
]


@pytest.mark.parametrize("what, arguments, status, message", USE, ids=[row[0] for row in USE])
def test_bad_use(what, arguments, status, message, capsys, tmp_path, monkeypatch):
    from tornasole.run.command_line import plan_run

    monkeypatch.chdir(tmp_path)
    with pytest.raises(SystemExit) as stopped:
        plan_run(arguments, {}, 0.0)
    assert stopped.value.code == status
    assert message in capsys.readouterr().err


def test_switched_off_by_the_environment(run_program, tmp_path):
    text = NET + LOOP.format(loss="F.cross_entropy(net(inputs), labels)")
    ran = run_program(text, under=["--out", "out"], environment={"USE_SMDEBUG": "0"})
    assert ran.returncode == 0
    assert not (tmp_path / "out").exists()


def test_a_hook_of_the_script_is_used(run_program, tmp_path):
    own = "import tornasole.pytorch as smd\n"
    own += "hook = smd.Hook(out_dir='mine', save_config=smd.SaveConfig(save_interval=1))\n"
    text = NET + own + "hook.register_module(net)\n" + LOOP.format(loss="nn.CrossEntropyLoss()(net(inputs), labels)")
    ran = run_program(text, under=["--out", "out"])
    assert ran.returncode == 0, ran.stderr
    assert TrialDump(tmp_path / "mine").names == ["CrossEntropyLoss_output_0"]
    assert not (tmp_path / "out").exists()


def test_a_model_with_a_weight_that_is_computed_while_it_is_built(run_program, tmp_path):
    text = NET.replace("nn.Linear(6, 8)", "nn.utils.parametrizations.spectral_norm(nn.Linear(6, 8))")
    ran = run_program(text + LOOP.format(loss="F.cross_entropy(net(inputs), labels)"), under=["--out", "out"])
    assert ran.returncode == 0, ran.stderr
    trial = TrialDump(tmp_path / "out")
    assert len(trial.steps["TRAIN"]) == 6
    assert {"Net_fc1.parametrizations.weight.original", "gradient/Net_fc2.weight", "Net_output_0"} <= set(trial.names)


def test_a_model_that_is_called_a_loss(run_program, tmp_path):
    text = NET.replace("Net", "PairLoss").replace("fc2", "output")
    ran = run_program(text + LOOP.format(loss="F.cross_entropy(net(inputs), labels)"), under=["--out", "out"])
    assert ran.returncode == 0, ran.stderr
    trial = TrialDump(tmp_path / "out")
    assert {"PairLoss_output.weight", "gradient/PairLoss_output.weight"} <= set(trial.names)
    assert set(trial.collection("losses")) == {"PairLoss_output_0", "cross_entropy_output_0"}


def test_a_model_that_tries_its_parts_while_it_is_built(run_program, tmp_path):
    text = NET.replace("def forward", "    self.size = self.fc1(torch.zeros(1, 6)).shape[1]\n    def forward", 1)
    ran = run_program(text + LOOP.format(loss="F.cross_entropy(net(inputs), labels)"), under=["--out", "out"])
    assert ran.returncode == 0, ran.stderr
    assert "Net_fc1.weight" in TrialDump(tmp_path / "out").names


PLAIN = LOOP.format(loss="F.cross_entropy(net(inputs), labels)")
# Whose gradient is NaN while the loss is not.
BAD_GRADIENT = "F.cross_entropy(net(inputs), labels) + ((net.fc2.bias * 0).abs().sqrt().sum() if step == 1 else 0)"
BAD_ACTIVATION = NET.replace("self.fc1, self.fc2 =", "self.side, self.fc1, self.fc2 = nn.Identity(),").replace(
    "return self.fc2", "self.side(x / 0)\n        return self.fc2"
)
SCALED = LOOP.format(loss="F.cross_entropy(net(inputs), labels)").replace("for step", "scaler = {scaler}\nfor step")
SCALED = SCALED.replace("loss.backward()", "scaler.scale(loss).backward()")
SCALED = SCALED.replace("optimizer.step()", "scaler.step(optimizer); scaler.update()")
LATE = "nan = float('nan')\n"
LONG = LOOP.replace("range(6)", "range(26)")
NON_FINITE = [
    # what, program, first step, what is said
    (
        "a loss",
        NET.replace("lr=0.1", "lr=1e30") + LOOP.format(loss="net(inputs).square().mean()"),
        1,
        "the loss is inf at step 1",
    ),
    (
        "a loss, long after the last statistics",
        NET + LATE + LONG.format(loss="F.cross_entropy(net(inputs), labels) * (nan if step == 22 else 1)"),
        22,
        "the loss is nan at step 22",
    ),
    (
        "a loss, long after the last statistics, that no optimizer gets to see",
        NET
        + LATE
        + LONG.format(loss="F.cross_entropy(net(inputs), labels) * (nan if step == 22 else 1)")
        .replace("optimizer.step()", "optimizer.step() if step != 22 else None")
        .replace("optimizer.zero_grad()", "optimizer.zero_grad() if step != 23 else None"),
        22,
        "the loss is nan at step 22",
    ),
    ("a gradient", NET + LOOP.format(loss=BAD_GRADIENT), 1, "'gradient/Net_fc2.bias' is not finite at step 1"),
    ("an activation", BAD_ACTIVATION + PLAIN, 0, "'side_output_0' is not finite at step 0"),
    (
        "an activation, at a step without one of the optimizer",
        BAD_ACTIVATION
        + PLAIN.replace("optimizer.zero_grad()", "None if step % 2 else optimizer.zero_grad()").replace(
            "optimizer.step()", "optimizer.step() if step % 2 else None"
        ),
        0,
        "'side_output_0' is not finite at step 0",
    ),
    (
        "gradients that overflow under a scaler are its own affair",
        NET + SCALED.format(scaler="torch.amp.GradScaler('cpu', init_scale=2.0**127)"),
        None,
        "",
    ),
]


@pytest.mark.parametrize("what, text, first, message", NON_FINITE, ids=[row[0] for row in NON_FINITE])
def test_the_first_value_that_is_no_number(what, text, first, message, run_program, tmp_path):
    """What is in memory, parameters and gradients, is saved whole at that step, and everything for two more."""
    ran = run_program(text, under=["--out", "out"])
    assert ran.returncode == 0, ran.stderr
    assert message in ran.stderr
    assert ran.stderr.count("everything is saved for two steps") == (first is not None)
    entries = TrialDump(tmp_path / "out").entries()

    def whole(tensor):
        return {step for (name, step, _), entry in entries.items() if name == tensor and entry["value_announced"]}

    steps = set() if first is None else {first, first + 1, first + 2}
    assert whole("Net_fc1.weight") == steps
    assert whole("gradient/Net_fc1.weight") == steps
    assert whole("fc1_output_0") == steps - {first}


def test_a_penalty_that_breaks_the_loss_and_no_gradient(run_program, tmp_path):
    penalty = "torch.log(torch.relu(net.fc2.bias * 0)).sum()"
    text = NET + LOOP.format(loss=f"F.cross_entropy(net(inputs), labels) - {penalty}")
    ran = run_program(text, under=["--out", "out"])
    assert ran.returncode == 0, ran.stderr
    assert "the loss is inf at step 0" in ran.stderr
    trial = TrialDump(tmp_path / "out")
    assert "cross_entropy_output_0" in trial.names
    assert "backward_loss_output_0" in trial.names_at(0)
    told = subprocess.run([program(), "check", tmp_path / "out", "--json"], capture_output=True, check=False)
    verdicts = json.loads(told.stdout)["verdicts"]
    assert [v["tensors"] for v in verdicts if v["rule"] == "NonFiniteProvenance"] == [["backward_loss_output_0"]]


def test_by_environment_alone(run_program, tmp_path):
    """The line that the wheel gives to the interpreter, and a configuration in the environment."""
    lines = os.path.join(os.path.dirname(__file__), "..", "..", "..", "python")
    (tmp_path / "config.json").write_text(json.dumps({"LocalPath": "out", "HookParameters": {"save_interval": 1}}))
    text = f"import site; site.addsitedir({os.path.abspath(lines)!r})\n"
    text += NET + LOOP.format(loss="nn.CrossEntropyLoss()(net(inputs), labels)")
    ran = run_program(text, environment={"SMDEBUG_CONFIG_FILE_PATH": "config.json"})
    assert ran.returncode == 0, ran.stderr
    assert TrialDump(tmp_path / "out").names == ["CrossEntropyLoss_output_0"]


OTHERS = [
    ("its configuration is left to it", ["SMDEBUG_CONFIG_FILE_PATH"], None, set()),
    ("ours holds beside it", ["SMDEBUG_CONFIG_FILE_PATH", "TORNASOLE_CONFIG_FILE_PATH"], None, {"out"}),
    ("so does the command", ["SMDEBUG_CONFIG_FILE_PATH"], ["--out", "run"], {"run"}),
]


@pytest.mark.parametrize("what, variables, under, written", OTHERS, ids=[row[0] for row in OTHERS])
def test_a_program_with_another_smdebug(what, variables, under, written, run_program, tmp_path):
    """Two libraries that write by one configuration would write over each other."""
    lines = os.path.join(os.path.dirname(__file__), "..", "..", "..", "python")
    (tmp_path / "smdebug.py").write_text("")
    (tmp_path / "config.json").write_text(json.dumps({"LocalPath": "out"}))
    text = f"import site; site.addsitedir({os.path.abspath(lines)!r}); import smdebug\n"
    text += NET + LOOP.format(loss="F.cross_entropy(net(inputs), labels)")
    ran = run_program(text, under=under, environment={name: "config.json" for name in variables})
    assert ran.returncode == 0, ran.stderr
    assert {name for name in ("out", "run") if (tmp_path / name).exists()} == written
    assert ("nothing will be captured: RuntimeError: the program uses another smdebug" in ran.stderr) == (not written)
