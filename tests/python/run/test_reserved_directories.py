"""Processes that begin at the same time: each has a directory of its own before any of them has written."""

import json
import os
import subprocess
import sys

import pytest

from tornasole.exceptions import RunDirectoryOccupied
from tornasole.run.reserved_directory import reserve

sys.path.insert(0, os.path.join(os.path.dirname(__file__), "..", "torch"))
from trial_dump import TrialDump  # noqa: E402

PROCESSES = """
import multiprocessing, torch
from torch import nn
def train(rank, barrier):
    torch.manual_seed(rank)
    net = nn.Linear(3, 2)
    optimizer = torch.optim.SGD(net.parameters(), lr=0.1)
    for step in range(8):
        optimizer.zero_grad()
        net(torch.randn(4, 3)).sum().backward()
        optimizer.step()
        if step == 0:
            barrier.wait()  # both are captured by now, and nothing was due
if __name__ == "__main__":
    context = multiprocessing.get_context("fork")
    barrier = context.Barrier(2)
    workers = [context.Process(target=train, args=(rank, barrier)) for rank in range(2)]
    for worker in workers:
        worker.start()
    for worker in workers:
        worker.join()
    print([worker.exitcode for worker in workers])
"""
LATE = {"HookParameters": {"start_step": 4, "save_interval": 1}, "CollectionConfigurations": [{"CollectionName": "weights"}]}


def test_two_processes_at_once_have_a_trial_each(run_program, tmp_path):
    (tmp_path / "config.json").write_text(json.dumps(LATE))
    ran = run_program(PROCESSES, under=["--out", "out", "--config", "config.json"])
    assert (ran.returncode, ran.stdout) == (0, "[0, 0]\n"), ran.stderr
    first, second = (TrialDump(tmp_path / name) for name in ("out", "out-2"))
    assert sorted(first.steps["TRAIN"]) == sorted(second.steps["TRAIN"]) == [4, 5, 6, 7], ran.stderr
    assert all((tmp_path / name / "training_job_end.ts").exists() for name in ("out", "out-2"))
    assert first.value("Linear_weight", 4) != second.value("Linear_weight", 4)


def test_a_directory_is_had_by_one_until_it_lets_go(tmp_path):
    path = tmp_path / "runs" / "out"
    held = reserve(str(path))
    with pytest.raises(RunDirectoryOccupied, match="another process"):
        reserve(str(path))
    taken = subprocess.run(
        [sys.executable, "-c", "import sys; from tornasole.run.reserved_directory import reserve; reserve(sys.argv[1])", path],
        capture_output=True, text=True, check=False,
    )
    assert "RunDirectoryOccupied" in taken.stderr
    held.release()
    assert not path.exists(), "an empty directory that was made for this is taken away again"
    path.mkdir()
    reserve(str(path)).release()
    assert path.exists(), "one that was there is left"
    held = reserve(str(path))
    del held
    reserve(str(path)).release()


def test_what_cannot_be_held_is_left_to_whoever_writes(tmp_path):
    (tmp_path / "file").touch()
    for path in ("s3://bucket/prefix", str(tmp_path / "file"), str(tmp_path / "file" / "below"), "/proc/out"):
        assert reserve(path) is None
