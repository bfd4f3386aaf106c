"""Steps like the one before are begun without a look at anything: what changes between two steps is seen all the same,
and what is left on a model costs nothing."""

import gc
import json
import pathlib
import weakref

import pytest
import torch
from torch import nn

import tornasole.pytorch as ts
from tornasole.trials import create_trial

LOSS = "CrossEntropyLoss_output_0"


class Training:
    def __init__(self, directory, **options):
        torch.manual_seed(0)
        self.directory = str(directory)
        self.hook = ts.Hook(self.directory, **options)
        self.model = nn.Sequential(nn.Linear(4, 4), nn.ReLU(), nn.Linear(4, 2))
        self.criterion = nn.CrossEntropyLoss()
        self.optimizer = torch.optim.SGD(self.model.parameters(), lr=0.1)
        self.hook.register_module(self.model)
        self.hook.register_loss(self.criterion)

    def step(self, backward=True):
        loss = self.criterion(self.model(torch.randn(3, 4)), torch.tensor([0, 1, 1]))
        if backward:
            self.optimizer.zero_grad()
            loss.backward()
            self.optimizer.step()

    def trial(self):
        self.hook.close()
        return create_trial(self.directory)

    def facts(self):
        """Of each step, once the run has ended."""
        files = sorted(pathlib.Path(self.directory, "index").rglob("*.json"))
        return [json.loads(file.read_text())["meta"] for file in files]


@pytest.fixture
def training(tmp_path):
    return Training(tmp_path / "run", save_config=ts.SaveConfig(save_interval=1))


def test_calm_steps_have_their_values_and_facts(training):
    for _ in range(5):
        training.step()
    trial = training.trial()
    assert trial.steps() == list(range(5)) and trial.tensor(LOSS).steps() == list(range(5))
    assert len({float(trial.tensor(LOSS).value(step)) for step in range(5)}) == 5
    facts = training.facts()
    assert [known["optimizer_step"] for known in facts] == list(range(5))
    assert all(known["training"] and known["grad_enabled"] for known in facts)


@pytest.fixture
def followed(tmp_path):
    """Everything of the model is saved at every step."""
    training = Training(
        tmp_path / "run",
        save_config=ts.SaveConfig(save_interval=1),
        include_collections=["weights", "gradients"],
        derived=["update"],
    )
    training.before, training.gradients = [], []
    step = training.step

    def noting(backward=True):
        training.model.zero_grad()  # what the optimizer does not know, too
        training.before.append({name: known.detach().clone() for name, known in training.model.named_parameters()})
        step(backward)
        gradients = {name: known.grad for name, known in training.model.named_parameters()}
        training.gradients.append({name: None if one is None else one.clone() for name, one in gradients.items()})

    training.step = noting
    return training


def test_calm_steps_have_the_weights_they_began_with_and_their_gradients(followed):
    for _ in range(6):
        followed.step()
    trial = followed.trial()
    for step in range(6):
        weight = followed.before[step]["0.weight"]
        assert (trial.tensor("Sequential_0.weight").value(step) == weight.numpy()).all()
        gradient = followed.gradients[step]["0.weight"].numpy()
        assert (trial.tensor("gradient/Sequential_0.weight").value(step) == gradient).all()
    for step in range(1, 6):
        moved = followed.before[step]["2.weight"] - followed.before[step - 1]["2.weight"]
        update = trial.tensor("derived/update/Sequential_2.weight").value(step)
        assert update == pytest.approx([float(moved.norm()), float(followed.before[step - 1]["2.weight"].norm())])


def freeze(model):
    model[0].weight.requires_grad_(False)


def replace_a_parameter(model):
    model[0].weight = nn.Parameter(torch.full((4, 4), 0.5))


def replace_a_part(model):
    model[0] = nn.Linear(4, 4)


def add_a_part(model):
    model.append(nn.Linear(2, 2))


