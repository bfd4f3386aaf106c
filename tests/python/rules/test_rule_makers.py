"""Built-in rules by name, their configurations, and check, from Python."""

import inspect
import json
import subprocess
import sys

import pytest

import tornasole
from tornasole.exceptions import (
    InsufficientInformationForRuleInvocation,
    MissingCollectionFiles,
    SMDebugError,
    SMDebugTypeError,
)
from tornasole.rules import builtin_rules, configs, find_rule, make, run_rules
from tornasole.trials import create_trial


def test_the_list():
    rules = builtin_rules()
    assert len(rules) >= 52 and len({rule.name for rule in rules}) == len(rules)
    vanishing = rules[0]
    assert (vanishing.name, vanishing.group) == ("VanishingGradient", "deep learning")
    assert [parameter.name for parameter in vanishing.parameters] == ["threshold", "collection_names", "tensor_regex"]
    assert vanishing.parameters[0].type == "number" and vanishing.parameters[0].default == "0.0000001"
    assert find_rule("vanishing_gradient") == vanishing


def test_made_from_a_directory(vanishing):
    rule = make("vanishing_gradient", vanishing.path, threshold=1e-30, tensor_regex=["^gradient/fc1", "^gradient/fc2"])
    assert rule.rule_name == "VanishingGradient"
    expected = {"threshold": "1e-30", "collection_names": "gradients", "tensor_regex": "^gradient/fc1,^gradient/fc2"}
    assert rule.parameters() == expected
    (run,) = run_rules([rule])
    assert run.steps_met == [] and run.report["RuleParameters"].startswith("threshold:1e-30")


@pytest.mark.parametrize(
    "name, parameters, error, message",
    [
        ("VanishingGradent", {}, SMDebugError, "VanishingGradient"),
        (7, {}, SMDebugTypeError, "7 is none"),
        ("VanishingGradient", {"treshold": 1}, SMDebugError, "threshold"),
        ("VanishingGradient", {"threshold": "low"}, SMDebugError, "low"),
        ("AllZero", {}, InsufficientInformationForRuleInvocation, "AllZero"),
        ("SimilarAcrossRuns", {}, InsufficientInformationForRuleInvocation, "exactly one"),
    ],
)
def test_what_cannot_be_made(vanishing, name, parameters, error, message):
    with pytest.raises(error, match=message):
        make(name, vanishing, **parameters)


def test_two_runs_are_compared(vanishing, healthy):
    (run,) = run_rules([make("SimilarAcrossRuns", vanishing, other_trials=[healthy])], end_step=1)
    assert run.steps_met == [0]
    (run,) = run_rules([make("SimilarAcrossRuns", vanishing, other_trials=[vanishing.path])], end_step=1)
    assert run.steps_met == []


def test_every_rule_has_a_configuration(vanishing):
    assert len(configs.names()) == len(builtin_rules())
    for rule, name in zip(builtin_rules(), configs.names()):
        made = getattr(configs, name)()
        assert made.rule == made.name == rule.name
        content = json.loads(made.to_json())
        assert content["DebugRuleConfiguration"]["RuleParameters"]["rule_to_invoke"] == rule.name
        for collection in content["CollectionConfigurations"]:
            assert collection["CollectionName"] and collection["CollectionParameters"]["save_interval"]


@pytest.mark.parametrize(
    "rule, name",
    [
        ("NLPSequenceRatio", "nlp_sequence_ratio"),
        ("StalledTrainingRule", "stalled_training_rule"),
        ("DeadRelu", "dead_relu"),
        ("CreateXgboostReport", "create_xgboost_report"),
    ],
)
def test_names_are_those_of_the_public_helper(rule, name):
    assert configs.snake_case(rule) == name and name in configs.names()


