"""Subclasses of the hook that replace the methods PyTorch calls."""

import pytest
import torch
from torch import nn
from trial_dump import TrialDump

import tornasole.pytorch as smd


class Net(nn.Module):
    def __init__(self):
        super().__init__()
        self.fc = nn.Linear(3, 4)
        self.norm = nn.BatchNorm1d(4)

    def forward(self, x):
        return self.norm(self.fc(x)).relu()


class OwnForward(smd.Hook):
    """Writes what the hook would, gradients of outputs, and what a module knows besides."""

    def forward_hook(self, module, inputs, outputs):
        name = self.module_maps[module]
        assert name == module._module_name
        outputs.register_hook(self.backward_hook(name + "_output"))
        if isinstance(module, nn.BatchNorm1d):
            self._write_outputs(name + ".running_mean", module.running_mean)
        self._write_inputs(name, inputs)
        self._write_outputs(name, outputs)
        self.last_saved_step = self.step


class SuperForward(smd.Hook):
    def forward_hook(self, module, inputs, outputs):
        super().forward_hook(module, inputs, outputs)


class OwnBackward(smd.Hook):
    def backward_hook(self, tname):
        save = super().backward_hook(tname + "_doubled")
        return lambda gradient: save(2 * gradient)


class AroundRoot(smd.Hook):
    def forward_pre_hook(self, module, inputs):
        self._save_for_tensor("before", inputs[0] + 0)

    def fhook(self, module, inputs, outputs):
        self._save_for_tensor("after", outputs + 0)
        return outputs * 0  # must not become the output of the module


def train(hook_class, out_dir, steps=4):
    torch.manual_seed(0)
    net = Net()
    hook = hook_class(out_dir=str(out_dir), save_config=smd.SaveConfig(save_interval=2), save_all=True)
    hook.register_module(net)
    loss = nn.MSELoss()
    hook.register_loss(loss)
    optimizer = torch.optim.SGD(net.parameters(), lr=0.1)
    for _ in range(steps):
        optimizer.zero_grad()
        loss(net(torch.randn(5, 3)), torch.ones(5, 4)).backward()
        optimizer.step()
    hook.close()
    assert not any(m._forward_hooks or m._forward_pre_hooks for m in [*net.modules(), loss])
    assert not any(p._backward_hooks for p in net.parameters())
    return [p.detach().clone() for p in net.parameters()]


PARAMETERS = {"Net_fc.weight", "Net_fc.bias", "Net_norm.weight", "Net_norm.bias"}
GRADIENTS = {"gradient/" + name for name in PARAMETERS}
LOSS = {"MSELoss_input_0", "MSELoss_input_1", "MSELoss_output_0"}
TENSORS = LOSS | {"Net_input_0", "Net_output_0", "fc_input_0", "fc_output_0", "norm_input_0", "norm_output_0"}
OF_OUTPUTS = {"gradient/MSELoss_output", "gradient/Net_output", "gradient/fc_output", "gradient/norm_output"}
HOOKS = [
    ("a hook that replaces nothing", smd.Hook, TENSORS | GRADIENTS),
    ("inputs and outputs", OwnForward, TENSORS | GRADIENTS | OF_OUTPUTS | {"norm.running_mean_output_0"}),
    ("inputs and outputs, left to the hook", SuperForward, TENSORS | GRADIENTS),
    ("gradients", OwnBackward, TENSORS | {name + "_doubled" for name in GRADIENTS}),
    ("around the root", AroundRoot, TENSORS | GRADIENTS | {"before", "after"}),
]


@pytest.mark.parametrize("what, hook_class, names", HOOKS, ids=[row[0] for row in HOOKS])
def test_what_is_saved(what, hook_class, names, tmp_path):
    weights = train(hook_class, tmp_path / "own")
    plain = train(smd.Hook, tmp_path / "plain")
    assert all(torch.equal(a, b) for a, b in zip(weights, plain)), "the training is the same"
    own, reference = TrialDump(tmp_path / "own"), TrialDump(tmp_path / "plain")
    for step in (0, 2):
        assert own.names_at(step) == names | PARAMETERS
        for name in names & reference.names_at(step):
            assert own.value(name, step) == reference.value(name, step)
    assert own.names_at(1) == set(), "nothing is due there"


def test_gradients_that_were_changed_are_saved_changed(tmp_path):
    train(OwnBackward, tmp_path / "own")
    train(smd.Hook, tmp_path / "plain")
    doubled = TrialDump(tmp_path / "own").value("gradient/Net_fc.weight_doubled", 0)
    assert doubled == [2 * value for value in TrialDump(tmp_path / "plain").value("gradient/Net_fc.weight", 0)]


def test_an_exception_is_the_subclass_s_own_unless_it_is_guarded(tmp_path):
    from tornasole.core.guard import guard

    class Raising(smd.Hook):
        def fhook(self, module, inputs, outputs):
            raise KeyError("mine")

    class Guarded(smd.Hook):
        @guard.catch_smdebug_errors()
        def fhook(self, module, inputs, outputs):
            raise KeyError("mine")

    for hook_class, is_raised in ((Raising, True), (Guarded, False)):
        net = Net()
        hook = hook_class(out_dir=str(tmp_path / hook_class.__name__))
        hook.register_module(net)
        if is_raised:
            with pytest.raises(KeyError, match="mine"):
                net(torch.randn(5, 3))
        else:
            net(torch.randn(5, 3))
            assert guard.disable_smdebug, "with the default configuration a failure switches capture off"
        hook.close()
        assert (tmp_path / hook_class.__name__ / "training_job_end.ts").exists(), "off or not, the run has ended"
        assert not any(m._forward_hooks or m._forward_pre_hooks for m in net.modules())
        assert "tornasole" not in torch.nn.utils.clip_grad_norm_.__code__.co_filename
