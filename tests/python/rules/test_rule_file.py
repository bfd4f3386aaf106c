"""A rule from a file that the user names, by function and by command."""

import json
import subprocess
import sys

import pytest

from tornasole.exceptions import SMDebugValueError
from tornasole.rules import run_rules
from tornasole.rules.rule_file import load_rule, make_from_file, rules_of_file
from tornasole.rules.rule_file_command import is_asked_for

RULES = '''
"""Rules of a test."""

from tornasole.rules import Need, Rule


class SmallGradient(Rule):
    """Gradients that are small."""

    needs = [Need(collections="gradients", stats=["abs_mean"])]

    def __init__(self, base_trial, threshold="1e-7", sign="+", action_str=""):
        super().__init__(base_trial, action_str)
        self.threshold = float(threshold)
        self.sign = sign

    def look_at(self, step, findings):
        for gradient in step.tensors():
            if gradient["abs_mean"] < self.threshold:
                findings.add(gradient, gradient["abs_mean"], self.threshold, f"{gradient.name} is small{self.sign}")


class OldStyle(Rule):
    """As rules of smdebug are."""

    def __init__(self, base_trial, limit):
        super().__init__(base_trial)
        self.limit = float(limit)

    def invoke_at_step(self, step):
        return self.base_trial.tensor("loss").value(step) > self.limit


class Raises(Rule):
    needs = [Need(names="loss", value=True)]

    def look_at(self, step, findings):
        raise RuntimeError("on purpose")
'''


@pytest.fixture
def file(tmp_path):
    path = tmp_path / "my_rules.py"
    path.write_text(RULES)
    return str(path)


def tornasole(*arguments):
    command = [sys.executable, "-m", "tornasole", *map(str, arguments)]
    done = subprocess.run(command, capture_output=True, text=True, timeout=120)
    return done.returncode, done.stdout, done.stderr


def test_the_rules_of_a_file(file, vanishing):
    assert list(rules_of_file(file)) == ["SmallGradient", "OldStyle", "Raises"]
    assert load_rule(file, "small_gradient").__name__ == "SmallGradient"
    rule = make_from_file(file, "SmallGradient", vanishing, {"threshold": "1e-30"})
    assert run_rules([rule])[0].steps_met == []


@pytest.mark.parametrize(
    "name, parameters, message",
    [
        (None, {}, "defines several rules: SmallGradient, OldStyle, Raises"),
        ("Other", {}, "no rule 'Other'; it has SmallGradient"),
        ("SmallGradient", {"treshold": "1"}, "no parameter 'treshold'; it has: threshold, sign"),
        ("OldStyle", {}, "must be given limit"),
    ],
)
def test_what_a_file_does_not_have(file, vanishing, name, parameters, message):
    with pytest.raises(SMDebugValueError, match=message):
        make_from_file(file, name, vanishing, parameters)


def test_a_file_that_is_no_rule_file(tmp_path):
    (tmp_path / "empty.py").write_text("from tornasole.rules import Rule\n")
    with pytest.raises(SMDebugValueError, match="defines no rule"):
        rules_of_file(str(tmp_path / "empty.py"))
    with pytest.raises(SMDebugValueError, match="there is no file"):
        rules_of_file(str(tmp_path / "none.py"))


@pytest.mark.parametrize(
    "arguments, asked",
    [
        (["rule", "--rule-file", "a.py", "run"], True),
        (["rule", "run", "--rule-file=a.py"], True),
        (["rule", "run", "VanishingGradient"], False),
        (["rule", "--rule-file", "a.so", "run"], False),
        (["check", "--rule-file", "a.py"], False),
        (["rule", "--rule-file"], False),
    ],
)
def test_which_commands_are_pythons(arguments, asked):
    assert is_asked_for(arguments) is asked


def test_the_command(file, vanishing, tmp_path):
    report = tmp_path / "out" / "report.json"
    code, out, err = tornasole(
        *("rule", "--rule-file", file, "--rule-name", "SmallGradient", vanishing.path),
        *("--end-step", 3, "--sign", "-", "--report", report),
    )
    assert (code, err) == (10, "")
    assert "SmallGradient: condition met at 3 steps, 3 steps looked at" in out and "steps    0, 1, 2" in out
    assert "is small-" in out and out.endswith("ended: end_step\n")
    assert json.loads(report.read_text())["RuleTriggered"] == 3
    code, out, _ = tornasole("rule", vanishing.path, "small_gradient", f"--rule-file={file}", "--threshold", "-1", "--json")
    content = json.loads(out)
    assert (code, content["name"], content["steps_met"], content["steps_evaluated"]) == (0, "SmallGradient", [], 12)
    code, out, _ = tornasole("rule", vanishing.path, "OldStyle", "--rule-file", file, "--limit=0", "--end-step", "4")
    assert code == 10 and "met at 4 steps" in out
    code, out, _ = tornasole("rule", "--rule-file", file, "--list-rules")
    assert (code, out.splitlines()[0]) == (0, "SmallGradient: Gradients that are small.")


@pytest.mark.parametrize(
    "arguments, code, message",
    [
        (["SmallGradient", "--treshold", "1"], 2, "no parameter 'treshold'"),
        (["SmallGradient", "--threshold", "low"], 2, "low"),
        (["Other"], 2, "no rule 'Other'"),
        (["Raises"], 1, "on purpose"),
    ],
)
def test_the_command_refuses(file, vanishing, arguments, code, message):
    found, _, err = tornasole("rule", "--rule-file", file, vanishing.path, *arguments)
    assert found == code and message in err and "Traceback" not in err


def test_no_run(file, tmp_path):
    code, _, err = tornasole("rule", "--rule-file", file, tmp_path / "none", "SmallGradient")
    assert code == 2 and "there is no run" in err
