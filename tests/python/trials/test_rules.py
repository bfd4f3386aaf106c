"""Rules: what they see, how they are asked step by step, and what happens when a condition is met."""

import json
import sys

import pytest

from trial_files import TrialFiles

from tornasole.analysis.utils import no_refresh, parse_bool, parse_list_from_str
from tornasole.exceptions import (
    NoMoreData,
    NoMoreProfilerData,
    RuleEvaluationConditionMet,
    SMDebugError,
    SMDebugValueError,
    StepNotYetAvailable,
    StepUnavailable,
    TensorUnavailable,
    TensorUnavailableForStep,
)
from tornasole.rules import RequiredTensors, Rule, invoke_rule
from tornasole.rules.action import Actions
from tornasole.trials import create_trial


class LossAbove(Rule):
    """Fires where the loss is above a threshold."""

    def __init__(self, base_trial, threshold="1", action_str="", other_trials=None):
        super().__init__(base_trial, action_str, other_trials)
        self.threshold = float(threshold)
        self.asked = []

    def set_required_tensors(self, step):
        self.req_tensors.add("loss", steps=[step])

    def invoke_at_step(self, step):
        self.asked.append(step)
        loss = self.req_tensors.get()[0].value(step).item()
        if loss > self.threshold:
            self.note_violation(step, "loss", loss, self.threshold, message=f"loss is {loss}")
            return True
        return False


@pytest.fixture
def files(tmp_path):
    files = TrialFiles(tmp_path / "run")
    for step, loss in ((0, 0.5), (1, 3.0), (2, 0.5), (4, 5.0)):
        files.write(step, tensors={"loss": [loss], "w": [step]})
    files.write(5, tensors={"w": [5]})
    return files


def test_a_rule_needs_invoke_at_step(files):
    with pytest.raises(TypeError):
        Rule(create_trial(files.path), "")


def test_what_a_rule_has(files):
    base, other = create_trial(files.path), create_trial(files.path, name="other")
    rule = LossAbove(base, threshold="2.5", other_trials=[other])
    assert (rule.base_trial, rule.other_trials, rule.trials) == (base, [other], [base, other])
    assert rule.rule_name == "LossAbove"
    assert isinstance(rule.req_tensors, RequiredTensors)
    assert rule.report == {"RuleTriggered": 0, "Violations": 0, "Details": {}, "Datapoints": 0, "RuleParameters": ""}
    assert rule.parameters() == {"threshold": 2.5}
    rule.reset()
    assert rule.req_tensors.get_names() == []


def test_invoke_raises_when_the_condition_is_met(files):
    rule = LossAbove(create_trial(files.path))
    rule.invoke(0)
    with pytest.raises(RuleEvaluationConditionMet) as met:
        rule.invoke(1)
    assert (met.value.rule_name, met.value.step, met.value.end_of_rule) == ("LossAbove", 1, False)
    with pytest.raises(StepUnavailable):
        rule.invoke(3)
    with pytest.raises(TensorUnavailableForStep):
        rule.invoke(5)
    assert rule.asked == [0, 1]
    assert (rule.report["RuleTriggered"], rule.report["Violations"]) == (1, 1)
    assert rule.base_trial.dynamic_refresh is True


def test_a_rule_sees_one_state_of_its_trials(files):
    class Looks(Rule):
        def set_required_tensors(self, step):
            self.before = self.base_trial.steps()
            files.write(6 + step, tensors={"w": [0]})
            self.req_tensors.add("w", steps=[step])

        def invoke_at_step(self, step):
            self.after = self.base_trial.steps()
            with pytest.raises(StepNotYetAvailable):
                self.base_trial.tensor("w").value(6 + step)
            return False

    rule = Looks(create_trial(files.path))
    rule.invoke(2)
    assert rule.before == rule.after == [0, 1, 2, 4, 5]
    assert rule.base_trial.steps() == [0, 1, 2, 4, 5, 8]
    with no_refresh(rule.base_trial):
        files.write(9)
        assert rule.base_trial.steps() == [0, 1, 2, 4, 5, 8]


def test_every_step_of_a_run_that_ended(files):
    files.end()
    rule = LossAbove(create_trial(files.path))
    with pytest.raises(NoMoreData) as ended:
        invoke_rule(rule)
    assert ended.value.step == 6
    assert rule.asked == [0, 1, 2, 4]
    assert rule.report["RuleTriggered"] == 2


