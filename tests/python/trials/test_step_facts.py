"""What values cannot tell, read back from a run: the model, and the facts of its steps."""

import math

import numpy
import pytest
from trial_files import TrialFiles, open_hook

from tornasole.core.save_config import SaveConfig
from tornasole.exceptions import IndexReaderException, SMDebugError
from tornasole.modes import ModeKeys
from tornasole.trials import create_trial

torch = pytest.importorskip("torch")


class Net(torch.nn.Module):
    def __init__(self):
        super().__init__()
        self.fc1 = torch.nn.Linear(4, 3)
        self.fc2 = torch.nn.Linear(3, 1)

    def forward(self, x):
        return self.fc2(torch.relu(self.fc1(x)))


@pytest.fixture(scope="module")
def trial(tmp_path_factory):
    """Three training steps and one of evaluation, without gradients."""
    out_dir = str(tmp_path_factory.mktemp("facts") / "run")
    net, loss = Net(), torch.nn.MSELoss()
    optimizer = torch.optim.SGD(net.parameters(), lr=0.25, momentum=0.5)
    from tornasole.pytorch import Hook

    hook = Hook(out_dir=out_dir, save_config=SaveConfig(save_interval=1), include_collections=["weights"])
    hook.register_module(net)
    hook.register_loss(loss)
    for _ in range(3):
        hook.set_mode(ModeKeys.TRAIN)
        optimizer.zero_grad()
        loss(net(torch.ones(2, 4)), torch.ones(2, 1)).backward()
        optimizer.step()
    hook.set_mode(ModeKeys.EVAL)
    net.eval()
    with torch.no_grad():
        net(torch.ones(2, 4))
    hook.close()
    return create_trial(out_dir)


def test_the_model_is_described(trial):
    model = trial.model_description()
    assert model["framework"] == "pytorch" and model["world_size"] == 1 and model["device"] == "cpu"
    assert model["versions"]["torch"] == torch.__version__
    classes = {path: module["class"] for path, module in model["modules"].items()}
    assert sorted(classes.values()) == ["Linear", "Linear", "Net"]
    assert {path: module["call_order"] for path, module in model["modules"].items()} == {"Net": 0, "fc1": 1, "fc2": 2}
    weight = model["parameters"]["Net_fc1.weight"]
    assert weight["shape"] == [3, 4] and weight["dtype"] == "float32" and weight["requires_grad"] is True
    assert classes[weight["module"]] == "Linear" and weight["tied"] == []
    (optimizer,) = model["optimizers"]
    assert optimizer["class"] == "SGD" and optimizer["hyperparameters"]["lr"] == 0.25
    assert optimizer["groups"] == [list(model["parameters"])]
    assert [loss["class"] for loss in model["losses"]] == ["MSELoss"]


def test_a_model_belongs_to_a_worker(trial):
    (worker,) = trial.workers()
    assert trial.model_description(worker) == trial.model_description()
    assert trial.model_description("nobody") is None


@pytest.mark.parametrize(
    ("what", "step", "mode", "facts"),
    [
        ("the first training step", 0, ModeKeys.TRAIN, {"optimizer_step": 0, "training": True, "grad_enabled": True}),
        ("the last training step", 2, ModeKeys.TRAIN, {"optimizer_step": 2, "training": True, "grad_enabled": True}),
        ("evaluation", 0, ModeKeys.EVAL, {"optimizer_step": 3, "training": False, "grad_enabled": False}),
        ("a global step", 1, ModeKeys.GLOBAL, {"optimizer_step": 1, "training": True, "grad_enabled": True}),
        ("a step that never was", 9, ModeKeys.TRAIN, {}),
        ("a mode that never was", 0, ModeKeys.PREDICT, {}),
    ],
)
def test_facts_of(trial, what, step, mode, facts):
    assert trial.step_facts(step, mode) == facts, what
    assert trial.step_facts(step, mode, worker=trial.workers()[0]) == facts, what
    assert trial.step_facts(step, mode, worker="nobody") == {}, what


def test_a_step_is_a_number(trial):
    with pytest.raises(SMDebugError):
        trial.step_facts("first")


def test_limits_and_scales_of_the_plain_hook(tmp_path):
    hook = open_hook(tmp_path / "run")
    hook.describe_model({"bounds": {"t": [0, math.inf]}, "optimizers": [{"hyperparameters": {"lr": math.nan}}]})
    hook.begin_step(None)
    hook.set_facts({"grad_scale": 65536.0, "backward_in_eval": True})
    hook.save("t", numpy.arange(3.0))
    hook.end_step()
    hook.close()
    trial = create_trial(str(tmp_path / "run"))
    model = trial.model_description()
    assert model["bounds"] == {"t": (0.0, math.inf)}
    assert math.isnan(model["optimizers"][0]["hyperparameters"]["lr"])
    assert trial.step_facts(0) == {"grad_scale": 65536.0, "backward_in_eval": True}


def test_a_run_that_says_nothing(tmp_path):
    files = TrialFiles(tmp_path)
    files.write(0)
    files.end()
    trial = create_trial(str(tmp_path))
    assert trial.model_description() is None
    assert trial.step_facts(0) == {}


def test_a_damaged_description(tmp_path):
    files = TrialFiles(tmp_path)
    files.write(0)
    files.end()
    (tmp_path / "tornasole").mkdir()
    (tmp_path / "tornasole" / "worker_0_model.json").write_text('{"version": 1, "modules": 7}')
    with pytest.raises(IndexReaderException, match="worker_0_model.json"):
        create_trial(str(tmp_path))
    trial = create_trial(str(tmp_path), on_damage="skip")
    assert trial.model_description() is None
    assert trial.tensor("a").value(0).tolist() == [1, 2, 3]
    ((path, _, what),) = trial.damage
    assert path == "tornasole/worker_0_model.json" and "modules" in what
