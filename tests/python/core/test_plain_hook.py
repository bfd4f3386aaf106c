"""The hook without a framework: construction, steps, values, the end."""

import copy
import json
import multiprocessing
import os
import pickle
import subprocess
import sys
import time

import numpy
import pytest

from tornasole import ReductionConfig, SaveConfig, SaveConfigMode, modes
from tornasole.core import singleton_utils
from tornasole.core.older_names import make_tornasole_hook
from tornasole.exceptions import (
    InvalidCollectionConfiguration,
    SMDebugRuntimeError,
    SMDebugTypeError,
    SMDebugValueError,
)
from tornasole.trials import create_trial

VALUES = {"fc.weight": [1.0, 2.0], "fc.bias": [0.5], "CrossEntropyLoss_output_0": [3.0], "relu_output_0": [0.0]}


# ---- construction


def test_attributes_after_construction(hook_class, tmp_path):
    hook = hook_class(tmp_path / "run", include_collections=[["weights"], "bias"], include_regex="relu")
    assert hook.out_dir == str(tmp_path / "run")
    assert hook.tensorboard_dir is None and hook.dry_run is False and hook.save_all is False
    assert (hook.worker, hook.chief_worker, hook.save_all_workers) == ("worker_0", "worker_0", False)
    assert set(hook.include_collections) == {"weights", "biases", "default", "losses"}
    assert hook.include_regex == ["relu"]
    assert hook.save_config == SaveConfig() and hook.reduction_config == ReductionConfig(save_raw_tensor=True)
    assert (hook.step, hook.mode, hook.mode_steps) == (-1, modes.GLOBAL, {modes.GLOBAL: -1})
    assert hook.last_saved_step is None and hook.training_run == 0 and hook.prepared_collections is False
    assert not (tmp_path / "run").exists(), "the directory appears with the first write"


def test_positional_order(hook_class, tmp_path):
    reductions, schedule = ReductionConfig(norms=["l2"]), SaveConfig(save_interval=3)
    hook = hook_class(str(tmp_path), False, None, True, reductions, schedule, ["x"], ["weights"], True, "all")
    assert hook.dry_run and hook.save_all and hook.save_all_workers
    assert hook.reduction_config is reductions and hook.save_config is schedule and hook.include_regex == ["x"]


def test_switches_as_scripts_give_them(hook_class, tmp_path):
    given = [(True, True), (1, True), ("true", True), (["true"], True), (numpy.bool_(True), True)]
    given += [(False, False), (0, False), ("False", False), (["false"], False), (None, False)]
    for number, (value, expected) in enumerate(given):
        hook = hook_class(tmp_path / str(number), save_all=value, dry_run=value, export_tensorboard=value)
        assert (hook.save_all, hook.dry_run, hook.tensorboard_dir is not None) == (expected,) * 3, value
        hook.close()


REFUSED = [
    ("a switch that is neither on nor off", {"save_all": "maybe"}, SMDebugValueError, "save_all"),
    ("a switch with several values", {"save_all": [True, False]}, SMDebugValueError, "save_all"),
    ("no directory", {"out_dir": None}, SMDebugRuntimeError, "out_dir"),
    ("a schedule of another type", {"save_config": 3}, SMDebugTypeError, "save_config"),
    ("a mode nobody knows", {"save_config": {"x": SaveConfigMode()}}, SMDebugValueError, "not a mode"),
    ("reductions of another type", {"reduction_config": "min"}, SMDebugTypeError, "reduction_config"),
    ("a pattern that is no text", {"include_regex": ["a", 3]}, SMDebugTypeError, "include_regex"),
    ("a pattern that is none", {"include_regex": ["("]}, SMDebugValueError, "("),
    ("workers other than one and all", {"include_workers": "two"}, SMDebugValueError, "include_workers"),
    ("an option nobody knows", {"save_al": True}, SMDebugTypeError, "save_al"),
    ("a queue of no bytes", {"queue_bytes": 0}, SMDebugValueError, "queue_bytes"),
    ("a worker's name with a slash", {"worker": "a/b"}, SMDebugValueError, "worker"),
]


