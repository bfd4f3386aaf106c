"""Eight processes of one training, of which one is killed: on a disk and in a bucket."""

import json
import os
import pathlib
import re
import signal
import subprocess
import sys

import pytest

import tornasole
import tornasole.pytorch
from tornasole.core.access_layer import has_training_ended
from tornasole.rules import make, run_rules

sys.path.insert(0, str(pathlib.Path(__file__).resolve().parents[2] / "s3"))
from s3_servers import fake_s3  # noqa: E402

WORKERS, KILLED, KILLED_AT, STEPS = 8, 5, 6, 12
# Worker 2 reads the data of worker 1; what worker 3 reads is wrong.
PROGRAM = """
import os, signal, sys, time, traceback, torch
import torch.distributed as distributed
from torch import nn
import tornasole.pytorch as smd
out_dir, meet, include, workers, killed, killed_at, steps = *sys.argv[1:4], *map(int, sys.argv[4:])
torch.set_num_threads(1)

def is_alive(pid):
    with open(f"/proc/{pid}/stat") as file:
        return file.read().rpartition(")")[2].split()[0] != "Z"

def train(rank):
    distributed.init_process_group("gloo", init_method="file://" + meet, rank=rank, world_size=workers)
    pid = torch.tensor([os.getpid() if rank == killed else 0])
    distributed.all_reduce(pid)
    pid_of_killed = int(pid)
    others = distributed.new_group([r for r in range(workers) if r != killed])
    torch.manual_seed(3)
    net, loss = nn.Sequential(nn.Linear(4, 8), nn.ReLU(), nn.Linear(8, 1)), nn.MSELoss()
    optimizer = torch.optim.SGD(net.parameters(), lr=1e-6)
    hook = smd.Hook(out_dir=out_dir, save_config=smd.SaveConfig(save_interval=1), save_all=True, include_workers=include)
    hook.register_module(net)
    hook.register_loss(loss)
    generator = torch.Generator().manual_seed(1 if rank == 2 else rank)
    for step in range(steps):
        if step == killed_at and rank == killed:
            # What it has saved is on its way for a moment; a worker that dies earlier has saved less.
            time.sleep(1)
            os.kill(os.getpid(), signal.SIGKILL)
        while step == killed_at and is_alive(pid_of_killed):
            time.sleep(0.05)
        group = None if step < killed_at else others
        optimizer.zero_grad()
        batch = torch.randn(4, 4, generator=generator) * (1000 if rank == 3 else 1)
        loss(net(batch), torch.ones(4, 1)).backward()
        for parameter in net.parameters():
            distributed.all_reduce(parameter.grad, group=group)
        optimizer.step()
    hook.close()

# What PyTorch imports with its first optimizer is imported once, and not by each of them.
torch.optim.SGD(nn.Linear(1, 1).parameters(), lr=1)
children = []
for rank in range(workers):
    child = os.fork()
    if child == 0:
        status = 1
        try:
            train(rank)
            status = 0
        except BaseException:
            traceback.print_exc()
        finally:
            sys.stdout.flush()
            os._exit(status)
    children.append(child)
# The dead one is asked for last: as long as nobody does, others see that it is dead.
order = [rank for rank in range(workers) if rank != killed] + [killed]
ended = {rank: os.waitpid(children[rank], 0)[1] for rank in order}
print([ended[rank] for rank in range(workers)])
"""


def train(out_dir, scratch, include, environment):
    package = os.path.dirname(os.path.dirname(os.path.abspath(tornasole.__file__)))
    numbers = [str(number) for number in (WORKERS, KILLED, KILLED_AT, STEPS)]
    done = subprocess.run(
        [sys.executable, "-c", PROGRAM, out_dir, str(scratch / "meet"), include, *numbers],
        env={**environment, "GLOO_SOCKET_IFNAME": "lo", "PYTHONPATH": package, "TORNASOLE_CLOSE_WAIT_S": "60"},
        capture_output=True,
        text=True,
        timeout=240,
        check=False,
    )
    assert done.returncode == 0, done.stderr[-3000:]
    expected = [int(signal.SIGKILL) if rank == KILLED else 0 for rank in range(WORKERS)]
    assert json.loads(done.stdout.splitlines()[-1]) == expected, done.stderr[-3000:]


@pytest.fixture(params=["a disk", "a bucket"])
def place(request, tmp_path, monkeypatch):
    """Where the run goes, and the environment of its processes."""
    if request.param == "a disk":
        yield str(tmp_path / "run"), dict(os.environ)
        return
    with fake_s3() as server:
        server.point_here(monkeypatch)
        yield "s3://bucket/run", server.environment()


def named_in(run):
    return {worker for found in run.violations for worker in re.findall(r"worker_\d", found["message"])}


def test_one_of_eight_is_killed(place, tmp_path):
    out_dir, environment = place
    train(out_dir, tmp_path, "all", environment)
    trial = tornasole.pytorch.create_trial(out_dir)
    # The last of the living wrote the end marker: nobody waits for the dead one.
    assert has_training_ended(out_dir)
    assert trial.num_workers == WORKERS
    assert sorted(trial.workers()) == [f"worker_{rank}" for rank in range(WORKERS)]
    assert trial.steps() == list(range(STEPS))
    weight = trial.tensor("Sequential_0.weight")
    of_dead = [step for step in trial.steps() if f"worker_{KILLED}" in weight.workers(step)]
    assert of_dead == list(range(KILLED_AT)) or of_dead == list(range(KILLED_AT - 1)), "its last step may be missing"
    for step in trial.steps():
        saved = [weight.value(step, worker=worker).tolist() for worker in weight.workers(step)]
        assert len(saved) == (WORKERS if step in of_dead else WORKERS - 1)
        assert all(one == saved[0] for one in saved), f"step {step}: the copies of the model are the same"

    duplicates = make("DuplicateShards", trial, tensor_regex="^Sequential_input_0$")
    divergence, outlier, shards = run_rules(["ReplicaDivergence", "WorkerOutlier", duplicates], trial)
    assert divergence.steps_evaluated == STEPS and divergence.violations == []
    assert named_in(outlier) == {"worker_3"}
    assert named_in(shards) == {"worker_1", "worker_2"}


def test_the_chief_alone_writes(tmp_path):
    train(str(tmp_path / "run"), tmp_path, "one", dict(os.environ))
    trial = tornasole.pytorch.create_trial(str(tmp_path / "run"))
    assert trial.workers() == ["worker_0"] and trial.num_workers == 1
    assert trial.steps() == list(range(STEPS))
    assert (tmp_path / "run" / "training_job_end.ts").exists()