@pytest.mark.parametrize(
    "start, end, evaluated, skipped, met",
    [(0, 6, 4, 2, [1, 4]), (2, 5, 2, 1, [4]), (None, 1, 1, 0, []), (3, 3, 0, 0, [])],
)
def test_a_part_of_the_steps(start, end, evaluated, skipped, met, files):
    run = invoke_rule(LossAbove(create_trial(files.path)), start_step=start, end_step=end)
    assert (run.steps_evaluated, run.steps_skipped, run.steps_met) == (evaluated, skipped, met)
    assert run.ended_because == "end_step"


def test_how_the_loop_ends_early(files):
    trial = create_trial(files.path)
    with pytest.raises(RuleEvaluationConditionMet) as met:
        invoke_rule(LossAbove(trial), end_step=6, raise_eval_cond=True)
    assert met.value.step == 1

    class Ends(Rule):
        def __init__(self, trial, error):
            super().__init__(trial)
            self.error = error

        def invoke_at_step(self, step):
            raise self.error

    run = invoke_rule(Ends(trial, RuleEvaluationConditionMet("Ends", 0, end_of_rule=True)), end_step=5)
    assert (run.steps_met, run.ended_because) == ([0], "end_of_rule")
    run = invoke_rule(Ends(trial, NoMoreProfilerData(12)), end_step=5)
    assert (run.steps_evaluated, run.ended_because) == (0, "no more data")
    run = invoke_rule(Ends(trial, TensorUnavailable("w")), end_step=3)
    assert run.steps_skipped == 3
    with pytest.raises(ZeroDivisionError):
        invoke_rule(Ends(trial, ZeroDivisionError()), end_step=3)


def test_required_tensors(files):
    base, other = create_trial(files.path), create_trial(files.path, name="other")
    required = RequiredTensors(base, [other])
    steps = [0, 1]
    required.add("loss", steps)
    required.add("loss", [2])
    required.add("^w$", [4], trial=other, should_match_regex=True)
    assert steps == [0, 1]
    assert list(required.get_names()) == ["loss"] and list(required.get_names(other)) == ["w"]
    assert required.get_tensor_steps("loss") == [0, 1, 2]
    assert [tensor.name for tensor in required.get(trial=other)] == ["w"]
    required.fetch()
    with pytest.raises(TensorUnavailable):
        required.add("nothing", [0])
    with pytest.raises(SMDebugValueError):
        required.add("w", [0], trial=create_trial(files.path, name="stranger"))
    required.add("loss", [5])
    with pytest.raises(TensorUnavailableForStep):
        required.fetch()
    required.clear()
    assert list(required.get_names()) == []
    required.fetch()


def test_required_reductions_do_not_need_the_value(tmp_path):
    TrialFiles(tmp_path).write(0, tensors={"smdebug/reductions/abs_max/g": [2], "smdebug/reductions/mean/g": [1]})
    required = RequiredTensors(create_trial(str(tmp_path)))
    required.add("g", [0], reductions=["mean", "abs_max"])
    required.fetch()
    required.add("g", [0], reductions=["l2"])
    with pytest.raises(TensorUnavailableForStep):
        required.fetch()


def test_a_report_is_written_whole(files, tmp_path):
    rule = LossAbove(create_trial(files.path), threshold="0")
    invoke_rule(rule, end_step=5)
    rule.report["Details"]["bad"] = [float("nan"), float("-inf")]
    written = json.loads(open(rule.write_report(str(tmp_path / "reports"))).read())
    assert set(written) == {"RuleTriggered", "Violations", "Details", "Datapoints", "RuleParameters"}
    assert written["RuleParameters"] == "threshold:0.0"
    details = written["Details"]
    assert (details["first_step"], details["last_step"], details["tensors"]) == (0, 4, {"loss": 4})
    assert details["bad"] == ["nan", "-inf"]
    assert details["violations"][1] == {
        "step": 1,
        "mode": "GLOBAL",
        "mode_step": 1,
        "worker": "",
        "tensor": "loss",
        "value": 3.0,
        "threshold": 0.0,
        "message": "loss is 3.0",
    }
    assert [path.name for path in (tmp_path / "reports").iterdir()] == ["LossAbove.json"]
    for step in range(200):
        rule.note_violation(step)
    kept = [one["step"] for one in rule.report["Details"]["violations"]]
    assert len(kept) == 100 and kept[-50:] == list(range(150, 200))