@pytest.mark.parametrize("what, arguments, error, named", REFUSED, ids=[row[0] for row in REFUSED])
def test_refused_arguments(what, arguments, error, named, hook_class, tmp_path):
    with pytest.raises(error) as refused:
        hook_class(**{"out_dir": tmp_path / "run", **arguments})
    assert named in str(refused.value)
    assert singleton_utils.current_hook() is None


def test_a_finished_run_is_not_written_over(hook_class, tmp_path):
    hook_class(tmp_path / "run").close()
    (tmp_path / "run").mkdir(exist_ok=True)
    (tmp_path / "run" / "training_job_end.ts").touch()
    with pytest.raises(SMDebugRuntimeError, match="finished run"):
        hook_class(tmp_path / "run")


def test_sagemaker_job_has_a_default_directory(hook_class, monkeypatch):
    monkeypatch.setenv("TRAINING_JOB_NAME", "job")
    assert hook_class(dry_run=True).out_dir == "/opt/ml/output/tensors"


def test_options_reach_the_engine(hook_class, tmp_path):
    given = {"queue_bytes": 1 << 20, "fsync": "step", "when_full": "block", "close_wait_s": 2, "worker": "w1"}
    hook = hook_class(tmp_path / "run", **given)
    options = hook._engine_hook.options()
    assert (options["queue_bytes"], options["fsync"], options["when_full"]) == (1 << 20, "step", "block")
    assert options["close_wait_s"] == 2.0 and hook.worker == "w1"


def test_a_later_change_of_directory_does_not_split_the_run(hook_class, tmp_path, monkeypatch, saved_names):
    monkeypatch.chdir(tmp_path)
    hook = hook_class("relative", save_all=True)
    assert hook.out_dir == "relative"
    (tmp_path / "elsewhere").mkdir()
    monkeypatch.chdir(tmp_path / "elsewhere")
    hook.run(1, VALUES)
    hook.close()
    assert saved_names(tmp_path / "relative")[0] == set(VALUES)


# ---- steps and modes


def test_counters_of_interleaved_modes(hook_class, tmp_path):
    hook = hook_class(tmp_path / "run", save_config=SaveConfig(save_interval=2), save_all=True)
    seen = []
    for mode in (modes.TRAIN, modes.TRAIN, modes.TRAIN, modes.EVAL, modes.EVAL, modes.TRAIN):
        hook.set_mode(mode)
        due = hook._begin_step()
        seen.append((hook.step, hook.mode_steps.get(modes.TRAIN), hook.mode_steps.get(modes.EVAL), due))
        assert hook.mode_steps[modes.GLOBAL] == hook.step
        hook._end_step()
    assert seen == [
        (0, 0, None, True),
        (1, 1, None, False),
        (2, 2, None, True),
        (3, 2, 0, True),
        (4, 2, 1, False),
        (5, 3, 1, False),
    ]


@pytest.mark.parametrize("mode", ["TRAIN", 1, None])
def test_a_mode_is_a_member_of_modes(mode, hook_class, tmp_path):
    with pytest.raises(SMDebugValueError):
        hook_class(tmp_path / "run").set_mode(mode)


def test_setting_a_mode_counts_nothing_and_starts_its_counter(hook_class, tmp_path):
    hook = hook_class(tmp_path / "run")
    hook.set_mode(modes.EVAL)
    assert (hook.step, hook.mode_steps) == (-1, {modes.GLOBAL: -1, modes.EVAL: -1})


def test_a_partial_step_is_marked(hook_class, tmp_path):
    hook = hook_class(tmp_path / "run", save_all=True)
    hook._begin_step()
    hook._engine_hook.save("x", numpy.ones(2))
    hook._end_step(partial=True)
    hook.close()
    meta = json.loads(next((tmp_path / "run" / "index").rglob("*.json")).read_text())["meta"]
    assert meta["partial"] is True


