"""Two processes of one training, by gloo."""

import os
import subprocess
import sys

import pytest
from trial_dump import TrialDump

import tornasole

PROGRAM = """
import os, sys, torch
import torch.distributed as distributed
from torch import nn
torch.manual_seed(3)
torch.set_num_threads(1)
import tornasole.pytorch as smd
rank, include = int(sys.argv[1]), sys.argv[3]
every_second = smd.SaveConfig(save_interval=2)
hook = smd.Hook(out_dir=sys.argv[2], save_config=every_second, save_all=True, include_workers=include)
distributed.init_process_group("gloo", init_method="file://" + sys.argv[2] + ".meet", rank=rank, world_size=2)
net = nn.parallel.DistributedDataParallel(nn.Linear(4, 2))
hook.register_module(net)
optimizer = torch.optim.SGD(net.parameters(), lr=0.1)
for step in range(4):
    optimizer.zero_grad()
    net(torch.full((3, 4), float(rank + 1))).square().mean().backward()
    optimizer.step()
hook.close()
assert hook._get_worker_name() == f"worker_{rank}"
distributed.destroy_process_group()
"""


def run_both(directory, include):
    package = os.path.dirname(os.path.dirname(os.path.abspath(tornasole.__file__)))
    environment = {**os.environ, "GLOO_SOCKET_IFNAME": "lo", "PYTHONPATH": package}
    workers = [
        subprocess.Popen(
            [sys.executable, "-c", PROGRAM, str(rank), str(directory), include],
            env=environment,
            stderr=subprocess.PIPE,
            text=True,
        )
        for rank in range(2)
    ]
    for worker in workers:
        _, errors = worker.communicate(timeout=300)
        assert worker.returncode == 0, errors


WORKERS = [("one", ["worker_0"]), ("all", ["worker_0", "worker_1"])]


@pytest.mark.parametrize("include, workers", WORKERS, ids=[row[0] for row in WORKERS])
def test_two_workers(include, workers, tmp_path):
    """The process group is made after the hook; each worker that writes has its own inputs."""
    run_both(tmp_path / "run", include)
    trial = TrialDump(tmp_path / "run")
    assert trial.workers == workers
    assert trial.steps == {"GLOBAL": [0, 2]}
    assert "gradient/DistributedDataParallel_module.weight" in trial.names
    for rank, worker in enumerate(workers):
        assert set(trial.value("DistributedDataParallel_input_0", 0, worker)) == {float(rank + 1)}
