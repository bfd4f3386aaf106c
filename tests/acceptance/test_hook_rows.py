"""Rows about a hook: where it writes, what it saves, its modes and names."""

import json
import os
import subprocess
import sys

import pytest

pytest.importorskip("torch")
pytest.importorskip("tornasole.pytorch")

import tornasole.pytorch as ts  # noqa: E402
from framework_package import check_hook_classes, check_names  # noqa: E402
from tornasole.pytorch.hook import TornasoleHook as HookOfModule  # noqa: E402
from training import BIASES, GRADIENTS, LOSS, RELU, WEIGHTS, Training, plain_hook, train  # noqa: E402

rows = pytest.mark.rows
EVERY_STEP = ts.SaveConfig(save_interval=1)


@rows(2, 118)
def test_a_local_directory(tmp_path, saved):
    assert train(ts.Hook(out_dir=str(tmp_path / "run"))).out_dir == str(tmp_path / "run")
    assert saved()[0] == LOSS


@rows(4, 5, 71)
def test_the_directory_of_a_sagemaker_job(monkeypatch):
    monkeypatch.setenv("TRAINING_JOB_NAME", "job")
    for given in ({}, {"out_dir": "/opt/ml/output/tensors"}):
        assert ts.Hook(dry_run=True, **given).out_dir == "/opt/ml/output/tensors"


@rows(6)
def test_a_dry_run_says_what_it_would_save(tmp_path, capsys):
    train(ts.Hook(tmp_path / "run", dry_run=True, include_collections=["weights"]))
    assert list(tmp_path.iterdir()) == []
    assert "Net_fc1.weight" in capsys.readouterr().out


@rows(7, 19, 24)
def test_switches_are_off_by_default(tmp_path):
    hook = ts.Hook(tmp_path / "run")
    assert hook.dry_run is False and hook.include_regex is None and hook.save_all is False


@rows(8, 9)
def test_the_name_of_the_worker(tmp_path):
    assert ts.TornasoleHook(str(tmp_path / "other"), dry_run=True).worker == "worker_0"
    hook = train(ts.TornasoleHook(str(tmp_path / "run"), worker="mine"))
    assert hook.worker == "mine" and list((tmp_path / "run").rglob("*_mine.tfevents"))


@rows(10, 84, 106, 170, 219)
def test_the_hooks_schedule_is_everybodys(tmp_path, saved):
    train(ts.Hook(tmp_path / "run", save_config=ts.SaveConfig(save_interval=2), include_collections=["weights"]), 3)
    assert saved() == {0: LOSS | WEIGHTS, 2: LOSS | WEIGHTS}


@rows(11, 32, 43, 164, 275)
def test_a_collections_schedule_counts_for_it(tmp_path, saved):
    hook = ts.Hook(tmp_path / "run", save_config=EVERY_STEP, include_collections=["weights", "biases"])
    hook.get_collection("weights").save_config = ts.SaveConfig(save_interval=2)
    hook.get_collection("biases").save_config = {ts.modes.GLOBAL: ts.SaveConfigMode(save_interval=3)}
    train(hook, 4)
    assert [saved()[step] - LOSS for step in range(4)] == [WEIGHTS | BIASES, set(), WEIGHTS, BIASES]


@rows(12, 79, 81, 220)
def test_a_schedule_for_each_mode(tmp_path, saved, row):
    schedules = {ts.modes.TRAIN: ts.SaveConfigMode(save_interval=10), ts.modes.EVAL: ts.SaveConfigMode(save_interval=1)}
    hook = ts.Hook(tmp_path / "run", save_config=None if row == 81 else schedules)
    if row == 81:
        hook.get_collection("losses").set_save_config(schedules)
    Training(hook).run(2, ts.modes.TRAIN).run(2, ts.modes.EVAL)
    hook.close()
    assert list(saved()) == [0, 2, 3]


@rows(13)
def test_a_schedule_for_each_mode_as_saveconfig(tmp_path):
    hook = ts.Hook(tmp_path / "run", save_config={ts.modes.TRAIN: ts.SaveConfig(save_interval=4)})
    intervals = [hook.save_config.get_save_config(mode).save_interval for mode in ts.modes]
    assert intervals == [4, 500, 500, 500]


@rows(17, 18, 65, 73, 75, 282)
def test_patterns_select_into_the_collection_default(tmp_path, saved):
    hook = train(ts.Hook(tmp_path / "run", include_regex=["relu*"]))
    assert saved()[0] == LOSS | RELU and hook.get_collection("default").tensor_names == RELU


@rows(103)
def test_patterns_are_saved_on_the_schedule_of_default(tmp_path, saved):
    hook = ts.Hook(tmp_path / "run", include_regex=["relu"], save_config=EVERY_STEP)
    hook.get_collection("default").save_config = ts.SaveConfig(save_interval=2)
    train(hook, 2)
    assert saved() == {0: LOSS | RELU, 1: LOSS}