def test_a_step_with_nothing_due_costs_about_a_microsecond(hook_class, tmp_path):
    hook = hook_class(tmp_path / "run")
    hook.run(1)
    times = []
    for _ in range(5):
        start = time.thread_time()
        for _ in range(5_000):
            hook._begin_step()
        times.append(time.thread_time() - start)
    assert min(times) / 5_000 < 50e-6  # usually 2e-6; machines differ


# ---- what is saved


SELECTED = [
    ("the framework's own", {}, {"CrossEntropyLoss_output_0"}),
    ("a collection by name", {"include_collections": ["weights"]}, {"CrossEntropyLoss_output_0", "fc.weight"}),
    ("a collection by its older name", {"include_collections": ["bias"]}, {"CrossEntropyLoss_output_0", "fc.bias"}),
    ("a pattern", {"include_regex": ["relu"]}, {"CrossEntropyLoss_output_0", "relu_output_0"}),
    ("everything", {"save_all": True}, set(VALUES)),
    ("everything by the collection's name", {"include_collections": ["all"]}, set(VALUES)),
]


@pytest.mark.parametrize("what, arguments, names", SELECTED, ids=[row[0] for row in SELECTED])
def test_selection(what, arguments, names, hook_class, tmp_path, saved_names):
    hook = hook_class(tmp_path / "run", **arguments)
    hook.run(1, VALUES)
    hook.close()
    assert saved_names(tmp_path / "run") == {0: names}


def test_save_tensor_joins_its_collections(hook_class, tmp_path, saved_names):
    hook = hook_class(tmp_path / "run", save_config=SaveConfig(save_interval=2))
    for step in range(3):
        hook._begin_step()
        hook.save_tensor("mine", [float(step)], ["custom", "default"])
        hook._end_step()
    hook.close()
    assert saved_names(tmp_path / "run") == {0: {"mine"}, 2: {"mine"}}
    assert "mine" in hook.get_collection("custom").tensor_names
    assert {"custom", "default"} <= set(hook.include_collections)


@pytest.mark.parametrize("value", [3, 2.5, "text", [1, 2], (1.0,), numpy.float32(3), numpy.zeros((2, 2)), True])
def test_save_tensor_takes_what_can_be_an_array(value, hook_class, tmp_path, saved_names):
    hook = hook_class(tmp_path / "run")
    hook._begin_step()
    hook.save_tensor("value", value)
    hook._end_step()
    hook.close()
    assert saved_names(tmp_path / "run") == {0: {"value"}}


@pytest.mark.parametrize("value", [None, {"a": 1}, [[1], [2, 3]], object()])
def test_save_tensor_warns_of_what_cannot(value, hook_class, tmp_path, log_lines, saved_names):
    hook = hook_class(tmp_path / "run", save_all=True)
    hook._begin_step()
    hook.save_tensor("value", value)
    hook._end_step()
    hook.close()
    assert saved_names(tmp_path / "run") == {}
    assert any(level == "WARNING" and "left out" in text for level, text in log_lines)


def test_scalars_wait_for_a_saved_step(hook_class, tmp_path, saved_names):
    hook = hook_class(tmp_path / "run", save_config=SaveConfig(save_steps=[2], save_interval=1000))
    hook.run(1)
    hook.save_scalar("early", 1)
    hook.run(2, VALUES)
    hook.save_scalar("late", numpy.float32(2))
    hook.close()
    saved = saved_names(tmp_path / "run")
    assert "scalar/early" in saved[2]
    assert any("scalar/late" in names for names in saved.values())
    assert {"scalar/early", "scalar/late"} <= hook.get_collection("scalars").tensor_names


@pytest.mark.parametrize("value", [[1, 2], "3", None, {}, numpy.zeros(2), 1j])
def test_a_scalar_is_exactly_one_number(value, hook_class, tmp_path):
    with pytest.raises(SMDebugTypeError, match="loss"):
        hook_class(tmp_path / "run").save_scalar("loss", value)


@pytest.mark.parametrize("name", [None, 3, ["loss"], "\ud800"])
def test_a_scalar_has_a_name(name, hook_class, tmp_path):
    with pytest.raises(SMDebugTypeError, match="is no name of a tensor; a text is"):
        hook_class(tmp_path / "run").save_scalar(name, 1)