@pytest.mark.parametrize("change", [freeze, replace_a_parameter, replace_a_part, add_a_part])
def test_a_model_that_changes_between_calm_steps_is_looked_at(followed, change):
    for _ in range(4):
        followed.step()
    change(followed.model)
    for _ in range(4):
        followed.step()
    trial = followed.trial()
    weight, gradient = trial.tensor("Sequential_0.weight"), trial.tensor("gradient/Sequential_0.weight")
    assert gradient.steps() == ([0, 1, 2, 3] if change is freeze else list(range(8)))
    for step in range(8):
        assert (weight.value(step) == followed.before[step]["0.weight"].numpy()).all()
        if step in gradient.steps():
            assert (gradient.value(step) == followed.gradients[step]["0.weight"].numpy()).all()
    if change is add_a_part:
        assert trial.tensor("Sequential_3.weight").steps() == [4, 5, 6, 7]


def test_evaluation_between_calm_steps_has_its_own(followed):
    for _ in range(4):
        followed.step()
    followed.model.eval()
    followed.hook.set_mode(ts.modes.EVAL)
    with torch.no_grad():
        followed.step(backward=False)
    followed.model.train()
    followed.hook.set_mode(ts.modes.TRAIN)
    for _ in range(3):
        followed.step()
    trial = followed.trial()
    gradient, weight = trial.tensor("gradient/Sequential_0.weight"), trial.tensor("Sequential_0.weight")
    assert (gradient.steps(), weight.steps()) == ([0, 1, 2, 3, 5, 6, 7], list(range(8)))
    assert [known["training"] for known in followed.facts()] == [True] * 4 + [False] + [True] * 3


def test_a_second_model_between_calm_steps_is_another_step(followed):
    second = nn.Sequential(nn.Linear(4, 2))
    followed.hook.register_module(second)
    for _ in range(4):
        followed.step()
        followed.criterion(second(torch.randn(3, 4)), torch.tensor([0, 1, 1])).backward()
    trial = followed.trial()
    assert trial.tensor("gradient/Sequential_2.weight").steps() == [0, 2, 4, 6]


@pytest.mark.skipif(not hasattr(torch, "compile"), reason="needs PyTorch 2.0: optimizers beside the model are seen")
def test_an_optimizer_beside_the_model_is_described_also_between_calm_steps(followed):
    for _ in range(4):
        followed.step()
    other = torch.optim.SGD([nn.Parameter(torch.ones(2))], lr=0.1)
    other.step()
    followed.step()
    followed.hook.close()
    described = json.loads(next(pathlib.Path(followed.directory).rglob("worker_0_model.json")).read_text())
    assert len(described["optimizers"]) == 2


def test_steps_of_other_models_optimizers_are_not_counted(training):
    weight = torch.nn.Parameter(torch.ones(2))
    others = [torch.optim.SGD([weight], lr=0.1) for _ in range(3)]
    for _ in range(4):
        training.step()
        weight.sum().backward()
        for other in others:
            other.step()
    late = torch.optim.Adam(training.model.parameters(), lr=0.1)  # in the place of the first
    training.optimizer = late
    for _ in range(3):
        training.step()
    training.hook.close()
    assert [known["optimizer_step"] for known in training.facts()] == list(range(7))


@pytest.mark.skipif(not hasattr(torch, "compile"), reason="needs PyTorch 2.0: torch.compile")
def test_compiled_steps_of_an_optimizer_are_counted(training):
    step = torch.compile(lambda: training.optimizer.step(), backend="aot_eager")
    for _ in range(4):
        training.criterion(training.model(torch.randn(3, 4)), torch.tensor([0, 1, 1])).backward()
        step()
    training.hook.close()
    assert [known["optimizer_step"] for known in training.facts()] == list(range(4))


def test_a_mode_set_between_calm_steps_is_that_of_the_next(training):
    for mode in [ts.modes.TRAIN] * 3 + [ts.modes.EVAL] * 2 + [ts.modes.TRAIN] * 2:
        training.hook.set_mode(mode)
        training.step(backward=mode is ts.modes.TRAIN)
    trial = training.trial()
    assert (trial.steps(mode=ts.modes.TRAIN), trial.steps(mode=ts.modes.EVAL)) == ([0, 1, 2, 3, 4], [0, 1])


