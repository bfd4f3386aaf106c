"""Rules that say what they need: fed by one pass of the engine, and asked like any other rule."""

import gc
import json
import os
import signal
import threading
import time
import weakref

import numpy
import pytest

from tornasole import _engine
from tornasole.core.save_config import SaveConfig
from tornasole.exceptions import (
    NoMoreData,
    RuleEvaluationConditionMet,
    SMDebugError,
    SMDebugTypeError,
    SMDebugValueError,
)
from tornasole.modes import ModeKeys
from tornasole.rules import Need, Rule, invoke_rule, make, run_rules
from tornasole.trials import create_trial


class Vanishing(Rule):
    """The built-in rule once more."""

    needs = [Need(collections="gradients", stats=["abs_mean"])]

    def __init__(self, base_trial, threshold="1e-7", action_str="", other_trials=None):
        super().__init__(base_trial, action_str, other_trials)
        self.threshold = float(threshold)

    def look_at(self, step, findings):
        for gradient in step.tensors():
            findings.count_datapoint()
            mean = gradient["abs_mean"]
            if mean < self.threshold:
                findings.add(gradient, mean, self.threshold, f"{gradient.name}: {mean:g} is below {self.threshold:g}")


class OwnWay(Rule):
    """The same, as rules of smdebug are."""

    def set_required_tensors(self, step):
        for name in self.base_trial.tensor_names(step=step, collection="gradients"):
            self.req_tensors.add(name, steps=[step])

    def invoke_at_step(self, step):
        return any(abs(tensor.value(step)).mean() < 1e-7 for tensor in self.req_tensors.get())


def write_run(path, steps, ended=True, **tensors):
    """A run with a tensor per keyword, a function of the step each."""
    every_step = SaveConfig(save_interval=1)._plain()
    hook = _engine.Hook.open({"out_dir": str(path), "save_all": True, "save_config": every_step})
    for step in range(steps):
        hook.begin_step(ModeKeys.TRAIN.value)
        for name, value in tensors.items():
            hook.save(name, numpy.asarray(value(step), numpy.float32))
        hook.end_step()
    if ended:
        hook.close()
    return hook


def test_all_ways_find_the_same(vanishing):
    fed, built_in, own_way = run_rules([Vanishing(vanishing), "VanishingGradient", OwnWay(vanishing)], vanishing)
    assert fed.steps_met == built_in.steps_met == own_way.steps_met == list(range(12))
    assert fed.steps_evaluated == built_in.steps_evaluated == own_way.steps_evaluated == 12
    assert fed.report["Violations"] == built_in.report["Violations"] > 12
    assert fed.report["Datapoints"] == built_in.report["Datapoints"]
    assert [(one["tensor"], one["value"]) for one in fed.violations] == [
        (one["tensor"], one["value"]) for one in built_in.violations
    ]
    assert fed.report["RuleParameters"] == "threshold:1e-07"
    assert fed.ended_because == "all known steps" and own_way.ended_because == "end_step"


def test_a_healthy_run(healthy):
    for run in run_rules([Vanishing(healthy), "VanishingGradient", OwnWay(healthy)], healthy):
        assert run.steps_met == [] and run.steps_evaluated == 12 and run.error is None, run.name


def test_what_a_rule_sees(tmp_path):
    write_run(tmp_path / "run", 3, x=lambda step: [step, -4, 0], y=lambda step: step)
    seen = []

    class Looks(Rule):
        needs = [
            Need(names="x", stats=["abs_max", "zeros"], value=True, derived="counts"),
            Need(regex=["^y$"], stats=["mean", "count"]),
            Need(choose=lambda name: name == "nothing", value=True),
        ]

        def look_at(self, step, findings):
            (x,), (y,), nothing = step.tensors(0), step.tensors(1), step.tensors(2)
            assert nothing == []
            seen.append((step.global_step, step.mode, step.mode_step, x, y, step))
            with pytest.raises(SMDebugValueError, match="need 3 is asked for; the rule has 3"):
                step.tensors(3)
            findings.skip("for a reason")

    (run,) = run_rules([Looks(create_trial(str(tmp_path / "run")))])
    assert run.error is None
    assert [one[:3] for one in seen] == [(step, ModeKeys.TRAIN, step) for step in range(3)]
    _, _, _, x, y, step = seen[1]
    # Kept beyond the step, like any value of Python.
    assert (x.name, x.worker, x["abs_max"], x["zeros"], x["median"]) == ("x", "worker_0", 4.0, 1.0, None)
    assert x.value.tolist() == [1, -4, 0] and x.shape == (3,) and x.scalar is None and x.error is None
    assert x.stats == {"abs_max": 4.0, "zeros": 1.0} and x.reductions == {} and x.derived("counts") is not None
    assert x.derived("no such") is None
    assert y.scalar == 1.0 and y.value is None
    with pytest.raises(SMDebugValueError, match="no statistic is called 'mid'; there are count, min"):
        x["mid"]
    with pytest.raises(SMDebugValueError, match="during look_at alone"):
        step.tensors()
    assert run.report["Details"]["skipped"] == {"for a reason": 3}