def test_a_scalar_has_a_time(hook_class, tmp_path):
    hook = hook_class(tmp_path / "run")
    for wrong, error in (("3", SMDebugTypeError), ([1], SMDebugTypeError), (float("nan"), SMDebugValueError)):
        with pytest.raises(error, match="is no time; seconds since 1970 are"):
            hook.save_scalar("loss", 1, timestamp=wrong)
    for right in (None, 0, 1600000000.25, numpy.float32(1e9), numpy.array(5)):
        hook.save_scalar("loss", 1, timestamp=right)


def test_dry_run_writes_nothing_and_says_what_it_would(hook_class, tmp_path, log_lines):
    hook = hook_class(tmp_path / "run", dry_run=True, save_all=True)
    hook.run(3, VALUES)
    hook.close()
    assert hook.step == 2 and list(tmp_path.iterdir()) == []
    assert any("fc.weight" in text and level == "INFO" for level, text in log_lines)


def test_a_collection_that_can_never_match(hook_class, tmp_path):
    hook = hook_class(tmp_path / "run", include_collections=["mine"])
    hook.get_collection("mine")
    with pytest.raises(InvalidCollectionConfiguration) as refused:
        hook._begin_step()
    assert refused.value.c_name == "mine"


# ---- configuration file


def test_from_a_file(hook_class, tmp_path, monkeypatch, saved_names):
    file = tmp_path / "config.json"
    parameters = {"save_interval": "2", "train.save_interval": 3, "include_regex": "relu", "reductions": "min,l2"}
    entry = {"CollectionName": "acts", "CollectionParameters": {"include_regex": "relu|tanh", "save_interval": 1}}
    content = {"LocalPath": str(tmp_path / "run"), "HookParameters": parameters, "CollectionConfigurations": [entry]}
    file.write_text(json.dumps(content))
    monkeypatch.setenv("SMDEBUG_CONFIG_FILE_PATH", str(file))
    for hook in (hook_class.create_from_json_file(), hook_class.hook_from_config(str(file))):
        assert hook.out_dir == str(tmp_path / "run")
        assert hook.save_config.get_save_config(modes.TRAIN).save_interval == 3
        assert hook.save_config.get_save_config(modes.EVAL).save_interval == 2
        assert hook.reduction_config == ReductionConfig(["min"], norms=["l2"])
        assert set(hook.include_collections) == {"acts", "default", "losses"}
        acts = hook.get_collection("acts")
        assert acts.include_regex == ["relu|tanh"]
        assert acts.save_config.get_save_config(modes.TRAIN).save_interval == 1
    hook.run(2, VALUES)
    hook.close()
    assert saved_names(tmp_path / "run")[1] == {f"smdebug/reductions/{r}/relu_output_0" for r in ("min", "l2")}


def test_no_file_is_an_error_for_the_script_and_no_hook_otherwise(hook_class, tmp_path, monkeypatch):
    missing = str(tmp_path / "none.json")
    with pytest.raises(FileNotFoundError):
        hook_class.create_from_json_file(missing)
    arguments = {"json_config_path": missing, "hook_class": hook_class}
    assert singleton_utils.get_hook(**arguments, create_if_not_exists=True) is None


def test_bad_files_name_file_and_line(hook_class, tmp_path):
    file = tmp_path / "bad.json"
    file.write_text('{"LocalPath": "x",\n "HookParameters": {"save_interval": 0}}')
    with pytest.raises(SMDebugValueError, match=r"bad\.json:2"):
        hook_class.create_from_json_file(file)
    file.write_text('{"LocalPath": "x",\n "HookParameters":\n {"train.when_nan": "("}}')
    with pytest.raises(SMDebugValueError, match=r'bad\.json:3: train\.when_nan: pattern "\("'):
        hook_class.create_from_json_file(file)
    for no_path in (3, b"bad.json", ["bad.json"], "\ud800"):
        with pytest.raises(SMDebugTypeError, match="allowed: a path, or None"):
            hook_class.create_from_json_file(no_path)


# ---- the hook of the process


