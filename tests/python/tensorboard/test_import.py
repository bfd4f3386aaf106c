"""TensorBoard's files as trials: what `tornasole import` makes of what other programs wrote."""

import json
import subprocess
import sys

import numpy as np
import pytest
from torch.utils.tensorboard import SummaryWriter

from tornasole.trials import create_trial


def tornasole(*arguments, code=0):
    done = subprocess.run([sys.executable, "-m", "tornasole", *map(str, arguments)], capture_output=True, text=True)
    assert done.returncode == code, done.stdout + done.stderr
    return done.stdout


def imported(tmp_path, *more):
    tornasole("import", "--from", "tensorboard", tmp_path / "logs", "-o", tmp_path / "trial", *more)
    return create_trial(str(tmp_path / "trial"))


@pytest.mark.parametrize("new_style", [False, True])
def test_the_writer_of_pytorch(tmp_path, new_style):
    values = np.linspace(-2, 3, 100)
    with SummaryWriter(str(tmp_path / "logs")) as writer:
        for step in range(5):
            writer.add_scalar("Loss/train", 1.0 / (step + 1), step, new_style=new_style)
            writer.add_scalar("Loss/val", 2.0 + step, step, new_style=new_style)
            writer.add_histogram("weights/fc1", values * step, step)
            writer.add_text("note", "hello", step)
    trial = imported(tmp_path)
    assert set(trial.tensor_names(collection="losses")) == {"Loss"}
    from tornasole import modes

    loss = trial.tensor("Loss")
    assert [float(loss.value(s, mode=modes.TRAIN)[0]) for s in range(5)] == pytest.approx([1, 1 / 2, 1 / 3, 1 / 4, 1 / 5])
    assert [float(loss.value(s, mode=modes.EVAL)[0]) for s in range(5)] == [2, 3, 4, 5, 6]
    weights = trial.tensor("weights/fc1")
    assert weights.reduction_value(4, "min", mode=modes.TRAIN) == pytest.approx(-8)
    assert weights.reduction_value(4, "max", mode=modes.TRAIN) == pytest.approx(12)
    assert weights.reduction_value(4, "mean", mode=modes.TRAIN) == pytest.approx(values.mean() * 4)
    table = trial.tensor("weights/fc1/histogram").value(4, mode=modes.TRAIN)
    assert table.shape[1] == 3 and table[:, 2].sum() == 100


def test_rules_and_check_see_an_overfit(tmp_path):
    for mode, losses in {"train": np.geomspace(2, 0.01, 60), "validation": np.linspace(2, 9, 60)}.items():
        with SummaryWriter(str(tmp_path / "logs" / "fit" / mode)) as writer:
            for step, loss in enumerate(losses):
                writer.add_scalar("epoch_loss", loss, step)
    imported(tmp_path)
    report = json.loads(tornasole("rule", tmp_path / "trial", "Overfit", "--json", code=10))
    assert "Overfit" in json.dumps(report)
    tornasole("check", tmp_path / "trial", code=10)


def test_a_loss_that_stands_still_is_found(tmp_path):
    with SummaryWriter(str(tmp_path / "logs")) as writer:
        for step in range(0, 2000, 10):
            writer.add_scalar("loss", 1.0, step)
    imported(tmp_path)
    tornasole("rule", tmp_path / "trial", "LossNotDecreasing", code=10)


def test_what_we_write_ourselves_comes_back(tmp_path):
    import torch

    import tornasole.pytorch as ts

    hook = ts.Hook(tmp_path / "run", tensorboard_dir=str(tmp_path / "logs"),
                   save_config=ts.SaveConfig(save_interval=1), include_collections=["weights"])
    net, loss = torch.nn.Linear(3, 2), torch.nn.MSELoss()
    hook.register_module(net)
    hook.register_loss(loss)
    for mode in (ts.modes.TRAIN, ts.modes.TRAIN, ts.modes.EVAL):
        hook.set_mode(mode)
        loss(net(torch.ones(4, 3)), torch.zeros(4, 2)).backward()
    hook.close()
    before, after = create_trial(str(tmp_path / "run")), imported(tmp_path)
    name = "MSELoss_output_0"
    assert after.steps(mode=ts.modes.TRAIN) == [0, 1] and after.steps(mode=ts.modes.EVAL) == [2]
    for step, of_mode in ((0, 0), (1, 1)):
        ours = np.float32(before.tensor(name).value(of_mode, mode=ts.modes.TRAIN))
        assert np.float32(after.tensor(name).value(step, mode=ts.modes.TRAIN)[0]) == ours
    assert any("weight" in tensor for tensor in after.tensor_names(collection="histograms"))


def test_several_runs_are_told_apart(tmp_path):
    for name in ("one", "two"):
        with SummaryWriter(str(tmp_path / "logs" / name)) as writer:
            writer.add_scalar("loss", 1.0, 0)
    tornasole("import", tmp_path / "logs", "-o", tmp_path / "trial", code=2)
    assert imported(tmp_path, "--run", "two").tensor_names() == ["loss"]
