"""What is saved of a PyTorch model, under which names, and when."""

import json

import model_zoo
import pytest
import torch
from torch import nn
from trial_dump import TrialDump

import tornasole.pytorch as smd


def hook_for(path, **options):
    options.setdefault("save_config", smd.SaveConfig(save_interval=1))
    return smd.Hook(out_dir=str(path), **options)


def train(net, steps=2, loss=None, seed=0):
    torch.manual_seed(seed)
    loss = loss or nn.CrossEntropyLoss()
    optimizer = torch.optim.SGD([p for p in net.parameters() if p.requires_grad], lr=0.1, momentum=0.9)
    for step in range(steps):
        inputs, labels = model_zoo.batch(step)
        optimizer.zero_grad()
        loss(net(inputs), labels).backward()
        optimizer.step()


PARAMETERS = ["Plain_fc1.weight", "Plain_fc1.bias", "Plain_fc2.weight", "Plain_fc2.bias"]
CASES = [
    ("the default is losses", {}, ["CrossEntropyLoss_output_0"]),
    ("weights", {"include_collections": ["weights"]}, ["CrossEntropyLoss_output_0", *PARAMETERS[::2]]),
    (
        "gradients",
        {"include_collections": ["gradients"]},
        ["CrossEntropyLoss_output_0", *(f"gradient/{name}" for name in PARAMETERS)],
    ),
    (
        "a pattern",
        {"include_regex": "relu_(in|out)put"},
        ["CrossEntropyLoss_output_0", "relu_input_0", "relu_output_0"],
    ),
    (
        "everything",
        {"save_all": True},
        [
            *PARAMETERS,
            *(f"gradient/{name}" for name in PARAMETERS),
            *(f"{module}_{side}_0" for module in ("Plain", "fc1", "relu", "fc2") for side in ("input", "output")),
            *("CrossEntropyLoss_input_0", "CrossEntropyLoss_input_1", "CrossEntropyLoss_output_0"),
        ],
    ),
    (
        "what the optimizer sees",
        {"include_collections": ["optimizer_gradients"]},
        ["CrossEntropyLoss_output_0", "scalar/learning_rate/0", *(f"optimizer_gradient/{name}" for name in PARAMETERS)],
    ),
    (
        "the optimizer's state",
        {"include_collections": ["optimizer_variables"]},
        [
            *("CrossEntropyLoss_output_0", "scalar/learning_rate/0"),
            *(f"optimizer_state/momentum_buffer/{name}" for name in PARAMETERS),
        ],
    ),
]


@pytest.mark.parametrize("what, options, names", CASES, ids=[row[0] for row in CASES])
def test_names(what, options, names, tmp_path):
    hook, net, loss = hook_for(tmp_path / "run", **options), model_zoo.Plain(), nn.CrossEntropyLoss()
    hook.register_module(net)
    hook.register_loss(loss)
    train(net, steps=3, loss=loss)
    hook.close()
    assert TrialDump(tmp_path / "run").names == sorted(names)


def test_values_are_those_of_their_moment(tmp_path):
    """Parameters before the update, the gradient of this backward pass, activations before they are overwritten."""
    hook, net, loss = hook_for(tmp_path / "run", save_all=True), model_zoo.InPlace(), nn.CrossEntropyLoss()
    hook.register_module(net)
    hook.register_loss(loss)
    expected = {}
    optimizer = torch.optim.SGD(net.parameters(), lr=0.1)
    for step in range(3):
        inputs, labels = model_zoo.batch(step)
        expected["InPlace_fc1.weight", step] = net.fc1.weight.detach().clone()
        hidden = torch.nn.functional.linear(inputs, net.fc1.weight, net.fc1.bias).detach()
        expected["fc1_output_0", step] = hidden.clone()
        expected["relu_output_0", step] = hidden.clamp(min=0)
        value = loss(net(inputs), labels)
        before = None if net.fc2.bias.grad is None else net.fc2.bias.grad.clone()
        value.backward()  # gradients add up: zero_grad is never called
        expected["gradient/InPlace_fc2.bias", step] = net.fc2.bias.grad - (0 if before is None else before)
        expected["CrossEntropyLoss_output_0", step] = value.detach()
        optimizer.step()
    hook.close()
    trial = TrialDump(tmp_path / "run")
    for (name, step), value in expected.items():
        assert trial.value(name, step) == pytest.approx(value.flatten().tolist(), rel=1e-5, abs=1e-6), (name, step)


