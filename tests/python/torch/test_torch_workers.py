"""Two processes of one training, by gloo."""

import ast
import os
import subprocess
import sys

import pytest
from trial_dump import TrialDump

import tornasole
import tornasole.pytorch

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

# Each worker clears the directory before it starts, as scripts do that know nothing of the others.
CLEARING = """
import os, shutil, sys, time, torch
import torch.distributed as distributed
from torch import nn
torch.manual_seed(3)
torch.set_num_threads(1)
import tornasole.pytorch as smd
rank, out_dir, late = int(sys.argv[1]), sys.argv[2], int(sys.argv[3])
distributed.init_process_group("gloo", init_method="file://" + out_dir + ".meet", rank=rank, world_size=2)
net = nn.Linear(4, 2)
def start():
    shutil.rmtree(out_dir, ignore_errors=True)
    every = smd.SaveConfig(save_interval=1)
    hook = smd.Hook(out_dir=out_dir, save_config=every, save_all=True, include_workers="all")
    hook.register_module(net)
    return hook
def forward():
    return net(torch.full((3, 4), float(rank + 1))).square().mean()
if rank != late:
    hook = start()
    loss = forward()
    if late == 1:
        began = time.monotonic()
        while not os.path.exists(out_dir + "/tornasole/run.json") and time.monotonic() < began + 20:
            time.sleep(0.01)
if late >= 0:
    distributed.barrier()
if rank == late:
    hook = start()
    loss = forward()
distributed.barrier()
for step in range(3):
    loss.backward()
    loss = forward()
hook.close()
distributed.barrier()
distributed.destroy_process_group()
"""


# A model in shards, under the hook or bare; prints its weights at the end.
SHARDED = """
import sys, torch
import torch.distributed as distributed
from torch import nn
from torch.distributed.device_mesh import init_device_mesh
from torch.distributed.fsdp import fully_shard
torch.manual_seed(3)
torch.set_num_threads(1)
import tornasole.pytorch as smd
rank, out_dir, is_hooked = int(sys.argv[1]), sys.argv[2], sys.argv[3] == "hooked"
distributed.init_process_group("gloo", init_method="file://" + out_dir + ".meet", rank=rank, world_size=2)
mesh = init_device_mesh("cpu", (2,))
net = nn.Sequential(nn.Linear(4, 6), nn.Tanh(), nn.Linear(6, 2))
for layer in (net[0], net[2], net):
    fully_shard(layer, mesh=mesh)
optimizer = torch.optim.Adam(net.parameters(), lr=0.1)
if is_hooked:
    included = ["optimizer_gradients", "optimizer_variables"]
    hook = smd.Hook(out_dir=out_dir, save_config=smd.SaveConfig(save_interval=1), save_all=True,
                    include_workers="all", include_collections=included)
    hook.register_module(net)
for step in range(3):
    optimizer.zero_grad()
    net(torch.full((3, 4), float(rank + 1))).square().mean().backward()
    gradient = net[0].weight.grad.to_local().flatten().tolist()
    optimizer.step()
weights = [parameter.to_local().flatten().tolist() for parameter in net.parameters()]
open(f"{out_dir}.{sys.argv[3]}.{rank}", "w").write(repr((weights, gradient)))
if is_hooked:
    hook.close()
distributed.destroy_process_group()
"""


def run_both(program, directory, argument):
    package = os.path.dirname(os.path.dirname(os.path.abspath(tornasole.__file__)))
    environment = {**os.environ, "GLOO_SOCKET_IFNAME": "lo", "PYTHONPATH": package}
    workers = [
        subprocess.Popen(
            [sys.executable, "-c", program, str(rank), str(directory), argument],
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
    run_both(PROGRAM, tmp_path / "run", include)
    trial = TrialDump(tmp_path / "run")
    assert trial.workers == workers
    assert trial.steps == {"GLOBAL": [0, 2]}
    assert "gradient/DistributedDataParallel_module.weight" in trial.names
    for rank, worker in enumerate(workers):
        assert set(trial.value("DistributedDataParallel_input_0", 0, worker)) == {float(rank + 1)}


CLEARED = [
    ("the one that joins removes what the chief began", "1"),
    ("the chief removes it while the other waits", "0"),
    ("both at once", "-1"),
]


@pytest.mark.parametrize("what, late", CLEARED, ids=[row[0] for row in CLEARED])
def test_workers_that_clear_the_directory(what, late, tmp_path):
    (tmp_path / "run").mkdir()
    run_both(CLEARING, tmp_path / "run", late)
    trial = TrialDump(tmp_path / "run")
    assert trial.workers == ["worker_0", "worker_1"]
    assert trial.steps == {"GLOBAL": [0, 1, 2, 3]}
    for rank, worker in enumerate(trial.workers):
        for step in range(4):
            assert set(trial.value("Linear_input_0", step, worker)) == {float(rank + 1)}
    assert (tmp_path / "run" / "training_job_end.ts").exists()


def test_a_model_in_shards(tmp_path):
    """Each worker saves its part of weights, gradients and what the optimizer keeps; the training is what it was."""
    run_both(SHARDED, tmp_path / "run", "bare")
    (tmp_path / "run.meet").unlink()
    run_both(SHARDED, tmp_path / "run", "hooked")
    trial = tornasole.pytorch.create_trial(str(tmp_path / "run"))
    assert trial.workers() == ["worker_0", "worker_1"]
    names = [f"FSDPSequential_{layer}.{kind}" for layer in (0, 2) for kind in ("weight", "bias")]
    for prefix in ("", "gradient/", "optimizer_gradient/", "optimizer_state/exp_avg/"):
        assert {prefix + name for name in names} <= set(trial.tensor_names())
    for rank, worker in enumerate(trial.workers()):
        bare, hooked = ((tmp_path / f"run.{which}.{rank}").read_text() for which in ("bare", "hooked"))
        assert bare == hooked
        _, gradient = ast.literal_eval(hooked)
        saved = trial.tensor("gradient/" + names[0]).value(2, worker=worker)
        assert saved.shape == (3, 4) and saved.flatten().tolist() == gradient
    weight = trial.model_description("worker_0")["parameters"][names[0]]
    assert weight["shape"] == [6, 4] and weight["placement"] == "Shard(dim=0)"
