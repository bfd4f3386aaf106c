"""Trainings in processes that multiprocessing forks: the hook is the parent's, the steps are theirs."""

import json
import os
import subprocess
import sys

import pytest

import tornasole
from tornasole.trials import create_trial

# The hook is built and the model registered, nothing is written yet; then children train the shared model.
PROGRAM = """
import os, sys, torch
from torch import nn
import torch.multiprocessing as mp
import tornasole.pytorch as smd
out_dir, how = sys.argv[1:]
torch.set_num_threads(1)
net = nn.Sequential(nn.Linear(4, 3), nn.ReLU(), nn.Linear(3, 1))
net.share_memory()
hook = smd.Hook(out_dir, save_all=True, save_config=smd.SaveConfig(save_steps=[0, 1, 5]), include_workers="all")
hook.register_module(net)
def train(steps):
    optimizer = torch.optim.SGD(net.parameters(), lr=0.1)
    for _ in range(steps):
        optimizer.zero_grad()
        net(torch.ones(2, 4)).square().mean().backward()
        optimizer.step()
def child():
    train(4)
    if how == "fails":
        raise ValueError("a broken batch")
class Items(torch.utils.data.Dataset):
    def __len__(self):
        return 4
    def __getitem__(self, at):
        with torch.no_grad():
            return net(torch.full((4,), float(at)))
if how == "loads":
    batches = torch.utils.data.DataLoader(Items(), num_workers=2, multiprocessing_context="fork")
    assert len(list(batches)) == 4 and not os.path.exists(out_dir)
    train(2)
    hook.close()
elif how == "idles":
    idle = mp.get_context("fork").Process(target=os.getpid)
    idle.start(); idle.join()
    assert idle.exitcode == 0 and not os.path.exists(out_dir)
    train(2)
else:
    if how == "follows":
        train(1)
    children = [mp.get_context("fork").Process(target=child) for _ in range(2)]
    for process in children: process.start()
    for process in children: process.join(60)
    print([process.exitcode for process in children])
    if how == "follows":
        train(1)
"""


@pytest.fixture
def run(tmp_path):
    def train(how):
        package = os.path.dirname(os.path.dirname(os.path.abspath(tornasole.__file__)))
        done = subprocess.run(
            [sys.executable, "-c", PROGRAM, str(tmp_path / "run"), how],
            env={**os.environ, "PYTHONPATH": package},
            capture_output=True,
            text=True,
            timeout=200,
            check=False,
        )
        assert done.returncode == 0, done.stderr[-3000:]
        trial = create_trial(str(tmp_path / "run"), timeout=20)
        assert trial.num_workers == 1
        return done.stdout, trial

    return train


def exit_codes(output):
    return json.loads([line for line in output.splitlines() if line.startswith("[") and line.endswith("]")][-1])


def test_of_children_that_train_one_writes(run):
    output, trial = run("trains")
    assert exit_codes(output) == [0, 0]
    assert trial.steps() == [0, 1] and trial.loaded_all_steps
    names = trial.tensor_names()
    assert {"Sequential_0.weight", "gradient/Sequential_0.weight", "1_output_0"} <= set(names)
    for name in names:
        assert trial.tensor(name).steps() == [0, 1]
        assert trial.tensor(name).value(1) is not None


def test_a_child_that_fails_says_so_in_its_run(run):
    output, trial = run("fails")
    assert exit_codes(output) == [1, 1]
    assert trial.steps() == [0, 1]
    assert trial.run_status[0] == "failed" and "a broken batch" in trial.run_status[1]


def test_what_the_parent_has_begun_stays_the_parents(run):
    output, trial = run("follows")
    assert exit_codes(output) == [0, 0]
    assert trial.steps() == [0, 1] and trial.loaded_all_steps


@pytest.mark.parametrize("how", ["loads", "idles"])
def test_children_that_do_not_train_leave_the_run_to_the_parent(run, how):
    assert run(how)[1].steps() == [0, 1]
