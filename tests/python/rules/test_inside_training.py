"""Rules inside a training, as ``rules=`` of a hook starts them."""

import gc
import subprocess
import sys
import threading
import time

import numpy
import pytest

from tornasole.core.hook import BaseHook
from tornasole.core.reduction_config import ReductionConfig
from tornasole.core.save_config import SaveConfig
from tornasole.exceptions import SMDebugError, SMDebugTypeError
from tornasole.modes import ModeKeys
from tornasole.rules import Rule, configs
from tornasole.trials import create_trial

EVERY_STEP = SaveConfig(save_interval=1)
DOCUMENTED = {"save_config": EVERY_STEP, "rule_profile": "reference"}


def train(hook, sizes):
    for size in sizes:
        if hook._begin_step(ModeKeys.TRAIN):
            hook._engine_hook.save("gradient/fc.weight", numpy.array([size, -size], numpy.float32))
            hook._engine_hook.save("fc.weight", numpy.ones(2, numpy.float32))
            hook._engine_hook.save("loss", numpy.array(1.0, numpy.float32))
        hook._end_step()


def wait_for(condition):
    deadline = time.monotonic() + 20
    while not condition() and time.monotonic() < deadline:
        time.sleep(0.01)
    return condition()


def test_a_callback_while_the_training_runs(tmp_path):
    told = []

    def on_rule(name, finding):
        told.append((name, finding["step"], finding["tensor"], threading.current_thread() is threading.main_thread()))

    rules = ["VanishingGradient", configs.vanishing_gradient(name="strict", threshold=1e-3)]
    hook = BaseHook(str(tmp_path / "run"), **DOCUMENTED, rules=rules, on_rule=on_rule, rule_poll=0.01)
    train(hook, [1e-9, 1e-5])
    assert wait_for(lambda: len(told) == 3)
    assert sorted(told) == [
        ("VanishingGradient", 0, "gradient/fc.weight", False),
        ("strict", 0, "gradient/fc.weight", False),
        ("strict", 1, "gradient/fc.weight", False),
    ]
    train(hook, [1.0] * 5)
    hook.close()
    first, second = hook.rule_runs()
    assert (first.name, first.steps_met, first.steps_evaluated) == ("VanishingGradient", [0], 7)
    assert (second.steps_met, second.error) == ([0, 1], None)
    trial = create_trial(str(tmp_path / "run"))
    assert not trial.has_tensor("fc.weight")
    gradient = trial.tensor("gradient/fc.weight")
    assert gradient.reduction_value(6, "mean", abs=True) == 1.0
    whole = [step for step in trial.steps() if trial._engine.has_value(gradient.name, step, 4, "")]
    assert whole and len(whole) <= 6 and min(whole) >= 1


def test_a_rule_may_ask_the_training_to_stop(tmp_path):
    stop = {"name": "stoptraining", "training_job_prefix": ""}
    told = []
    hook = BaseHook(
        str(tmp_path / "run"),
        **DOCUMENTED,
        rules=[configs.vanishing_gradient(actions=stop)],
        on_rule=lambda name, finding: told.append(name),
        rule_poll=0.01,
    )
    assert not hook.stop_requested
    train(hook, [1e-9])
    assert wait_for(lambda: told) == ["VanishingGradient"]
    assert (tmp_path / "run" / "stop_request.json").exists()

    def is_stopped():
        train(hook, [1.0])
        return hook.stop_requested

    assert wait_for(is_stopped)
    hook.close()


def test_what_the_hook_saves_stays_visible(tmp_path):
    hook = BaseHook(
        str(tmp_path / "run"),
        **DOCUMENTED,
        include_collections=["gradients"],
        reduction_config=ReductionConfig(reductions=["max"]),
        rules="VanishingGradient",
    )
    shown = hook.get_collection("gradients").reduction_config
    assert (shown.reductions, shown.abs_reductions) == (["max"], ["mean"])
    train(hook, [1.0])
    hook.close()
    assert hook.rule_runs()[0].steps_evaluated == 1


@pytest.mark.parametrize("profile, is_met", [("reference", True), ("check", False), (None, False)])
def test_noise_of_a_healthy_loss_by_profile(profile, is_met, tmp_path):
    hook = BaseHook(
        str(tmp_path / "run"), save_config=EVERY_STEP, rules=["LossNotDecreasing"], rule_poll=0.01, rule_profile=profile
    )
    noise = numpy.random.default_rng(0).normal(size=200)
    for step in range(200):
        if hook._begin_step(ModeKeys.TRAIN):
            loss = 3 * numpy.exp(-step / 60) + 0.2 * noise[step] + 1
            hook._engine_hook.save("loss", numpy.array(loss, numpy.float32))
        hook._end_step()
    hook.close()
    assert bool(hook.rule_runs()[0].steps_met) == is_met


def test_a_profile_that_does_not_exist(tmp_path):
    with pytest.raises(SMDebugError, match="check, reference"):
        BaseHook(str(tmp_path / "run"), rules=["LossNotDecreasing"], rule_profile="strict")


def test_no_rules(tmp_path):
    hook = BaseHook(str(tmp_path / "run"), save_config=EVERY_STEP)
    assert hook.rule_runs() == []
    hook.close()


def test_a_callback_that_raises(tmp_path, monkeypatch):
    reported = []
    monkeypatch.setattr(sys, "unraisablehook", lambda raised: reported.append(str(raised.exc_value)))

    def on_rule(name, finding):
        raise RuntimeError("from the callback")

    hook = BaseHook(str(tmp_path / "run"), **DOCUMENTED, rules=["VanishingGradient"], on_rule=on_rule)
    train(hook, [1e-9] * 2)
    hook.close()
    assert hook.rule_runs()[0].steps_met == [0, 1]
    assert reported == ["from the callback"] * 2