def test_the_newest_hook_is_the_one_of_the_process(hook_class, tmp_path):
    first, second = hook_class(tmp_path / "a"), hook_class(tmp_path / "b")
    assert singleton_utils.get_hook() is second
    singleton_utils.set_hook(first)
    assert singleton_utils.get_hook(hook_class=hook_class) is first
    with pytest.raises(SMDebugTypeError):
        singleton_utils.set_hook("hook")
    singleton_utils.del_hook()
    assert singleton_utils.get_hook() is None
    for hook in (first, second):
        hook.close()


def test_switched_off_by_the_environment(hook_class, tmp_path):
    script = (
        "from tornasole.core.singleton_utils import get_hook\n"
        "from tornasole.core.hook import BaseHook\n"
        f"hook = BaseHook({str(tmp_path / 'run')!r}, dry_run=True)\n"
        "print(get_hook(hook_class=BaseHook) is None)\n"
    )
    for value, is_off in (("0", True), ("False", True), ("off", True), ("1", False), ("perhaps", False)):
        environment = {**os.environ, "USE_SMDEBUG": value, "SMDEBUG_LOG_LEVEL": "off"}
        command = [sys.executable, "-c", script]
        done = subprocess.run(command, env=environment, capture_output=True, text=True, check=True)
        assert done.stdout.strip() == str(is_off), value


# ---- copies, children, the end


def test_a_copied_or_pickled_hook_is_empty(hook_class, tmp_path, saved_names):
    hook = hook_class(tmp_path / "run", save_all=True)
    for other in (pickle.loads(pickle.dumps(hook)) if "." not in hook_class.__qualname__ else copy.copy(hook),
                  copy.deepcopy(hook)):
        assert other._begin_step() is False
        other._end_step()
        other.save_scalar("x", 1)
        other.save_tensor("x", 1)
        other.close()
    assert hook.step == -1
    hook.run(1, VALUES)
    hook.close()
    assert saved_names(tmp_path / "run")[0] == set(VALUES)


def test_a_forked_child_does_nothing(hook_class, tmp_path, saved_names):
    hook = hook_class(tmp_path / "run", save_all=True)
    hook.run(1, VALUES)
    child = os.fork()
    if child == 0:
        is_quiet = hook.run(3, VALUES) == []
        hook.save_scalar("x", 1)
        hook.close()
        os._exit(0 if is_quiet else 1)
    assert os.waitpid(child, 0)[1] == 0
    hook.run(1, VALUES)
    hook.close()
    assert list(saved_names(tmp_path / "run")) == [0]
    assert (tmp_path / "run" / "training_job_end.ts").exists()


def test_a_forked_process_that_comes_second_says_so_once(hook_class, tmp_path, saved_names, log_lines):
    hook = hook_class(tmp_path / "run", save_all=True)
    fork = multiprocessing.get_context("fork")
    has_written, told = fork.Event(), fork.SimpleQueue()

    def come_second():
        has_written.wait()
        for _ in range(8):
            hook.run(1, VALUES)
            hook._wait_until_written(60)
        hook.close()
        told.put([line for line in log_lines if line[0] in ("WARNING", "ERROR")])

    child = fork.Process(target=come_second)
    child.start()
    hook.run(1, VALUES)
    while not saved_names(tmp_path / "run"):
        time.sleep(0.01)
    has_written.set()
    child.join(120)
    assert child.exitcode == 0
    ((level, text),) = told.get()
    assert level == "WARNING" and f"process {os.getpid()}" in text
    hook.close()
    assert list(saved_names(tmp_path / "run")) == [0]


def test_whoever_opens_the_run_in_the_same_process_sees_every_ended_step(hook_class, tmp_path):
    hook = hook_class(tmp_path / "run", save_all=True, save_config=SaveConfig(save_interval=1))
    for step in range(3):
        hook.run(1, {"x": numpy.zeros(8_000_000)})
        assert create_trial(str(tmp_path / "run")).steps() == list(range(step + 1))