@rows(20, 72, 83, 129, 279)
def test_collections_are_chosen_by_name(tmp_path, saved):
    hook = ts.Hook(tmp_path / "run", include_collections=["biases", "mine"])
    hook.get_collection("mine").include("relu_output")
    hook.get_collection("unwanted").include("fc1_output")
    train(hook)
    assert saved()[0] == LOSS | BIASES | {"relu_output_0"}


@rows(108)
def test_naming_collections_adds_to_those_always_saved(tmp_path, saved):
    train(ts.Hook(tmp_path / "run", include_collections=["biases"]))
    assert LOSS <= saved()[0]


@rows(21, 64, 107)
def test_the_older_hook_saves_weights_gradients_and_biases(tmp_path, saved):
    hook = ts.TornasoleHook(str(tmp_path / "run"))
    assert set(hook.include_collections) == {"weights", "gradients", "biases", "default", "losses"}
    train(hook)
    assert saved()[0] == LOSS | WEIGHTS | BIASES | GRADIENTS


@rows(26, 67)
def test_the_older_hook_saves_every_hundredth_step(tmp_path):
    assert ts.TornasoleHook(str(tmp_path / "run")).save_config == ts.SaveConfig(save_interval=100)
    assert ts.Hook(tmp_path / "other").save_config == ts.SaveConfig(save_interval=500)


@rows(25)
def test_the_older_order_of_arguments(tmp_path):
    form, schedule = ts.ReductionConfig(norms=["l1"]), ts.SaveConfig(save_interval=7)
    hook = ts.TornasoleHook(str(tmp_path / "run"), True, "w", form, schedule, ["relu"], ["weights"], True)
    assert (hook.dry_run, hook.worker, hook.save_all, hook.include_regex) == (True, "w", True, ["relu"])
    assert hook.reduction_config is form and hook.save_config is schedule
    assert HookOfModule is ts.TornasoleHook


@rows(22, 23, 59, 105, 114, 136, 281)
def test_everything_is_saved_in_the_collection_all(tmp_path, saved):
    hook = train(ts.Hook(tmp_path / "run", save_all=True))
    assert WEIGHTS | BIASES | GRADIENTS | LOSS | RELU | {"Net_input_0", "Net_output_0", "fc1_output_0"} <= saved()[0]
    assert hook.get_collection("all").tensor_names == saved()[0]
    assert hook.get_collection("default").tensor_names == set()


@rows(27, 28, 70, 76, 77, 119, 127)
def test_modes_have_steps_of_their_own_and_a_common_order(tmp_path):
    assert [mode.name for mode in ts.modes] == ["TRAIN", "EVAL", "PREDICT", "GLOBAL"]
    hook = ts.Hook(tmp_path / "run", save_config=EVERY_STEP)
    Training(hook).run(2, ts.modes.TRAIN).run(1, ts.modes.EVAL).run(1, ts.modes.PREDICT).run(1, ts.modes.TRAIN)
    hook.close()
    trial = ts.create_trial(str(tmp_path / "run"))
    assert trial.steps() == [0, 1, 2, 3, 4]
    found = [trial.steps(mode=mode) for mode in (ts.modes.TRAIN, ts.modes.EVAL, ts.modes.PREDICT)]
    assert found == [[0, 1, 2], [0], [0]]


@rows(29, 78)
def test_without_a_mode_all_steps_are_global(tmp_path):
    hook = train(ts.Hook(tmp_path / "run", save_config=EVERY_STEP), 2)
    trial = ts.create_trial(str(tmp_path / "run"))
    assert hook.mode is ts.modes.GLOBAL and trial.steps(mode=ts.modes.TRAIN) == [] and trial.steps() == [0, 1]


@rows(45, 89, 90, 171)
def test_tensors_are_saved_when_another_is_not_finite(tmp_path, saved):
    schedule = ts.SaveConfig(save_interval=3, when_nan=["CrossEntropyLoss"])
    hook = ts.Hook(tmp_path / "run", save_config=schedule, include_collections=["weights"])
    training = Training(hook).run(2)
    training.run(1, scale=float("inf"))
    training.run(1)
    hook.close()
    assert {0, 2, 3} <= set(saved()) and 1 not in saved() and WEIGHTS | LOSS <= saved()[2]


@rows(66)
def test_at_listed_steps_or_at_an_interval(tmp_path, saved):
    train(ts.Hook(tmp_path / "run", save_config=ts.SaveConfig(save_interval=4, save_steps=[1])), 6)
    assert list(saved()) == [0, 1, 4]


@rows(123)
def test_a_trial_by_out_dir(tmp_path):
    train(ts.Hook(tmp_path / "run"))
    assert ts.create_trial(out_dir=str(tmp_path / "run")).tensor_names() == sorted(LOSS)


