"""Runs on S3 from Python: hooks write to, and trials read from, a fake server on loopback."""

import json
import os
import pathlib
import signal
import subprocess
import sys
import time

import numpy as np
import pytest
from tornasole import SaveConfig
from tornasole.core.access_layer.utils import check_dir_exists, has_training_ended
from tornasole.core.collection_manager import CollectionManager
from tornasole.core.hook import BaseHook
from tornasole.core.reader import FileReader
from tornasole.core.writer import FileWriter
from tornasole.exceptions import SMDebugRuntimeError, SMDebugValueError
from tornasole.trials import create_trial


def write(place, steps=5, is_killed=False, checkpoints=None, **options):
    hook = BaseHook(place, save_all=True, save_config=SaveConfig(save_interval=1), **options)
    for step in range(steps):
        if hook._begin_step(None):
            hook._engine_hook.save("weight", np.arange(6, dtype=np.float32) + step)
        if checkpoints and step == 2:
            (pathlib.Path(checkpoints) / "model.bin").write_bytes(b"weights")
        hook._end_step()
    if is_killed:
        while hook.report()["committed_steps"] < steps:
            time.sleep(0.01)
        os.kill(os.getpid(), signal.SIGKILL)
    hook.close()
    return hook


def test_what_a_hook_wrote_a_trial_reads(server):
    write("s3://bucket/some/run")
    trial = create_trial("s3://bucket/some/run")
    assert trial.steps() == [0, 1, 2, 3, 4]
    for step in trial.steps():
        np.testing.assert_array_equal(trial.tensor("weight").value(step), np.arange(6, dtype=np.float32) + step)
    assert trial.loaded_all_steps
    assert has_training_ended("s3://bucket/some/run")
    assert check_dir_exists("s3://bucket/some/run")
    assert not check_dir_exists("s3://bucket/some/other")


def test_a_finished_run_is_refused_at_set_up(server):
    write("s3://bucket/run")
    with pytest.raises(SMDebugRuntimeError, match="a finished run lives there"):
        BaseHook("s3://bucket/run")


def test_a_missing_bucket_is_named_and_not_made(server):
    with pytest.raises(Exception, match="'not-made' does not exist; buckets are never created"):
        write("s3://not-made/run")
    assert not [entry for entry in server.history() if entry["method"] == "PUT"]


def test_the_same_values_as_from_a_directory(server, tmp_path):
    write("s3://bucket/run")
    write(str(tmp_path / "run"))
    remote, local = create_trial("s3://bucket/run"), create_trial(str(tmp_path / "run"))
    assert remote.tensor_names() == local.tensor_names()
    assert remote.steps() == local.steps()


def test_a_run_made_by_hand_in_a_bucket(server):
    for step in (0, 3):
        with FileWriter("s3://bucket/made", step=step, worker="worker_0") as writer:
            writer.write_tensor(np.full(4, step, np.float32), "foo")
    manager = CollectionManager()
    manager.add("mine")
    manager.get("mine").tensor_names = ["foo"]
    manager.export("s3://bucket/made", "worker_0_collections.json")
    assert CollectionManager.load("s3://bucket/made/collections/000000000/worker_0_collections.json") == manager

    trial = create_trial("s3://bucket/made", timeout=20)
    assert trial.tensor_names(collection="mine") == ["foo"] and trial.steps() == [0, 3]
    assert trial.last_index_token == "made/index/000000000/000000000003_worker_0.json"
    (read,) = FileReader(writer.name()).read_tensors()
    assert read[:2] == ("foo", 3)
    np.testing.assert_array_equal(read[2], np.full(4, 3, np.float32))
    with pytest.raises(SMDebugValueError, match="s3://bucket/none cannot be read"):
        list(FileReader("s3://bucket/none").read_tensors())


