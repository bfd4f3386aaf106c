"""The order in which values come from another device, with a device that the test holds."""

import torch

import tornasole.pytorch as ts
from tornasole import _engine
from tornasole.pytorch.host_copies import HostCopies


class Device:
    """Copies come when the test says so, or when somebody waits for them."""

    def __init__(self):
        self.come = set()
        self.waited = []

    def start(self, tensor):
        key = int(tensor)
        return tensor.clone(), lambda: key in self.come, lambda: self.waited.append(key)


def test_values_are_delivered_in_order_and_whole_at_the_end():
    device, saved = Device(), []
    copies = HostCopies(_engine.StepState(), device.start)

    def save(name, value):
        saved.append((name, int(value)))

    copies.save(save, "a", torch.tensor(1))
    copies.save(save, "b", torch.tensor(2))
    assert saved == [] and copies.is_busy, "nothing has come yet"
    device.come.add(2)
    copies.save(save, "c", torch.tensor(3))
    assert saved == [], "what came second waits for the first"
    device.come.add(1)
    copies.save(save, "d", torch.tensor(4))
    assert saved == [("a", 1), ("b", 2)]
    copies.flush()
    assert saved == [("a", 1), ("b", 2), ("c", 3), ("d", 4)] and not copies.is_busy
    assert device.waited == [1, 2, 3, 4]


def test_the_value_is_that_of_the_moment_it_was_handed_over():
    device, saved = Device(), []
    copies = HostCopies(_engine.StepState(), device.start)
    tensor = torch.tensor(1)
    copies.save(lambda name, value: saved.append(int(value)), "a", tensor)
    tensor.fill_(9)
    copies.flush()
    assert saved == [1]


def test_no_more_than_so_many_are_under_way():
    device, saved = Device(), []
    copies = HostCopies(_engine.StepState(), device.start, max_under_way=2)
    for key in range(5):
        copies.save(lambda name, value: saved.append(int(value)), "x", torch.tensor(key))
    assert saved == [0, 1, 2]


def test_what_is_here_already_is_saved_at_once():
    saved = []
    HostCopies(_engine.StepState()).save(lambda name, value: saved.append(value.tolist()), "x", torch.eye(2).to_sparse())
    assert saved == [[[1.0, 0.0], [0.0, 1.0]]]


class Elsewhere(torch.Tensor):
    """A tensor that says it is of another device."""

    is_cpu = False


def test_a_number_of_another_device_is_used_once_it_has_come(tmp_path):
    hook = ts.Hook(str(tmp_path / "run"))
    device, used = Device(), []
    hook._copies = HostCopies(hook._state, device.start)
    hook._use_number(torch.tensor(5).as_subclass(Elsewhere), used.append)
    assert used == [] and device.waited == [], "nobody waited for it"
    hook._use_number(torch.tensor(6.5), used.append)
    hook._use_number(7, used.append)
    assert used == [6.5, 7.0], "what is here is used at once"
    hook._begin_step()
    assert used == [6.5, 7.0, 5], "before the next step begins it has come"
    hook.close()