class Own(Rule):
    def invoke_at_step(self, step):
        return False


@pytest.mark.parametrize(
    "options, error, message",
    [
        ({"rules": ["DeadRelu"]}, SMDebugError, "DeadRelu needs whole values"),
        ({"rules": ["VanishingGradent"]}, SMDebugError, "VanishingGradient"),
        ({"rules": [Own]}, SMDebugTypeError, "cannot run inside the training; allowed: names of built-in rules"),
        ({"rules": ["VanishingGradient"], "on_rule": 7}, SMDebugTypeError, "on_rule is a function"),
        ({"rules": ["VanishingGradient"], "rule_poll": 0}, SMDebugError, "poll_s is 0"),
        ({"rules": ["VanishingGradient"], "dry_run": True}, SMDebugError, "dry run"),
    ],
)
def test_what_is_refused(tmp_path, options, error, message):
    with pytest.raises((error, FileNotFoundError), match=message):
        BaseHook(str(tmp_path / "run"), **DOCUMENTED, **options)


PROGRAM = """
import os, sys, numpy
from tornasole.core.hook import BaseHook
from tornasole.core.save_config import SaveConfig
hook = BaseHook(sys.argv[1], save_config=SaveConfig(save_interval=1), rules=["VanishingGradient"], rule_profile="reference",
                on_rule=lambda name, finding: os.write(3, b"told %d\\n" % finding["step"]))
for step in range(3):
    if step == 1 and os.fork() == 0:
        os._exit(0)
    hook._begin_step()
    hook._engine_hook.save("gradient/w", numpy.full(2, 1e-9, numpy.float32))
    hook._end_step()
"""


def test_a_program_that_ends_without_a_word(tmp_path):
    told = tmp_path / "told"
    command = f'exec "$0" -c "$1" "$2" 3> "{told}"'
    shell = ["sh", "-c", command, sys.executable, PROGRAM, str(tmp_path / "run")]
    done = subprocess.run(shell, capture_output=True, text=True, timeout=60)
    assert done.returncode == 0, done.stderr
    assert told.read_text().splitlines() == ["told 0", "told 1", "told 2"]


def test_a_hook_that_is_dropped(tmp_path):
    hook = BaseHook(str(tmp_path / "run"), **DOCUMENTED, rules=["VanishingGradient"])
    train(hook, [1.0] * 3)
    rules = hook._rules
    hook.close()
    del hook
    gc.collect()
    assert rules.outcomes()[0].steps_evaluated == 3


def test_pytorch_weights_are_the_same(tmp_path):
    torch = pytest.importorskip("torch")
    from tornasole.pytorch import Hook

    def trained(rules):
        torch.manual_seed(3)
        model = torch.nn.Sequential(torch.nn.Linear(4, 8), torch.nn.Sigmoid(), torch.nn.Linear(8, 1))
        loss = torch.nn.MSELoss()
        optimizer = torch.optim.SGD(model.parameters(), lr=0.1)
        if rules:
            hook = Hook(str(tmp_path / "run"), **DOCUMENTED, rules=rules)
            hook.register_module(model)
            hook.register_loss(loss)
        for _ in range(20):
            optimizer.zero_grad()
            loss(model(torch.randn(8, 4)), torch.zeros(8, 1)).backward()
            optimizer.step()
        if rules:
            hook.close()
            assert all(run.steps_evaluated == 20 for run in hook.rule_runs())
        return [parameter.detach().numpy().tobytes() for parameter in model.parameters()], torch.rand(1).item()

    assert trained(None) == trained(["VanishingGradient", "WeightDivergence", "GradNormSpike", "LossSpike"])


@pytest.mark.parametrize("is_sick", [False, True])
def test_questions_about_layers(is_sick, tmp_path, caplog):
    torch = pytest.importorskip("torch")
    from tornasole.pytorch import Hook

    torch.manual_seed(5)
    model = torch.nn.Sequential(torch.nn.Linear(8, 32), torch.nn.ReLU(), torch.nn.Linear(32, 4))
    if is_sick:
        with torch.no_grad():
            model[0].bias[:24] = -1000.0  # three quarters of the units are below zero for every sample
    loss = torch.nn.CrossEntropyLoss()
    optimizer = torch.optim.SGD(model.parameters(), lr=0.1)
    hook = Hook(str(tmp_path / "run"), save_config=EVERY_STEP, rules=["DeadRelu", "InputRange", "Confusion"])
    hook.register_module(model)
    hook.register_loss(loss)
    labels = torch.nn.Linear(8, 4)
    for _ in range(150):
        points = torch.randn(32, 8)
        optimizer.zero_grad()
        loss(model(points), labels(points).argmax(1)).backward()
        optimizer.step()
    hook.close()
    runs = {run.name: run for run in hook.rule_runs()}
    assert [run.error for run in runs.values()] == [None] * 3
    assert bool(runs["DeadRelu"].steps_met) == is_sick
    assert not runs["InputRange"].steps_met
    assert is_sick or not runs["Confusion"].steps_met
    trial = create_trial(str(tmp_path / "run"))
    assert trial.has_tensor("1_output_0") and not trial._engine.has_value("1_output_0", 0, 4, "")
    assert "no tensor" not in caplog.text
