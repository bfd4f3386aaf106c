"""A model that nobody needs any more goes at once, captured or not: its memory may be what the next one needs."""

import gc
import weakref

import pytest
import torch
from torch import nn

import tornasole.pytorch as ts


@pytest.fixture(autouse=True)
def no_collector():
    gc.collect()
    gc.disable()
    yield
    gc.enable()


@pytest.mark.parametrize("interval", [1, 1000], ids=["each step is saved", "the last step is not saved"])
def test_a_captured_model_goes_with_its_last_reference(interval, tmp_path):
    hook = ts.Hook(str(tmp_path / "run"), save_config=ts.SaveConfig(save_interval=interval), save_all=True)
    model = nn.Sequential(nn.Linear(4, 4), nn.ReLU(), nn.Linear(4, 2))
    criterion = nn.CrossEntropyLoss()
    hook.register_module(model)
    hook.register_loss(criterion)
    optimizer = torch.optim.SGD(model.parameters(), lr=0.1)
    for _ in range(3):
        optimizer.zero_grad()
        criterion(model(torch.randn(3, 4)), torch.tensor([0, 1, 1])).backward()
        optimizer.step()
    known = [weakref.ref(model), weakref.ref(model[0]), weakref.ref(model[0].weight)]
    del model, optimizer
    assert [reference() for reference in known] == [None] * 3
    hook.close()