@pytest.mark.parametrize(
    "made, collections",
    [
        (configs.vanishing_gradient(), {"gradients": {"save_interval": "500"}}),
        (configs.dead_relu(), {"relu_output": {"include_regex": ".*relu_output", "save_interval": "500"}}),
        (configs.check_input_images(), {"input_image": {"include_regex": ".*hybridsequential0_input_0"}}),
        (configs.nlp_sequence_ratio(), {"input_sequence": {"include_regex": ".*embedding0_input_0"}}),
        (configs.weight_update_ratio(), {"weights": {"save_interval": "500"}}),
        (configs.create_xgboost_report(), {"hyperparameters": {"end_step": "1"}, "metrics": {"save_interval": "5"}}),
        (configs.all_zero(collection_names=["weights", "biases"]), {"weights": {}, "biases": {}}),
        (configs.all_zero(), {}),
    ],
)
def test_the_collections_a_rule_needs(made, collections):
    found = {one["CollectionName"]: one["CollectionParameters"] for one in made.collections()}
    assert set(collections) <= set(found) and bool(collections) == bool(found)
    for name, parameters in collections.items():
        assert parameters.items() <= found[name].items()


def test_a_configuration_runs_under_its_name(vanishing):
    made = configs.vanishing_gradient(name="tiny", threshold=1e-30)
    first, second = run_rules([made, configs.vanishing_gradient()], vanishing, end_step=1)
    assert (first.name, first.steps_met) == ("tiny", []) and second.steps_met == [0]
    shown = inspect.signature(configs.dead_relu).parameters
    assert shown["threshold_layer"].default == "50.0" and "threshold_layer" in configs.dead_relu.__doc__


@pytest.mark.parametrize("given", [{"treshold": 1}, {"threshold": "low"}])
def test_a_configuration_checks_its_parameters(given):
    with pytest.raises(SMDebugError, match="VanishingGradient"):
        configs.vanishing_gradient(**given)


def test_check(vanishing, healthy):
    report = tornasole.check(vanishing)
    assert report.has_findings and report.steps == 12 and report.summary in repr(report)
    content = json.loads(report.to_json())
    assert [one["rule"] for one in content["verdicts"]] == [one.rule for one in report.verdicts]
    assert [one["rule"] for one in content["not_checked"]] == [one.rule for one in report.not_checked]
    first = next(verdict for verdict in report.verdicts if verdict.symptom_of is None)
    assert first.severity in ("error", "warning") and first.message and first.causes and first.advice
    assert first.first_step <= first.last_step and first.mode == "TRAIN"
    what, points = first.evidence
    assert isinstance(what, str) and all(len(point) == 2 for point in points)
    shown = report._repr_html_()
    assert first.rule in shown and "<script" not in shown
    assert tornasole.check(vanishing.path, end_step=3).steps == 3
    only = tornasole.check(vanishing.path, ["VanishingGradient"])
    assert set(only.checked) | {one.rule for one in only.not_checked} == {"VanishingGradient"}
    with pytest.raises(SMDebugError, match="VanishingGradent"):
        tornasole.check(vanishing, ["VanishingGradent"])


@pytest.mark.parametrize("is_there", [False, True], ids=["no directory", "an empty one"])
def test_check_of_what_is_no_run_does_not_wait_for_one(tmp_path, is_there):
    place = tmp_path / "run"
    if is_there:
        place.mkdir()
    with pytest.raises(MissingCollectionFiles, match="run: 0 of 1 collections files"):
        tornasole.check(str(place))


def test_check_in_a_notebook_escapes_names(tmp_path):
    import numpy

    from tornasole import _engine
    from tornasole.core.save_config import SaveConfig

    every_step = SaveConfig(save_interval=1)._plain()
    hook = _engine.Hook.open({"out_dir": str(tmp_path / "run"), "save_all": True, "save_config": every_step})
    for step in range(3):
        hook.begin_step(None)
        hook.save("<script>weight", numpy.array([numpy.nan], numpy.float32))
        hook.end_step()
    hook.close()
    report = tornasole.check(create_trial(str(tmp_path / "run")))
    assert "<script>" in report.to_json() and "<script" not in report._repr_html_()


def test_importing_stays_light():
    program = "import tornasole, sys; assert 'numpy' not in sys.modules; import tornasole.rules; tornasole.check"
    subprocess.run([sys.executable, "-c", program], check=True)