def test_a_stored_reduction_is_enough(tmp_path):
    every_step = SaveConfig(save_interval=1)._plain()
    options = {"out_dir": str(tmp_path / "run"), "save_all": True, "save_config": every_step}
    hook = _engine.Hook.open({**options, "reduction_config": ([], ["mean"], [], [], False, False)})
    hook.begin_step(None)
    hook.save("gradient/w", numpy.array([1e-9, -3e-9], numpy.float32))
    hook.end_step()
    hook.close()
    (run,) = run_rules([Vanishing(create_trial(str(tmp_path / "run")))])
    assert run.steps_met == [0] and run.violations[0]["value"] == pytest.approx(2e-9)


@pytest.mark.parametrize("kind", ["fed", "built in"])
def test_asked_step_by_step(vanishing, kind):
    rule = Vanishing(vanishing) if kind == "fed" else make("VanishingGradient", vanishing)
    for step in (0, 5, 6):
        with pytest.raises(RuleEvaluationConditionMet) as met:
            rule.invoke(step)
        assert met.value.step == step
    assert rule.report["RuleTriggered"] == 3
    assert [one["step"] for one in rule.report["Details"]["violations"]][0] == 0
    rule.invoke(3)  # it does not go back
    assert rule.report["RuleTriggered"] == 3
    rule.reset()
    with pytest.raises(RuleEvaluationConditionMet):
        rule.invoke(3)


@pytest.mark.parametrize("kind", ["fed", "built in"])
def test_invoke_rule(vanishing, healthy, kind, tmp_path):
    def rule(trial):
        return Vanishing(trial) if kind == "fed" else make("VanishingGradient", trial)

    run = invoke_rule(rule(vanishing), start_step=2, end_step=5)
    assert (run.steps_met, run.steps_evaluated, run.ended_because) == ([2, 3, 4], 3, "end_step")
    with pytest.raises(NoMoreData) as ended:
        invoke_rule(rule(healthy))
    assert (ended.value.step, ended.value.last_step) == (12, 11)
    with pytest.raises(RuleEvaluationConditionMet) as met:
        invoke_rule(rule(vanishing), raise_eval_cond=True, report_dir=str(tmp_path))
    assert met.value.step == 0
    (report,) = [path for path in tmp_path.iterdir() if path.name != "status.json"]
    assert json.loads(report.read_text())["RuleTriggered"] == 1
    assert json.loads((tmp_path / "status.json").read_text())["RuleEvaluationStatus"] == "IssuesFound"


def test_bounds_workers_and_the_first_met(vanishing):
    (run,) = run_rules([Vanishing(vanishing)], first_step=3, end_step=6)
    assert run.steps_met == [3, 4, 5] and run.ended_because == "end_step"
    (run,) = run_rules([Vanishing(vanishing)], stop_when_met=True)
    assert run.steps_met == [0] and run.ended_because == "condition met"
    (run,) = run_rules([Vanishing(vanishing)], workers=["worker_7"])
    assert run.steps_evaluated == 0
    (run,) = run_rules([Vanishing(vanishing)], workers="first")
    assert run.steps_evaluated == 12


def test_a_callback_and_actions(vanishing, tmp_path):
    told = []
    action = json.dumps({"name": "file", "path": str(tmp_path / "events"), "repeat": True})
    rules = [Vanishing(vanishing, action_str=action), make("VanishingGradient", vanishing, action_str=action)]
    run_rules(rules, end_step=2, on_met=lambda rule, violation: told.append((rule, violation["step"])))
    assert sorted(told, key=lambda one: (rules.index(one[0]), one[1])) == [(r, s) for r in rules for s in (0, 1)]
    assert len((tmp_path / "events").read_text().splitlines()) == 4


def test_a_rule_that_raises_ends_alone(vanishing):
    class Raises(Vanishing):
        def look_at(self, step, findings):
            raise ZeroDivisionError(f"at {step.global_step}")

    raising, fine = run_rules([Raises(vanishing), Vanishing(vanishing)])
    assert isinstance(raising.error, ZeroDivisionError) and str(raising.error) == "at 0"
    assert raising.steps_evaluated == 1 and fine.steps_evaluated == 12 and fine.error is None
    with pytest.raises(ZeroDivisionError):
        Raises(vanishing).invoke(0)
    with pytest.raises(ZeroDivisionError):
        invoke_rule(Raises(vanishing), end_step=3)


