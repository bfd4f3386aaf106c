"""Faults of the disk and the death of the process: the training goes on, and what was written can be read."""

import os
import signal
import subprocess
import sys

import pytest
from trial_dump import TrialDump, program

import tornasole

TRAINING = """
import os, resource, signal, sys, torch
from torch import nn
torch.manual_seed(1)
torch.set_num_threads(1)
net = nn.Sequential(nn.Linear(64, 64), nn.ReLU(), nn.Linear(64, 2))
loss, optimizer = nn.CrossEntropyLoss(), torch.optim.SGD(net.parameters(), lr=0.1)
fault, directory = sys.argv[1:]
if fault != "bare":
    import tornasole.pytorch as smd
    if fault == "full":
        signal.signal(signal.SIGXFSZ, signal.SIG_IGN)
        resource.setrlimit(resource.RLIMIT_FSIZE, (3000, 3000))
    hook = smd.Hook(out_dir=directory, save_config=smd.SaveConfig(save_interval=1), save_all=True)
    if fault == "gone":
        open(directory, "w").close()  # a file in the place of the directory
    hook.register_module(net)
    hook.register_loss(loss)
for step in range(12):
    optimizer.zero_grad()
    loss(net(torch.full((8, 64), 0.1 * step)), torch.arange(8) % 2).backward()
    optimizer.step()
    if fault == "killed" and step == 8:
        import time
        last = time.monotonic() + 60
        while hook.report()["committed_steps"] < 8 and time.monotonic() < last:
            time.sleep(0.01)
        os.kill(os.getpid(), signal.SIGKILL)
print(sum(p.double().sum().item() for p in net.parameters()))
if fault != "bare":
    hook.close()
    print("report", hook.report()["due_steps"], hook.report()["committed_steps"])
"""


def train(fault, directory):
    package = os.path.dirname(os.path.dirname(os.path.abspath(tornasole.__file__)))
    environment = {**os.environ, "PYTHONPATH": package, "TORNASOLE_LOG_LEVEL": "off"}
    return subprocess.run(
        [sys.executable, "-c", TRAINING, fault, str(directory)],
        env=environment,
        capture_output=True,
        text=True,
        timeout=300,
        check=False,
    )


@pytest.fixture(scope="module")
def bare(tmp_path_factory):
    return train("bare", tmp_path_factory.mktemp("bare")).stdout


FAULTS = [("full", "a disk that takes no more"), ("gone", "no directory can be made")]


@pytest.mark.parametrize("fault, what", FAULTS, ids=[row[1] for row in FAULTS])
def test_training_goes_on(fault, what, bare, tmp_path):
    ran = train(fault, tmp_path / "run")
    assert ran.returncode == 0, ran.stderr
    assert ran.stdout.splitlines()[0] + "\n" == bare, "with the same weights"
    due, committed = map(int, ran.stdout.splitlines()[1].split()[1:])
    assert due == 12 and committed < 12, "and what was lost is counted"


def test_a_killed_run_can_be_opened(tmp_path):
    ran = train("killed", tmp_path / "run")
    assert ran.returncode == -signal.SIGKILL
    trial = TrialDump(tmp_path / "run")
    assert trial.steps["GLOBAL"] == list(range(8)), "all but the step that was open"
    checked = subprocess.run([program(), "verify", str(tmp_path / "run")], capture_output=True, text=True, check=False)
    assert checked.returncode == 0, checked.stdout


def test_a_new_hook_ends_a_shut_down(tmp_path):
    import torch
    import tornasole.pytorch as smd
    from tornasole.core.guard import guard

    smd.Hook(out_dir=str(tmp_path / "first")).register_module(None)
    assert guard.disable_smdebug, "with the default configuration a mistake switches capture off"
    smd.del_hook()
    hook = smd.Hook(out_dir=str(tmp_path / "second"), save_config=smd.SaveConfig(save_interval=1), save_all=True)
    assert hook.out_dir == str(tmp_path / "second") and "weights" in hook.get_collections()
    net = torch.nn.Linear(2, 1)
    hook.register_module(net)
    net(torch.ones(1, 2))
    hook.close()
    assert smd.create_trial(str(tmp_path / "second")).steps() == [0]
