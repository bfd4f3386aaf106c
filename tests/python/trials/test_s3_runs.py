"""Runs on S3 from Python: hooks write to, and trials read from, a fake server on loopback."""

import pathlib
import subprocess
import sys

import numpy as np
import pytest
from tornasole import SaveConfig
from tornasole.core.access_layer.utils import check_dir_exists, has_training_ended
from tornasole.core.hook import BaseHook
from tornasole.exceptions import SMDebugRuntimeError
from tornasole.trials import create_trial

TESTS = pathlib.Path(__file__).resolve().parents[2]
sys.path.insert(0, str(TESTS / "s3"))
from s3_servers import fake_s3  # noqa: E402


@pytest.fixture
def server(monkeypatch):
    with fake_s3() as started:
        for name, value in started.environment().items():
            if name.startswith("AWS_"):
                monkeypatch.setenv(name, value)
        yield started


def write(place, steps=5, **options):
    hook = BaseHook(place, save_all=True, save_config=SaveConfig(save_interval=1), **options)
    for step in range(steps):
        if hook._begin_step(None):
            hook._engine_hook.save("weight", np.arange(6, dtype=np.float32) + step)
        hook._end_step()
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


def test_importing_and_a_local_run_load_no_libcurl(tmp_path):
    program = (
        "import tornasole\nfrom tornasole.core.hook import BaseHook\n"
        f"BaseHook({str(tmp_path / 'run')!r}).close()\n"
        "assert 'libcurl' not in open('/proc/self/maps').read()\n"
    )
    done = subprocess.run([sys.executable, "-c", program], capture_output=True, text=True, check=False)
    assert done.returncode == 0, done.stderr