def test_a_module_called_often_is_numbered_on(tmp_path):
    hook, net = hook_for(tmp_path / "run", include_regex="cell_"), model_zoo.Reused()
    hook.register_module(net)
    train(net)
    hook.close()
    names = [f"cell_{side}_{i}" for side in ("input", "output") for i in range(3)]
    trial = TrialDump(tmp_path / "run")
    assert [name for name in trial.names if name.startswith("cell")] == names
    assert trial.names_at(0) == trial.names_at(1), "the numbers start again at each step"


def test_tuples_lists_and_dicts_are_looked_into(tmp_path):
    hook, net = hook_for(tmp_path / "run", include_regex=["pair_output", "named_output", "silent"]), model_zoo.Odd()
    hook.register_module(net)
    train(net)
    hook.close()
    assert TrialDump(tmp_path / "run").names == [
        "named_output_0",
        "named_output_1",
        "pair_output_0",
        "pair_output_1",
        "silent_input_0",
    ]


@pytest.mark.parametrize("model", [model_zoo.Checkpointed, model_zoo.CheckpointedAgain], ids=lambda m: m.__name__)
def test_activations_computed_again_are_saved_once(model, tmp_path):
    hook, net = hook_for(tmp_path / "run", include_regex="inner", include_collections=["gradients"]), model()
    hook.register_module(net)
    train(net)
    hook.close()
    trial = TrialDump(tmp_path / "run")
    assert [name for name in trial.names if name.startswith("inner.0_")] == ["inner.0_input_0", "inner.0_output_0"]
    assert "gradient/" + model.__name__ + "_inner.0.weight" in trial.names
    assert trial.steps == {"GLOBAL": [0, 1]}


def test_modes_and_their_steps(tmp_path):
    hook, net = hook_for(tmp_path / "run", save_all=True), model_zoo.Plain()
    hook.register_module(net)
    for mode in (smd.modes.TRAIN, smd.modes.TRAIN, smd.modes.EVAL, smd.modes.TRAIN):
        hook.set_mode(mode)
        net(model_zoo.batch(0)[0])
    hook.close()
    assert TrialDump(tmp_path / "run").modes() == [(0, "TRAIN", 0), (1, "TRAIN", 1), (2, "EVAL", 0), (3, "TRAIN", 2)]


def test_add_module_tensors(tmp_path):
    hook, net = hook_for(tmp_path / "run", include_collections=["mine"]), model_zoo.Plain()
    hook.get_collection("mine").add_module_tensors(net.fc1, inputs=True, outputs=True)
    hook.register_module(net)
    train(net)
    hook.close()
    assert TrialDump(tmp_path / "run").collection("mine") == ["fc1_input_0", "fc1_output_0"]


def test_functions_inside_a_module(tmp_path):
    hook = hook_for(tmp_path / "run", include_regex=r"\(\)", capture_functional=True)
    net = model_zoo.Reused()
    hook.register_module(net)
    train(net)
    hook.close()
    names = [f"Reused.tanh()_{i}_{side}_0" for i in range(3) for side in ("input", "output")]
    assert TrialDump(tmp_path / "run").names == names


def test_a_pass_that_failed_is_marked_partial(tmp_path):
    hook, net = hook_for(tmp_path / "run", save_all=True), model_zoo.Plain()
    hook.register_module(net)
    net(model_zoo.batch(0)[0])
    with pytest.raises(RuntimeError):
        net(torch.zeros(2, 4))
    net(model_zoo.batch(0)[0])
    hook.close()
    metas = [json.loads(path.read_text())["meta"] for path in sorted((tmp_path / "run" / "index").rglob("*.json"))]
    assert [meta.get("partial", False) for meta in metas] == [False, True, False]


def test_facts_of_a_step(tmp_path):
    hook, net = hook_for(tmp_path / "run"), model_zoo.Plain()
    hook.register_module(net)
    scaler = torch.amp.GradScaler("cpu", init_scale=8.0)
    optimizer = torch.optim.SGD(net.parameters(), lr=0.1)
    for _ in range(2):
        value = net(model_zoo.batch(0)[0]).sum()
        hook.record_tensor_value("my_loss", value)
        scaler.scale(value).backward()
        scaler.step(optimizer)
        scaler.update()
    net.eval()
    with torch.no_grad():
        hook.record_tensor_value("my_loss", net(model_zoo.batch(0)[0]).sum())
    hook.close()
    metas = [json.loads(path.read_text())["meta"] for path in sorted((tmp_path / "run" / "index").rglob("*.json"))]
    assert [meta["optimizer_step"] for meta in metas] == [0, 1, 2]
    assert [meta["training"] for meta in metas] == [True, True, False]
    assert [meta["grad_enabled"] for meta in metas] == [True, True, False]
    assert [meta["grad_scale"] for meta in metas] == [8.0, 8.0, 8.0]


