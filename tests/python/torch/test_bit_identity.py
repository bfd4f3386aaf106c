"""A training ends with the same bits in its weights and in its random state, with the hook and without."""

import random

import model_zoo
import pytest
import torch
from torch import nn
from torch.utils.data import DataLoader, Dataset

import tornasole.pytorch as smd

STEPS = 6


def everything(directory):
    return smd.Hook(out_dir=directory, save_config=smd.SaveConfig(save_interval=1), save_all=True)


def statistics(directory):
    return smd.Hook(
        out_dir=directory,
        save_config=smd.SaveConfig(save_interval=2),
        include_collections=["weights", "gradients", "biases", "optimizer_gradients", "optimizer_variables"],
        reduction_config=smd.ReductionConfig(reductions=["mean", "std"], norms=["l2"]),
    )


def nothing(directory):
    return smd.Hook(out_dir=directory, save_config=smd.SaveConfig(save_interval=10**6, start_step=1), save_all=True)


HOOKS = [everything, statistics, nothing]


def loop(net, loss, optimizer, rounds=STEPS):
    """Training with an evaluation pass in between."""
    for step in range(rounds):
        inputs, labels = model_zoo.batch(step)
        net.train()
        optimizer.zero_grad()
        loss(net(inputs), labels).backward()
        optimizer.step()
        if step % 2:
            net.eval()
            with torch.no_grad():
                loss(net(inputs), labels)


def run(make_net, train, hook, register_compiled=False):
    """Weights and random state after a training; ``hook`` is a hook or None."""
    torch.manual_seed(7)
    random.seed(7)
    net = make_net()
    loss = nn.CrossEntropyLoss()
    optimizer = torch.optim.Adam([p for p in net.parameters() if p.requires_grad], lr=0.01)
    if hook is not None:
        hook.register_module(net)
        hook.register_loss(loss)
    train(net, loss, optimizer)
    if hook is not None:
        hook.close()
        assert hook.report()["errors"] == [], hook.report()["errors"]
    return {name: value.clone() for name, value in net.state_dict().items()}, torch.get_rng_state(), random.random()


def assert_same(bare, hooked):
    assert bare[0].keys() == hooked[0].keys()
    for name, value in bare[0].items():
        assert value.numpy().tobytes() == hooked[0][name].numpy().tobytes(), name
    assert torch.equal(bare[1], hooked[1]), "the state of torch's random numbers"
    assert bare[2] == hooked[2], "the state of Python's random numbers"


@pytest.mark.parametrize("make_hook", HOOKS, ids=lambda f: f.__name__)
@pytest.mark.parametrize("model", model_zoo.MODELS, ids=lambda m: m.__name__)
def test_models(model, make_hook, tmp_path):
    assert_same(run(model, loop, None), run(model, loop, make_hook(tmp_path / "run")))


# ---- ways of training


def with_autocast(net, loss, optimizer):
    for step in range(STEPS):
        inputs, labels = model_zoo.batch(step)
        optimizer.zero_grad()
        with torch.autocast("cpu", dtype=torch.bfloat16):
            value = loss(net(inputs), labels)
        value.backward()
        optimizer.step()


def with_scaler(net, loss, optimizer):
    scaler = torch.amp.GradScaler("cpu", init_scale=1024.0)
    for step in range(STEPS):
        inputs, labels = model_zoo.batch(step)
        optimizer.zero_grad()
        scaler.scale(loss(net(inputs), labels)).backward()
        scaler.unscale_(optimizer)
        nn.utils.clip_grad_norm_(net.parameters(), 0.5)
        scaler.step(optimizer)
        scaler.update()


def with_accumulation(net, loss, optimizer):
    for step in range(STEPS):
        optimizer.zero_grad()
        for part in range(3):
            inputs, labels = model_zoo.batch(10 * step + part)
            (loss(net(inputs), labels) / 3).backward()
        optimizer.step()


def with_an_exception(net, loss, optimizer):
    for step in range(STEPS):
        inputs, labels = model_zoo.batch(step)
        optimizer.zero_grad()
        try:
            loss(net(inputs if step != 2 else inputs[:, :4]), labels).backward()
        except RuntimeError:
            continue
        optimizer.step()


def with_an_early_break(net, loss, optimizer):
    for step in range(STEPS):
        inputs, labels = model_zoo.batch(step)
        optimizer.zero_grad()
        value = loss(net(inputs), labels)
        if step == 3:
            break
        value.backward()
        optimizer.step()


def with_a_closure(net, loss, optimizer):
    def closure():
        optimizer.zero_grad()
        value = loss(net(model_zoo.batch(1)[0]), model_zoo.batch(1)[1])
        value.backward()
        return value

    for _ in range(STEPS):
        optimizer.step(closure)


class Samples(Dataset):
    def __len__(self):
        return 20

    def __getitem__(self, i):
        inputs, labels = model_zoo.batch(i, size=1)
        return inputs[0], labels[0]


def with_loader(context):
    def train(net, loss, optimizer):
        loader = DataLoader(Samples(), batch_size=5, shuffle=True, num_workers=1, multiprocessing_context=context)
        for inputs, labels in loader:
            optimizer.zero_grad()
            loss(net(inputs), labels).backward()
            optimizer.step()

    train.__name__ = f"with_loader_by_{context}"
    return train


TRAININGS = [
    with_autocast,
    with_scaler,
    with_accumulation,
    with_an_exception,
    with_an_early_break,
    with_a_closure,
    with_loader("fork"),
    with_loader("spawn"),
]


@pytest.mark.parametrize("train", TRAININGS, ids=lambda f: f.__name__)
def test_trainings(train, tmp_path):
    if train is with_scaler and not hasattr(torch, "amp"):
        pytest.skip("this PyTorch has no scaler for the processor")
    assert_same(run(model_zoo.Plain, train, None), run(model_zoo.Plain, train, everything(tmp_path / "run")))
