"""``torch.compile``: nothing of ours in the graph; what cannot be had is named."""

import model_zoo
import pytest
import torch
from torch import nn
from trial_dump import TrialDump

import tornasole.pytorch as smd

dynamo = pytest.importorskip("torch._dynamo", reason="needs PyTorch 2.0: torch.compile")


def compile_then_register(hook, net):
    compiled = torch.compile(net, backend="aot_eager")
    hook.register_module(compiled)
    return compiled


def register_then_compile(hook, net):
    hook.register_module(net)
    return torch.compile(net, backend="aot_eager")


def register_then_compile_in_place(hook, net):
    hook.register_module(net)
    net.compile(backend="aot_eager")
    return net


def compile_in_place_then_register(hook, net):
    net.compile(backend="aot_eager")
    hook.register_module(net)
    return net


WAYS = [compile_then_register, register_then_compile, register_then_compile_in_place, compile_in_place_then_register]


@pytest.mark.parametrize("prepare", WAYS, ids=lambda f: f.__name__)
def test_no_break_no_recompilation_and_names_of_what_is_missing(prepare, tmp_path, monkeypatch):
    dynamo.reset()
    dynamo.utils.counters.clear()
    hook = smd.Hook(out_dir=str(tmp_path / "run"), save_config=smd.SaveConfig(save_interval=2), save_all=True)
    told = []
    monkeypatch.setattr(hook.logger, "warning", lambda text, *values: told.append(text % values))
    net, loss = model_zoo.Plain(), nn.CrossEntropyLoss()
    compiled = prepare(hook, net)
    hook.register_loss(loss)
    for step in range(5):
        inputs, labels = model_zoo.batch(step)
        loss(compiled(inputs), labels).backward()
    hook.close()
    assert not dynamo.utils.counters["graph_break"]
    assert dynamo.utils.counters["stats"]["unique_graphs"] == 1
    trial = TrialDump(tmp_path / "run")
    assert trial.steps == {"GLOBAL": [0, 2, 4]}
    parameters = {"Plain_fc1.weight", "Plain_fc1.bias", "Plain_fc2.weight", "Plain_fc2.bias"}
    expected = parameters | {f"gradient/{name}" for name in parameters} | {"CrossEntropyLoss_output_0"}
    assert expected <= trial.names_at(0) and expected <= trial.names_at(4)
    assert set(hook.report()["uncaptured"]) >= {"fc1", "relu", "fc2"}
    assert len([line for line in told if "torch.compile" in line]) == 1, "one line for all modules"
    assert torch.Tensor.backward.__module__.startswith("torch")
    assert "tornasole" not in torch.compile.__code__.co_filename, "the function is PyTorch's own again"