def test_gradients_accumulated_scaled_and_clipped(tmp_path):
    """``gradient/`` is that of one backward pass, ``optimizer_gradient/`` what the optimizer uses."""
    hook = hook_for(tmp_path / "run", include_collections=["gradients", "optimizer_gradients"])
    net = nn.Linear(2, 1, bias=False)
    hook.register_module(net)
    scaler = torch.amp.GradScaler("cpu", init_scale=4.0)
    optimizer = torch.optim.SGD(net.parameters(), lr=0.1)
    for _ in range(2):
        scaler.scale(net(torch.ones(1, 2)).sum()).backward()
    scaler.unscale_(optimizer)
    torch.nn.utils.clip_grad_norm_(net.parameters(), 1.0)
    scaler.step(optimizer)
    hook.close()
    trial = TrialDump(tmp_path / "run")
    assert trial.value("gradient/Linear_weight", 0) == trial.value("gradient/Linear_weight", 1) == [4.0, 4.0]
    used = trial.entries()["optimizer_gradient/Linear_weight", 1, "worker_0"]["reductions"]
    assert used["l2"]["data"] == pytest.approx([1.0], rel=1e-4), used
    assert trial.value("scalar/grad_norm", 1) == pytest.approx([8**0.5])


@pytest.mark.parametrize("clears", ["to none", "to zero", "never"])
def test_what_is_left_of_gradients_before_a_pass(clears, tmp_path):
    hook = hook_for(tmp_path / "run", include_collections=["gradients", "optimizer_gradients"])
    hook._is_asked_for_rates = True  # as presets do
    net = nn.Linear(2, 1, bias=False)
    hook.register_module(net)
    optimizer = torch.optim.SGD(net.parameters(), lr=0.1)
    for _ in range(3):
        net(torch.ones(1, 2)).sum().backward()
        torch.nn.utils.clip_grad_norm_(net.parameters(), 1.0)
        optimizer.step()
        if clears != "never":
            optimizer.zero_grad(set_to_none=clears == "to none")
    hook.close()
    trial = TrialDump(tmp_path / "run")
    found = [trial.value("scalar/gradient_before/Linear_weight", step)[0] for step in range(3)]
    assert found == ([0.0, pytest.approx(0.5**0.5), pytest.approx(0.5**0.5)] if clears == "never" else [0.0] * 3)


def test_parallel_wrappers_in_names(tmp_path):
    for stable, weight in ((False, "DataParallel_module.fc1.weight"), (True, "Plain_fc1.weight")):
        hook = hook_for(tmp_path / str(stable), include_collections=["weights"], stable_names=stable)
        net = nn.DataParallel(model_zoo.Plain())
        hook.register_module(net)
        net(model_zoo.batch(0)[0])
        hook.close()
        assert weight in TrialDump(tmp_path / str(stable)).names


VERSION = tuple(map(int, torch.__version__.split(".")[:2]))


@pytest.mark.skipif(VERSION < (2, 6), reason="needs PyTorch 2.6: fully_shard")
def test_a_sharded_model_in_names(tmp_path):
    import torch.distributed.fsdp as fsdp

    distributed = torch.distributed
    distributed.init_process_group("gloo", store=distributed.HashStore(), rank=0, world_size=1)
    try:
        net = model_zoo.Plain()
        fsdp.fully_shard(net, mesh=distributed.init_device_mesh("cpu", (1,)))
        for stable, root in ((False, "FSDPPlain"), (True, "Plain")):
            hook = hook_for(tmp_path / str(stable), include_collections=["weights"], stable_names=stable)
            hook.register_module(net)
            net(model_zoo.batch(0)[0])
            hook.close()
            assert f"{root}_fc1.weight" in TrialDump(tmp_path / str(stable)).names
    finally:
        distributed.destroy_process_group()