def test_importing_and_a_local_run_load_no_libcurl(tmp_path):
    program = (
        "import tornasole\nfrom tornasole.core.hook import BaseHook\n"
        f"BaseHook({str(tmp_path / 'run')!r}).close()\n"
        "assert 'libcurl' not in open('/proc/self/maps').read()\n"
    )
    done = subprocess.run([sys.executable, "-c", program], capture_output=True, text=True, check=False)
    assert done.returncode == 0, done.stderr


def test_requests_are_in_the_report(server):
    counts = write("s3://bucket/run").report()["requests"]
    assert 2 * 5 <= counts["put"] <= 2 * 5 + 8, "two objects a step, and some of the run"
    assert counts["list"] > 0 and counts["bytes_written"] > 5 * 24


def test_a_local_run_makes_no_requests(tmp_path):
    assert write(str(tmp_path / "run")).report()["requests"] == {}


def test_an_interrupted_run_is_continued(server):
    program = (
        "import os, sys\n"
        f"sys.path.insert(0, {str(pathlib.Path(__file__).parent)!r})\n"
        "from test_s3_runs import write\n"
        "hook = write('s3://bucket/run', is_killed=True)\n"
    )
    done = subprocess.run([sys.executable, "-c", program], capture_output=True, text=True, check=False)
    assert done.returncode == -9, done.stderr
    with pytest.raises(SMDebugRuntimeError, match="pass resume=True"):
        BaseHook("s3://bucket/run")
    write("s3://bucket/run", resume=True)
    trial = create_trial("s3://bucket/run")
    assert trial.steps() == list(range(10))
    assert trial.loaded_all_steps


def test_a_checkpoint_state_continues_a_run_in_the_bucket(server, monkeypatch, tmp_path):
    """The state file says where to go on, no matter that later steps were published; those are not written again."""
    checkpoints = tmp_path / "checkpoints"
    checkpoints.mkdir()
    (tmp_path / "config.json").write_text(json.dumps({"LocalPath": str(checkpoints)}))
    monkeypatch.setenv("CHECKPOINT_CONFIG_FILE_PATH", str(tmp_path / "config.json"))
    program = (
        "import sys\n"
        f"sys.path.insert(0, {str(pathlib.Path(__file__).parent)!r})\n"
        "from test_s3_runs import write\n"
        f"write('s3://bucket/run', is_killed=True, checkpoints={str(checkpoints)!r})\n"
    )
    done = subprocess.run([sys.executable, "-c", program], capture_output=True, text=True, check=False)
    assert done.returncode == -9, done.stderr
    seen = json.loads((checkpoints / "metadata.json").read_text())[-1]["latest-global-step-seen"]
    assert seen in (2, 3), "the step at whose boundary the checkpoint was found"
    before = {key: what for key, what in server.keys().items() if "/events/" in key}
    assert len(before) == 5
    write("s3://bucket/run", steps=6)
    trial = create_trial("s3://bucket/run")
    assert trial.steps() == list(range(seen + 7))
    assert trial.loaded_all_steps
    after = server.keys()
    assert {key: after[key] for key in before} == before


def test_summaries_for_tensorboard_go_to_the_bucket(server):
    write("s3://bucket/run", export_tensorboard=True)
    write("s3://bucket/other", tensorboard_dir="s3://bucket/boards")
    for place in ("run/tensorboard", "boards"):
        files = [key for key in server.keys() if key.startswith(f"bucket/{place}/GLOBAL/") and key.endswith(".tfevents")]
        assert len(files) == 5, f"{place}: one a step: {sorted(server.keys())}"
    assert create_trial("s3://bucket/run").steps() == [0, 1, 2, 3, 4]


def test_summaries_nobody_takes_cost_no_step(server):
    hook = write("s3://bucket/run", tensorboard_dir="s3://not-made/boards")
    report = hook.report()
    assert report["committed_steps"] == 5 and report["dropped_steps"] == {}
    assert report["dropped_values"]["tensorboard"] == 5