def test_an_interrupt_ends_the_pass(vanishing):
    class Interrupts(Vanishing):
        def look_at(self, step, findings):
            raise KeyboardInterrupt

    with pytest.raises(KeyboardInterrupt):
        run_rules([Interrupts(vanishing), Vanishing(vanishing)])

    def callback(rule, violation):
        raise RuntimeError("from the callback")

    with pytest.raises(RuntimeError, match="from the callback"):
        run_rules([Vanishing(vanishing)], on_met=callback)


def test_ctrl_c_ends_waiting(tmp_path):
    before = signal.signal(signal.SIGINT, signal.default_int_handler)  # whoever started this may ignore it
    hook = write_run(tmp_path / "run", 2, ended=False, w=lambda step: [step])
    deadline = time.monotonic() + 20
    while not (tmp_path / "run" / "index").exists() and time.monotonic() < deadline:
        time.sleep(0.02)
    trial = create_trial(str(tmp_path / "run"))
    threading.Timer(0.3, os.kill, (os.getpid(), signal.SIGINT)).start()
    with pytest.raises(KeyboardInterrupt):
        run_rules([Vanishing(trial)], follow=True, poll=60)
    signal.signal(signal.SIGINT, before)
    hook.close()


def test_a_run_is_followed_to_its_end(tmp_path):
    path = tmp_path / "run"
    first = threading.Event()

    class Follows(Rule):
        needs = [Need(names="w", stats=["max"])]
        steps: list = []

        def look_at(self, step, findings):
            # The trial of the rule may be asked meanwhile.
            assert self.base_trial.tensor("w").value(step.global_step).max() == step.tensors()[0]["max"]
            self.steps.append(step.global_step)
            first.set()

    every_step = SaveConfig(save_interval=1)._plain()
    hook = _engine.Hook.open({"out_dir": str(path), "save_all": True, "save_config": every_step})

    def train():
        for step in range(6):
            hook.begin_step(None)
            hook.save("w", numpy.array([step], numpy.float32))
            hook.end_step()
            if step == 2:
                first.wait(20)
        hook.close()

    training = threading.Thread(target=train)
    training.start()
    trial = create_trial(str(path))
    (run,) = run_rules([Follows(trial)], follow=True, poll=0.05)
    training.join()
    assert Follows.steps == list(range(6)) and run.ended_because == "the run ended" and run.error is None


def test_collections_of_the_analysis(vanishing):
    trial = create_trial(vanishing.path)
    trial.collection("mine").include("^gradient/fc0")

    class Mine(Vanishing):
        needs = [Need(collections="mine", stats=["abs_mean"])]

    (run,) = run_rules([Mine(trial)])
    assert {one["tensor"] for one in run.violations} == {"gradient/fc0.weight", "gradient/fc0.bias"}


def test_nothing_is_kept_alive(vanishing):
    rule = Vanishing(vanishing)
    with pytest.raises(RuleEvaluationConditionMet):
        rule.invoke(0)
    gone = weakref.ref(rule)
    del rule
    gc.collect()
    assert gone() is None


@pytest.mark.parametrize(
    "rules, error, message",
    [
        ([7], SMDebugTypeError, "7 is no rule; allowed: a Rule, the name of one, or a configuration"),
        (["VanishingGradent"], SMDebugError, "VanishingGradient"),
        ([], None, ""),
    ],
)
def test_what_is_no_rule(vanishing, rules, error, message):
    if error is None:
        assert run_rules(rules, vanishing) == []
        return
    with pytest.raises(error, match=message):
        run_rules(rules, vanishing)


def test_bad_use(vanishing, healthy):
    with pytest.raises(SMDebugTypeError, match="takes a trial"):
        run_rules(["VanishingGradient"])
    with pytest.raises(SMDebugValueError, match="is about trial vanishing, not healthy"):
        run_rules([Vanishing(vanishing)], healthy)
    with pytest.raises(SMDebugValueError, match="OwnWay have invoke_at_step alone"):
        run_rules([OwnWay(vanishing)], follow=True)
    with pytest.raises(SMDebugTypeError, match="regex of a need is a list of texts"):
        Need(regex=[7])

    class BadNeeds(Vanishing):
        needs = ["gradients"]

    with pytest.raises(SMDebugTypeError, match="needs of BadNeeds is a list of Need"):
        run_rules([BadNeeds(vanishing)])

    class BadStatistic(Vanishing):
        needs = [Need(stats=["middle"])]

    with pytest.raises(SMDebugValueError, match="no statistic is called 'middle'"):
        run_rules([BadStatistic(vanishing)])

    class BadPattern(Vanishing):
        needs = [Need(regex=["("], value=True)]

    with pytest.raises(SMDebugError):
        run_rules([BadPattern(vanishing)])

    class BadChoice(Vanishing):
        needs = [Need(choose=lambda name: 1 / 0, value=True)]

    with pytest.raises(ZeroDivisionError):
        run_rules([BadChoice(vanishing)])
    with pytest.raises(TypeError):
        type("Neither", (Rule,), {})(vanishing)