def test_how_an_evaluation_stands(files, tmp_path):
    files.end()

    class Fails(Rule):
        def invoke_at_step(self, step):
            assert status() == "InProgress"
            raise ZeroDivisionError("x" * 5000)

    def status(key="RuleEvaluationStatus"):
        return json.loads((tmp_path / "out" / "status.json").read_text())[key]

    trial = create_trial(files.path)
    out = str(tmp_path / "out")
    with pytest.raises(NoMoreData):
        invoke_rule(LossAbove(trial), report_dir=out)
    assert status() == "IssuesFound"
    assert json.loads((tmp_path / "out" / "LossAbove.json").read_text())["RuleTriggered"] == 2
    invoke_rule(LossAbove(trial, threshold="100"), end_step=4, report_dir=out)
    assert status() == "NoIssuesFound"
    with pytest.raises(ZeroDivisionError):
        invoke_rule(Fails(trial), report_dir=out)
    assert status() == "Error" and len(status("StatusDetails")) == 1024


def fire(files, action_str, times=1):
    rule = LossAbove(create_trial(files.path), action_str=action_str)
    for _ in range(times):
        with pytest.raises(RuleEvaluationConditionMet):
            rule.invoke(1)
    return rule


def test_stopping_the_training(files):
    request = files.path + "/stop_request.json"
    fire(files, '{"name": "StopTraining", "training_job_prefix": "other"}')
    with pytest.raises(FileNotFoundError):
        open(request)
    fire(files, '[{\\"NAME\\": \\"stoptraining\\", \\"Training_Job_Prefix\\": \\"ru\\"}]')
    content = json.loads(open(request).read())
    assert (content["rule"], content["step"], content["prefix"]) == ("LossAbove", 1, "ru")
    assert content["message"] == "loss is 3.0" and content["time"] > 1.7e9


def test_a_file_and_a_program(files, tmp_path):
    lines, output = tmp_path / "Lines.json", tmp_path / "Out.json"
    program = f"import sys; open({str(output)!r}, 'a').write(sys.stdin.read() + '\\n')"
    actions = [
        {"name": "file", "path": str(lines)},
        {"name": "exec", "command": [sys.executable, "-c", program], "repeat": True},
        {"name": "exec", "command": ["/no/such/program"]},
    ]
    fire(files, json.dumps(actions), times=2)
    assert len(lines.read_text().splitlines()) == 1
    assert json.loads(lines.read_text())["message"] == "loss is 3.0"
    found = [json.loads(line) for line in output.read_text().splitlines()]
    assert found == [{"rule": "LossAbove", "step": 1, "message": "loss is 3.0"}] * 2


def test_messages(files, tmp_path, monkeypatch):
    monkeypatch.delenv("TORNASOLE_NOTIFIER", raising=False)
    action_str = '{"name": "email", "endpoint": "Some.One@Example.com"}'
    rule = fire(files, action_str)
    assert rule._actions._actions[0].undelivered == 1
    notifier = tmp_path / "notifier"
    notifier.write_text(f'#!/bin/sh\nprintf "%s|" "$@" > {tmp_path}/sent\ncat >> {tmp_path}/sent\n')
    notifier.chmod(0o755)
    monkeypatch.setenv("TORNASOLE_NOTIFIER", str(notifier))
    rule = fire(files, action_str)
    assert rule._actions._actions[0].undelivered == 0
    subject = "SMDebugRule:LossAbove fired"
    assert (tmp_path / "sent").read_text() == f"email|Some.One@Example.com|{subject}|{subject}. loss is 3.0"


@pytest.mark.parametrize(
    "text, count",
    [
        ("", 0),
        (None, 0),
        ("  ", 0),
        ("12", 0),
        ('"text"', 0),
        ('{"name": "stoptraining"}', 0),
        ('{"name": "email"}', 0),
        ('{"name": "dance"}', 0),
        ('{"name": "exec", "command": "rm"}', 0),
        ('{"name": "file", "path": 7}', 0),
        ('[7, {"name": "sms", "endpoint": "+1"}, {}]', 1),
    ],
)
def test_what_is_no_action_is_left_out(text, count):
    assert len(Actions(text, rule_name="Some")._actions) == count


def test_text_that_is_not_json_is_an_error():
    with pytest.raises(SMDebugValueError):
        Actions("stop it", rule_name="Some")


def test_arguments_as_text():
    assert parse_list_from_str(" a, b ,,c") == ["a", "b", "c"]
    assert parse_list_from_str(None) == parse_list_from_str("") == []
    assert parse_list_from_str(["a "]) == ["a "]
    assert parse_list_from_str("a;b", delimiter=";") == ["a", "b"]
    assert [parse_bool(text, None) for text in ("True", "true", "False", "false", True, False)] == [
        True,
        True,
        False,
        False,
        True,
        False,
    ]
    assert parse_bool(None, True) is True
    for bad in ("yes", "TRUE", 2):
        with pytest.raises(ValueError) as caught:
            parse_bool(bad, True)
        assert isinstance(caught.value, SMDebugError)