def test_closing_twice_and_calls_afterwards(hook_class, tmp_path, log_lines):
    hook = hook_class(tmp_path / "run", save_all=True)
    hook.run(1, VALUES)
    hook.close()
    hook.close()
    hook.run(2, VALUES)
    hook.save_scalar("x", 1)
    assert sum("after the hook was closed" in text for _, text in log_lines) == 1


@pytest.mark.parametrize("ending, state", [("", "ended"), ("raise RuntimeError('boom')", "failed")])
def test_the_end_of_the_program_closes_the_hook(ending, state, tmp_path):
    script = (
        "from tornasole.core.hook import BaseHook\nimport numpy\n"
        f"hook = BaseHook({str(tmp_path / 'run')!r}, save_all=True)\n"
        "hook._begin_step()\nhook._engine_hook.save('x', numpy.ones(3))\n" + ending
    )
    subprocess.run([sys.executable, "-c", script], capture_output=True)
    health = json.loads((tmp_path / "run" / "tornasole" / "worker_0_health.json").read_text())
    assert health["state"] == state and health["committed"] == 1
    if state == "failed":
        assert "boom" in json.dumps(health)


def test_a_worker_that_learns_its_rank_late(hook_class, tmp_path, saved_names):
    ranks = iter([(0, 1), (1, 2)])

    class Late(hook_class):
        def _get_worker_rank(self):
            return next(ranks)

    hook = Late(tmp_path / "run", save_all=True)
    assert hook.worker == "worker_0"
    hook.run(1, VALUES)
    hook.close()
    assert hook.worker == "worker_1" and not (tmp_path / "run").exists(), "only the chief writes"


def test_older_name_has_its_own_order_and_defaults(hook_class, tmp_path):
    older = make_tornasole_hook(hook_class)
    hook = older(str(tmp_path / "run"), True, "w7")
    assert isinstance(hook, hook_class) and hook.dry_run and hook.worker == "w7"
    assert hook.save_config == SaveConfig(save_interval=100)
    assert set(hook.include_collections) == {"weights", "gradients", "biases", "default", "losses"}


def test_import_is_light():
    script = (
        "import sys, time, threading\nstart = time.process_time()\nimport tornasole\n"
        "print(time.process_time() - start, 'numpy' in sys.modules, threading.active_count())"
    )
    times = []
    for _ in range(5):
        done = subprocess.run([sys.executable, "-c", script], capture_output=True, text=True, check=True)
        seconds, has_numpy, threads = done.stdout.split()
        assert has_numpy == "False" and threads == "1"
        times.append(float(seconds))
    assert min(times) < 0.18  # 0.06 is the promise


def test_strict_mode_raises_the_first_failure(tmp_path):
    for strict, code in (("0", 0), ("1", 1)):
        run = tmp_path / strict
        run.mkdir()
        (run / "events").touch()  # so no event file can be made
        script = (
            f"from tornasole.core.hook import BaseHook\nimport numpy\nhook = BaseHook({str(run)!r}, save_all=True)\n"
            "hook._begin_step()\nhook._engine_hook.save('x', numpy.ones(3))\nhook._end_step()\nhook.close()\n"
        )
        environment = {**os.environ, "SMDEBUG_LOG_LEVEL": "off", "TORNASOLE_STRICT": strict}
        done = subprocess.run([sys.executable, "-c", script], env=environment, capture_output=True, text=True)
        assert done.returncode == code, done.stderr
    assert "SMDebug" in done.stderr and "events" in done.stderr


@pytest.mark.parametrize("name, collections", [("\ud800", "default"), ("x", "\ud800"), (3, "default"), ("x", 3)])
def test_a_tensor_that_cannot_be_named_costs_no_other(name, collections, hook_class, tmp_path, saved_names):
    hook = hook_class(tmp_path / "run", save_config=SaveConfig(save_interval=1), include_collections=["default"])
    hook._begin_step()
    try:
        hook.save_tensor(name, numpy.ones(2), collections)
    except (SMDebugTypeError, SMDebugValueError):
        pass
    hook.save_tensor("good", numpy.ones(2))
    hook._end_step()
    hook.close()
    assert saved_names(tmp_path / "run") == {0: {"good"}}
