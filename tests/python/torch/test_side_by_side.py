"""The same script under smdebug and under tornasole gives the same trial."""

import os
import subprocess

import pytest
from trial_dump import TrialDump

import tornasole

PROGRAM = """
import os, sys, logging
logging.disable(logging.CRITICAL)
import torch
from torch import nn
import torch.nn.functional as F
torch.set_num_threads(1)
which, directory = sys.argv[1:]
if which == "smdebug":
    import smdebug.pytorch as smd
else:
    import tornasole.pytorch as smd

class Net(nn.Module):
    def __init__(self):
        super().__init__()
        self.conv, self.pool = nn.Conv2d(1, 3, 2), nn.MaxPool2d(2)
        self.block = nn.Sequential(nn.Linear(12, 8), nn.ReLU(), nn.Linear(8, 8))
        self.cell, self.fc = nn.Linear(8, 8), nn.Linear(8, 3)
    def forward(self, x):
        x = self.block(self.pool(torch.relu(self.conv(x))).flatten(1))
        return self.fc(self.cell(self.cell(x)))

def run(name, **options):
    torch.manual_seed(0)
    smd.del_hook()
    net, loss = Net(), nn.CrossEntropyLoss()
    hook = smd.Hook(out_dir=os.path.join(directory, name), **options)
    hook.register_module(net)
    hook.register_loss(loss)
    if "mine" in options.get("include_collections", []):
        hook.get_collection("mine").add_module_tensors(net.cell, inputs=True, outputs=True)
    optimizer = torch.optim.SGD(net.parameters(), lr=0.1)
    inputs, labels = torch.randn(4, 1, 5, 5), torch.tensor([0, 1, 2, 0])
    for epoch in range(2):
        hook.set_mode(smd.modes.TRAIN)
        net.train()
        for _ in range(3):
            optimizer.zero_grad()
            loss(net(inputs), labels).backward()
            optimizer.step()
        hook.set_mode(smd.modes.EVAL)
        net.eval()
        with torch.no_grad():
            hook.record_tensor_value("my_loss", F.cross_entropy(net(inputs), labels))
    hook.close()

every = smd.SaveConfig(save_interval=1)
run("default", save_config=every)
run("all", save_config=smd.SaveConfig(save_interval=2), save_all=True)
run("mine", save_config=every, include_collections=["mine", "weights", "gradients"], include_regex=["block.1"])
run("modes", include_collections=["biases"], save_config=smd.SaveConfig({
    smd.modes.TRAIN: smd.SaveConfigMode(save_interval=3),
    smd.modes.EVAL: smd.SaveConfigMode(save_steps=[1]),
    smd.modes.PREDICT: smd.SaveConfigMode(save_interval=1),
    smd.modes.GLOBAL: smd.SaveConfigMode(save_interval=1)}))
run("reduced", save_config=every, include_collections=["gradients"],
    reduction_config=smd.ReductionConfig(
        reductions=["min", "max", "mean"], abs_reductions=["mean"], norms=["l1", "l2"]))
"""
RUNS = ["default", "all", "mine", "modes", "reduced"]
REFERENCE = os.path.join(os.path.dirname(__file__), "..", "..", "..", ".venvs", "bench", "bin", "python")


@pytest.fixture(scope="module")
def trials(tmp_path_factory):
    if not os.path.exists(REFERENCE):
        pytest.skip("the reference is not installed here")
    directory = tmp_path_factory.mktemp("side_by_side")
    package = os.path.dirname(os.path.dirname(os.path.abspath(tornasole.__file__)))
    for which in ("smdebug", "tornasole"):
        # Both under the same PyTorch. The reference must not see the alias of the package.
        environment = {**os.environ, "SMDEBUG_LOG_LEVEL": "off", "PYTHONPATH": package if which == "tornasole" else ""}
        ran = subprocess.run(
            [REFERENCE, "-c", PROGRAM, which, str(directory / which)],
            env=environment,
            capture_output=True,
            text=True,
            timeout=600,
            check=False,
        )
        assert ran.returncode == 0, ran.stderr
    return {
        (which, run): TrialDump(directory / which / run) for which in ("smdebug", "tornasole") for run in RUNS
    }


@pytest.mark.parametrize("run", RUNS)
def test_the_same_trial(run, trials):
    theirs, ours = trials["smdebug", run], trials["tornasole", run]
    assert ours.names == theirs.names
    assert ours.modes() == theirs.modes()
    assert ours.steps == theirs.steps
    assert ours.workers == theirs.workers
    for name, collection in theirs.document["collections"].items():
        # The reference lists what it saw up to its first saved step.
        named = set(ours.document["collections"][name]["tensor_names"])
        assert named >= set(collection["tensor_names"]), name
        assert named - set(collection["tensor_names"]) <= {"my_loss_output_0"}, name
    their_entries, our_entries = theirs.entries(), ours.entries()
    assert our_entries.keys() == their_entries.keys()
    for key, entry in their_entries.items():
        same = our_entries[key]
        assert same["mode_step"] == entry["mode_step"], key
        if entry["value"]["status"] == "ok":
            for field in ("dtype", "shape", "sha256"):
                assert same["value"][field] == entry["value"][field], (key, field)
        assert same["reductions"].keys() == entry["reductions"].keys(), key
        for reduction, value in entry["reductions"].items():
            assert same["reductions"][reduction]["data"] == pytest.approx(value["data"], rel=1e-5, abs=1e-7), key