def test_every_element_type(tmp_path):
    hook, net = hook_for(tmp_path / "run", include_regex="value"), model_zoo.Plain()
    hook.register_module(net)
    net(model_zoo.batch(0)[0])
    kinds = "float16 bfloat16 float32 float64 int8 int16 int32 int64 uint8 bool complex64 float8_e5m2".split()
    for kind in kinds:
        hook.record_tensor_value(f"value_{kind}", torch.ones(3).to(getattr(torch, kind)))
    hook.record_tensor_value("value_sparse", torch.eye(3).to_sparse())
    hook.record_tensor_value("value_conj", torch.complex(torch.ones(2), torch.ones(2)).conj().imag)
    hook.record_tensor_value("value_strided", torch.arange(6.0).view(2, 3).t())
    hook.close()
    trial = TrialDump(tmp_path / "run")
    for kind in kinds:
        assert trial.entries()[f"value_{kind}_output_0", 0, "worker_0"]["value"]["dtype"] == kind
    assert trial.value("value_sparse_output_0", 0) == torch.eye(3).flatten().tolist()
    assert trial.value("value_conj_output_0", 0) == [-1.0, -1.0]
    assert trial.value("value_strided_output_0", 0) == [0.0, 3.0, 1.0, 4.0, 2.0, 5.0]


def test_parameters_that_change_places(tmp_path):
    """A layer replaced, unfrozen or added while the training runs is captured from the next due step on."""
    hook, net = hook_for(tmp_path / "run", include_collections=["weights", "gradients"]), model_zoo.Frozen()
    hook.register_module(net)
    net(model_zoo.batch(0)[0]).sum().backward()
    net.fc1.requires_grad_(True)
    net.fc2 = nn.Linear(8, 3)
    net.extra = nn.Linear(1, 1)
    net(model_zoo.batch(0)[0]).sum().backward()
    hook.close()
    trial = TrialDump(tmp_path / "run")
    assert "gradient/Frozen_fc1.weight" in trial.names_at(1) - trial.names_at(0)
    assert "Frozen_extra.weight" in trial.names_at(1)
    assert trial.value("Frozen_fc2.weight", 1) == pytest.approx(net.fc2.weight.detach().flatten().tolist())


BAD_USE = [
    ("no module", lambda hook: hook.register_module("net"), Exception, "torch.nn.Module"),
    ("no loss", lambda hook: hook.register_loss(nn.Linear(1, 1)), AssertionError, "register_loss takes a loss"),
    ("no tensor", lambda hook: hook.record_tensor_value("loss", 1.0), AssertionError, "torch.Tensor"),
    ("no optimizer", lambda hook: hook.register_optimizer(1), Exception, "torch.optim.Optimizer"),
]


@pytest.mark.parametrize("what, call, error, message", BAD_USE, ids=[row[0] for row in BAD_USE])
def test_bad_use(what, call, error, message, tmp_path):
    hook = hook_for(tmp_path / "run", save_all=True)
    with pytest.raises(error, match=message):
        call(hook)


def test_a_module_is_registered_once(tmp_path):
    hook, net = hook_for(tmp_path / "run", save_all=True), model_zoo.Plain()
    hook.register_module(net)
    with pytest.raises(AssertionError, match="registered already"):
        hook.register_module(net)


class CalledInItsOwnOrder(torch.nn.Module):
    """Modules are made in another order than they are called in; one never is."""

    def __init__(self):
        super().__init__()
        self.last = torch.nn.Linear(3, 1)
        self.block = torch.nn.Sequential(torch.nn.Linear(4, 3), torch.nn.ReLU())
        self.unused = torch.nn.Linear(2, 2)
        self.first = torch.nn.Linear(4, 4)

    def forward(self, x):
        return self.last(self.block(self.first(x)))


def test_modules_are_described_in_the_order_of_their_calls(tmp_path):
    hook = smd.Hook(out_dir=str(tmp_path / "run"), include_collections=["losses"])
    net, loss = CalledInItsOwnOrder(), torch.nn.MSELoss()
    hook.register_module(net)
    hook.register_loss(loss)
    loss(net(torch.ones(2, 4)), torch.ones(2, 1)).backward()
    hook.close()
    modules = smd.create_trial(str(tmp_path / "run")).model_description()["modules"]
    order = {path: module["call_order"] for path, module in modules.items()}
    assert order.pop("unused") is None
    assert sorted(order, key=order.get) == ["CalledInItsOwnOrder", "first", "block", "block.0", "block.1", "last"]
    assert sorted(order.values()) == list(range(6))