@rows(124)
def test_a_rule_ends_with_an_exception(tmp_path):
    from tornasole.exceptions import RuleEvaluationConditionMet
    from tornasole.rules.rule import Rule
    from tornasole.rules.rule_invoker import invoke_rule

    class Always(Rule):
        def invoke_at_step(self, step):
            return True

    train(ts.Hook(tmp_path / "run"))
    rule = Always(ts.create_trial(str(tmp_path / "run")), action_str="")
    with pytest.raises(RuleEvaluationConditionMet):
        invoke_rule(rule, raise_eval_cond=True)


@rows(130, 299)
def test_what_tensorflow_always_saves(tmp_path, saved):
    hook = plain_hook("tensorflow")(tmp_path / "run", dry_run=True)
    assert set(hook.include_collections) == {"metrics", "losses", "sm_metrics"}


@rows(131, 300)
def test_what_pytorch_always_saves(tmp_path, saved):
    hook = ts.Hook(tmp_path / "run")
    hook.save_scalar("rate", 0.1)
    train(hook)
    assert hook.include_collections == ["losses"] and saved()[0] == LOSS | {"scalar/rate"}


@rows(132, 301)
def test_what_mxnet_always_saves(tmp_path):
    assert plain_hook("mxnet")(tmp_path / "run", dry_run=True).include_collections == ["losses"]


@rows(133, 302)
def test_what_xgboost_always_saves(tmp_path, saved):
    plain_hook("xgboost")(tmp_path / "run").run(1, ["train-rmse", "feature_importance/weight/f0"])
    assert saved() == {0: {"train-rmse"}}


@rows(197)
def test_switched_off_by_the_environment(tmp_path):
    (tmp_path / "config.json").write_text(json.dumps({"LocalPath": str(tmp_path / "run")}))
    script = "import tornasole.pytorch as ts; print(ts.get_hook(create_if_not_exists=True) is None)"
    variables = {"SMDEBUG_CONFIG_FILE_PATH": str(tmp_path / "config.json"), "SMDEBUG_LOG_LEVEL": "off"}
    for value, is_off in (("0", "True"), ("1", "False")):
        environment = {**os.environ, **variables, "USE_SMDEBUG": value}
        done = subprocess.run([sys.executable, "-c", script], env=environment, capture_output=True, text=True)
        assert done.stdout.strip() == is_off, done.stderr


@rows(201)
def test_no_file_and_no_hook_is_no_capture():
    assert ts.get_hook(create_if_not_exists=True) is None


@rows(214)
def test_a_run_resumes_from_its_checkpoints(tmp_path, monkeypatch):
    checkpoints = tmp_path / "checkpoints"
    checkpoints.mkdir()
    (tmp_path / "checkpoint.json").write_text(json.dumps({"LocalPath": str(checkpoints)}))
    monkeypatch.setenv("CHECKPOINT_CONFIG_FILE_PATH", str(tmp_path / "checkpoint.json"))
    hook = ts.Hook(tmp_path / "one")
    training = Training(hook).run(2, ts.modes.TRAIN)
    (checkpoints / "model.pt").write_text("weights")
    training.run(1)
    hook.close()
    assert (checkpoints / "metadata.json").exists()
    resumed = ts.Hook(tmp_path / "two")
    assert (resumed.training_run, resumed.step, resumed.mode_steps[ts.modes.TRAIN]) == (1, 1, 1)


@rows(215)
def test_without_the_file_nothing_is_kept_beside_checkpoints(tmp_path, monkeypatch):
    monkeypatch.setenv("CHECKPOINT_CONFIG_FILE_PATH", str(tmp_path / "none.json"))
    assert train(ts.Hook(tmp_path / "run"), 2).training_run == 0
    assert not list(tmp_path.rglob("metadata.json"))


@rows(216, 290)
def test_metrics_for_sagemaker(tmp_path, monkeypatch, row):
    monkeypatch.setenv("TRAINING_JOB_NAME", "job")
    monkeypatch.setenv("SAGEMAKER_METRICS_DIRECTORY", str(tmp_path))
    hook = (ts.Hook if row == 216 else plain_hook("tensorflow"))(tmp_path / "run")
    if row == 216:
        hook.save_scalar("rate", 0.5, sm_metric=True)
        train(hook)
    else:
        hook.get_collection("sm_metrics").add("rate")
        hook.run(1, ["rate"])
    lines = [json.loads(line) for line in (tmp_path / f"{os.getpid()}.json").read_text().splitlines()]
    name, value = ("scalar/rate_GLOBAL", 0.5) if row == 216 else ("rate_GLOBAL", 1.0)
    assert (name, value) in [(line["MetricName"], line["Value"]) for line in lines]


@rows(221)
def test_names_in_both_packages():
    import smdebug
    import smdebug.pytorch

    for name in ("SaveConfig", "ReductionConfig"):
        assert getattr(smdebug, name) is getattr(smdebug.pytorch, name) is getattr(ts, name)


@rows(116)
def test_the_package_under_both_names():
    check_names("pytorch", ("Hook",))


@rows(126)
def test_the_classes_of_hooks(tmp_path):
    check_hook_classes("pytorch", ("Hook",), tmp_path)
