"""What is done at the calls of losses and of backward() that tornasole run stands in for, without Python."""

import pytest
import torch

import tornasole.pytorch as ts
from tornasole import _engine
from tornasole.trials import create_trial


class Owner:
    """Notes what it is asked, and raises what it is told to."""

    def __init__(self):
        self.asked, self.errors, self.raises = [], [], {}

    def _note(self, what, answer=None):
        self.asked.append(what)
        if what in self.raises:
            raise self.raises[what]
        return answer

    def register_loss(self, loss):
        self._note("register_loss")

    def note_loss(self, value):
        self._note("note_loss")

    def begin_loss_function(self, name, arguments):
        return self._note(f"begin {name}", True)

    def end_loss_function(self, name, value):
        self._note(f"end {name}")

    def begin_backward(self, value):
        self._note("begin_backward")

    def is_in_keras(self):
        return self._note("is_in_keras", False)

    def failed(self, error):
        self.errors.append(error)


class Flags:
    disable_smdebug = False
    _is_open = True


@pytest.fixture
def flags():
    return Flags()


@pytest.fixture
def owner():
    return Owner()


@pytest.fixture
def calls(owner, flags):
    calls = _engine.LossCalls(owner, flags)
    calls.set_hook(flags, _engine.StepState())
    return calls


def a_loss():
    return (torch.ones(2, requires_grad=True) * 3).sum()


def call(calls, module, value):
    if calls.enter_loss_module((module, value)):
        calls.leave_loss_module(value)


def test_a_loss_is_registered_once_and_a_finite_value_needs_nobody(calls, owner):
    module = torch.nn.MSELoss()
    for _ in range(3):
        call(calls, module, a_loss())
    assert owner.asked == ["register_loss"]
    call(calls, torch.nn.L1Loss(), a_loss())
    assert owner.asked == ["register_loss", "register_loss"]


@pytest.mark.parametrize("value", [a_loss() * float("nan"), torch.ones(2), None], ids=["nan", "two numbers", "raised"])
def test_other_values_are_the_owners(calls, owner, value):
    call(calls, torch.nn.MSELoss(), value)
    assert owner.asked == ["register_loss", "note_loss"]


def test_a_function_inside_a_loss_is_no_loss_of_its_own(calls, owner):
    assert calls.enter_loss_module((torch.nn.MSELoss(),))
    assert not calls.enter_loss_function("mse_loss", ())
    calls.leave_loss_module(a_loss())
    assert calls.enter_loss_function("mse_loss", ())
    calls.leave_loss_function("mse_loss", a_loss())
    assert owner.asked == ["register_loss", "begin mse_loss", "end mse_loss"]


def test_a_function_that_was_recorded_before_needs_nobody(calls, owner, tmp_path):
    hook = ts.Hook(str(tmp_path / "run"), save_config=ts.SaveConfig(save_interval=1), include_regex=["^mse_loss_"])
    hook.get_collection("losses").include("^mse_loss_output_")
    model = torch.nn.Linear(2, 2)
    hook.register_module(model)
    calls.set_hook(hook, hook._state)
    calls.know_function("mse_loss", _engine.LossFunction(hook._engine_hook, "mse_loss", True))
    values = []
    for _ in range(3):
        given = model(torch.randn(4, 2)), torch.zeros(4, 2)
        assert calls.enter_loss_function("mse_loss", given)
        values.append(torch.nn.functional.mse_loss(*given))
        calls.leave_loss_function("mse_loss", values[-1])
    assert owner.asked == []

    # What the engine does not take as it is goes the usual way; where it had to be asked, so does all that follows.
    for given in ((None, given[1]), (given[0].to_sparse(), given[1]), given):
        assert calls.enter_loss_function("mse_loss", given)
        calls.leave_loss_function("mse_loss", None)
        assert owner.asked == ["begin mse_loss", "note_loss", "end mse_loss"]
        owner.asked.clear()
    calls.set_hook(hook, hook._state)
    assert calls.enter_loss_function("mse_loss", (given[1], given[1]))
    calls.leave_loss_function("mse_loss", values[0])
    assert owner.asked == ["begin mse_loss", "end mse_loss"]
    hook.close()

    trial = create_trial(str(tmp_path / "run"))
    assert [float(trial.tensor("mse_loss_output_0").value(step)) for step in range(3)] == [v.item() for v in values]
    assert trial.tensor("mse_loss_input_0").steps() == [0, 1, 2]
    assert trial.tensor("mse_loss_input_1").value(2).shape == (4, 2)


def test_a_pass_of_the_same_value_is_counted_once_while_it_runs(calls, owner):
    value = a_loss()
    assert calls.enter_backward((value,))
    assert not calls.enter_backward((value,))
    calls.leave_backward(None)
    assert calls.enter_backward((value,))
    calls.leave_backward(None)
    assert calls.passes == 2


def test_the_last_loss_is_known_by_its_node(calls):
    value = a_loss()
    call(calls, torch.nn.MSELoss(), value)
    assert calls.known.is_last(value) and calls.known.has(value.grad_fn)
    assert not calls.known.is_last(a_loss())
    value /= 2  # the same object, and another value: it has to be looked at again
    assert not calls.known.is_last(value)


@pytest.mark.parametrize("flag, value", [("_is_open", False), ("disable_smdebug", True)])
def test_nothing_is_recorded_while_capture_is_off(calls, owner, flags, flag, value):
    setattr(flags, flag, value)
    assert not calls.enter_loss_module((torch.nn.MSELoss(),))
    assert not calls.enter_loss_function("mse_loss", ())
    assert calls.enter_backward((a_loss(),))
    calls.leave_backward(None)
    assert owner.asked == [] and calls.passes == 1


def test_a_failure_ends_the_recording_and_not_the_program(calls, owner):
    owner.raises["register_loss"] = ValueError("no")
    assert calls.enter_loss_module((torch.nn.MSELoss(),))
    calls.leave_loss_module(a_loss())
    assert [str(error) for error in owner.errors] == ["no"] and calls.is_off
    assert not calls.enter_loss_module((torch.nn.MSELoss(),))


def test_an_interrupt_is_the_programs(calls, owner):
    owner.raises["register_loss"] = KeyboardInterrupt()
    with pytest.raises(KeyboardInterrupt):
        calls.enter_loss_module((torch.nn.MSELoss(),))
    owner.raises.clear()
    assert not calls.is_off and owner.errors == []
    assert calls.enter_loss_module((torch.nn.MSELoss(),))
    calls.leave_loss_module(a_loss())