def test_a_collection_changed_between_calm_steps_is_seen(training):
    for _ in range(3):
        training.step()
    training.hook.get_collection("losses").save_config = ts.SaveConfig(save_interval=4)
    for _ in range(6):
        training.step()
    assert training.trial().tensor(LOSS).steps() == [0, 1, 2, 4, 8]


def test_a_loss_registered_between_calm_steps_is_saved(training):
    for _ in range(3):
        training.step()
    second = nn.L1Loss()
    training.hook.register_loss(second)
    for _ in range(2):
        second(training.model(torch.randn(3, 4)), torch.zeros(3, 2)).backward()
    assert training.trial().tensor("L1Loss_output_0").steps() == [3, 4]


def test_capture_that_is_switched_off_stays_off(training):
    from tornasole.core.guard import guard

    for _ in range(3):
        training.step()
    guard._shut_down(ValueError("something of ours"))
    try:
        for _ in range(3):
            training.step()
    finally:
        guard.disable_smdebug = False
    assert training.trial().tensor(LOSS).steps() == [0, 1, 2]


def test_a_model_has_nothing_left_on_its_parameters_between_due_steps(tmp_path):
    training = Training(tmp_path / "run", save_config=ts.SaveConfig(save_interval=3), include_collections=["gradients"])
    users = []
    parameters = list(training.model.parameters())
    seen = []
    for step in range(9):
        training.step()
        seen.append([parameter._backward_hooks is None for parameter in parameters])
        if step == 1:
            handle = parameters[0].register_hook(lambda gradient: users.append(float(gradient.abs().sum())))
    # At due steps they hang there until the next one begins; what the program put there stays.
    assert seen[1] == [True] * 4 and seen[0] == seen[3] == [False] * 4
    assert seen[4] == seen[7] == [False, True, True, True]
    assert len(users) == 7
    handle.remove()
    training.step()
    training.step()
    assert len(users) == 7
    trial = training.trial()
    assert all(trial.tensor(name).steps() == [0, 3, 6, 9] for name in trial.tensor_names(collection="gradients"))


class Kept(torch.autograd.Function):
    """A node whose context holds what the test asks for."""

    @staticmethod
    def forward(context, value, held):
        context.held = held
        return value * 1

    @staticmethod
    def backward(context, gradient):
        return gradient, None


def test_a_loss_that_nobody_goes_back_from_keeps_no_graph(tmp_path, monkeypatch):
    """Evaluation without no_grad(), as many programs do it: what its graphs hold goes with the program's own names."""
    from tornasole.run import OUT_VARIABLE, PRESET_VARIABLE, torch_attachment

    places = [(torch.Tensor, "backward"), (nn.modules.loss._Loss, "__call__"), (nn.Module, "__call__")]
    places += [(nn.functional, name) for name in torch_attachment.LOSS_FUNCTIONS if hasattr(nn.functional, name)]
    places += [(torch.optim.Optimizer, "add_param_group"), (torch_attachment, "_attachment")]
    for owner, name in places:
        monkeypatch.setattr(owner, name, getattr(owner, name))  # put back at the end
    monkeypatch.setattr(torch_attachment, "_attachment", None)
    monkeypatch.setenv(OUT_VARIABLE, str(tmp_path / "run"))
    monkeypatch.setenv(PRESET_VARIABLE, "standard")
    ts.del_hook()
    attachment = torch_attachment.attach()

    class Holder:
        pass

    model, criterion = nn.Linear(4, 2), nn.CrossEntropyLoss()
    held = []
    for _ in range(30):
        holder = Holder()
        held.append(weakref.ref(holder))
        criterion(Kept.apply(model(torch.randn(3, 4)), holder), torch.tensor([0, 1, 1]))
        del holder
    gc.collect()
    assert attachment.hook is not None and attachment.hook.step == 29
    assert [reference for reference in held if reference() is not None] == []
    attachment.hook.close()
    ts.del_hook()