def test_an_optimizer_is_described_by_its_largest_group(tmp_path):
    net = nn.Linear(8, 4)
    groups = [{"params": [net.bias], "weight_decay": 0.0}, {"params": [net.weight], "weight_decay": 0.1}]
    optimizer = torch.optim.AdamW(groups, lr=0.5)
    schedule = torch.optim.lr_scheduler.LambdaLR(optimizer, lambda step: (step + 1) / 10)
    hook = hook_for(tmp_path / "run", include_collections=["weights"])
    hook.register_module(net)
    hook.register_optimizer(optimizer)
    for _ in range(2):
        net(torch.ones(2, 8)).sum().backward()
        optimizer.step()
        schedule.step()
    hook.close()
    described = smd.create_trial(str(tmp_path / "run")).model_description()["optimizers"][0]
    assert (described["hyperparameters"]["lr"], described["hyperparameters"]["weight_decay"]) == (0.5, 0.1)
    assert described["groups"] == [["Linear_bias"], ["Linear_weight"]]


def test_a_parameter_is_described_as_it_was_when_it_was_saved(tmp_path):
    net, loss = nn.Sequential(nn.Linear(8, 4), nn.Linear(4, 1)), nn.MSELoss()
    net[0].requires_grad_(False)
    hook = hook_for(tmp_path / "run", include_collections=["weights", "gradients"])
    for name in ("weights", "gradients"):
        hook.get_collection(name).save_config = smd.SaveConfig(save_steps=[0, 1, 2], save_interval=1000)
    hook.register_module(net)
    hook.register_loss(loss)
    for step in range(6):
        if step % 4 == 0:  # set free, and known to another optimizer, when nothing but losses is saved
            net[0].requires_grad_(step > 0)
            optimizer = torch.optim.SGD([p for p in net.parameters() if p.requires_grad], lr=0.1)
        optimizer.zero_grad()
        loss(net(torch.ones(2, 8)), torch.ones(2, 1)).backward()
        optimizer.step()
    hook.close()
    parameters = smd.create_trial(str(tmp_path / "run")).model_description()["parameters"]
    trained = {name: parameter["requires_grad"] for name, parameter in parameters.items()}
    assert trained == {f"Sequential_{i}.{part}": i == 1 for i in (0, 1) for part in ("weight", "bias")}


def test_the_version_of_torch():
    from tornasole.pytorch import utils

    assert str(utils.PT_VERSION) == torch.__version__
    known = {minor: getattr(utils, f"is_pt_1_{minor}")() for minor in (5, 6, 7, 8, 9)}
    assert known == {minor: torch.__version__.startswith(f"1.{minor}.") for minor in known}


def test_a_version_that_is_put_in_its_place(monkeypatch):
    from tornasole.pytorch import utils

    monkeypatch.setattr(utils, "PT_VERSION", "1.7.1")
    assert utils.is_pt_1_7() and not utils.is_pt_1_8()


@pytest.fixture
def in_a_job(tmp_path, monkeypatch):
    """get_hook finds a configuration, as in a managed job; afterwards nothing is left of what it found out."""
    from tornasole.core.config_validator import reset_config_validator

    (tmp_path / "hook.json").write_text(json.dumps({"LocalPath": str(tmp_path / "run")}))
    monkeypatch.setenv("SMDEBUG_CONFIG_FILE_PATH", str(tmp_path / "hook.json"))
    monkeypatch.setenv("USE_SMDEBUG", "true")
    smd.del_hook()
    reset_config_validator()
    yield
    smd.del_hook()
    monkeypatch.undo()
    reset_config_validator()


def test_the_validator_decides_whether_there_is_a_hook(in_a_job, monkeypatch):
    from tornasole.core import config_validator

    with monkeypatch.context() as patched:
        patched.setattr(config_validator, "is_framework_version_supported", lambda framework: False)
        assert smd.get_hook(create_if_not_exists=True) is None
    assert smd.get_hook(create_if_not_exists=True) is None, "once it has decided"


@pytest.mark.parametrize("value, is_made", [("true", True), ("0", False)])
def test_the_switch_is_read_again_with_a_new_validator(in_a_job, monkeypatch, value, is_made):
    from tornasole.core.config_validator import reset_config_validator

    monkeypatch.setenv("USE_SMDEBUG", value)
    reset_config_validator()
    assert (smd.get_hook(create_if_not_exists=True) is not None) == is_made
