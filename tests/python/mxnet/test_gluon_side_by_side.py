"""The same script under smdebug and under tornasole gives the same trial."""

import os
import subprocess
import sys

import pytest
from trial_dump import TrialDump

import tornasole

PROGRAM = """
import logging, os, sys
logging.disable(logging.CRITICAL)
import mxnet, numpy
from mxnet import autograd, gluon
which, directory = sys.argv[1:]
if which == "smdebug":
    import smdebug.mxnet as smd
else:
    import tornasole.mxnet as smd

def run(name, own=None, **options):
    smd.del_hook()
    mxnet.random.seed(0)
    numpy.random.seed(0)
    net = gluon.nn.HybridSequential(prefix="net_")
    with net.name_scope():
        net.add(gluon.nn.Conv2D(3, 2, activation="relu"), gluon.nn.MaxPool2D(2), gluon.nn.Flatten(),
                gluon.nn.Dense(4, activation="relu"), gluon.nn.Dense(2))
    net.initialize(mxnet.init.Xavier())
    loss = gluon.loss.SoftmaxCrossEntropyLoss(prefix="softmaxcrossentropyloss0_")
    hook = smd.Hook(out_dir=os.path.join(directory, name), **options)
    if own:
        hook.get_collection(own).add_block_tensors(net[3], inputs=True, outputs=True)
    hook.register_block(net)
    hook.register_block(loss)
    trainer = gluon.Trainer(net.collect_params(), "sgd", {"learning_rate": 0.1})
    inputs, labels = mxnet.nd.random.normal(shape=(4, 1, 5, 5)), mxnet.nd.array([0, 1, 1, 0])
    for epoch in range(2):
        hook.set_mode(smd.modes.TRAIN)
        for _ in range(3):
            with autograd.record():
                value = loss(net(inputs), labels)
            value.backward()
            trainer.step(4)
        hook.save_scalar("epoch", float(epoch))
        hook.set_mode(smd.modes.EVAL)
        loss(net(inputs), labels)
        loss(net(inputs), labels)
    hook.close()

run("default", save_config=smd.SaveConfig(save_interval=1))
run("all", save_config=smd.SaveConfig(save_interval=2), save_all=True)
run("own", save_config=smd.SaveConfig(save_interval=2), include_collections=["own", "biases"], own="own")
run("reduced", save_config=smd.SaveConfig(save_interval=2), include_collections=["weights", "gradients"],
    reduction_config=smd.ReductionConfig(reductions=["min", "max", "mean"], abs_reductions=["max"], norms=["l1", "l2"]))
run("modes", include_collections=["weights"], save_config=smd.SaveConfig({
    smd.modes.TRAIN: smd.SaveConfigMode(save_interval=4),
    smd.modes.EVAL: smd.SaveConfigMode(save_steps=[1]),
    smd.modes.PREDICT: smd.SaveConfigMode(save_interval=1),
    smd.modes.GLOBAL: smd.SaveConfigMode(save_interval=1)}))
"""
RUNS = ["default", "all", "own", "reduced", "modes"]


@pytest.fixture(scope="module")
def trials(tmp_path_factory):
    directory = tmp_path_factory.mktemp("side_by_side")
    package = os.path.dirname(os.path.dirname(os.path.abspath(tornasole.__file__)))
    for which in ("smdebug", "tornasole"):
        environment = {**os.environ, "SMDEBUG_LOG_LEVEL": "off", "PYTHONPATH": package if which == "tornasole" else ""}
        command = [sys.executable, "-W", "ignore", "-c", PROGRAM, which, str(directory / which)]
        ran = subprocess.run(command, env=environment, capture_output=True, text=True, timeout=600, check=False)
        assert ran.returncode == 0, ran.stderr
    return {(which, run): TrialDump(directory / which / run) for which in ("smdebug", "tornasole") for run in RUNS}


def is_of_parameters(name):
    return name.endswith(("weight", "bias"))


@pytest.mark.parametrize("run", RUNS)
def test_the_same_trial(run, trials):
    theirs, ours = trials["smdebug", run], trials["tornasole", run]
    assert ours.names == theirs.names
    assert ours.modes() == theirs.modes()
    assert ours.steps == theirs.steps
    their_entries, our_entries = theirs.entries(), ours.entries()
    # A step that a change of mode ends loses its parameters and gradients with them, or has them under the next mode.
    assert their_entries.keys() <= our_entries.keys()
    assert all(is_of_parameters(name) for name, *_ in our_entries.keys() - their_entries.keys())
    for key, entry in their_entries.items():
        same = our_entries[key]
        assert same["mode_step"] == entry["mode_step"], key
        if entry["value"]["status"] == "ok":
            for field in ("dtype", "shape", "sha256"):
                assert same["value"][field] == entry["value"][field], (key, field)
        assert same["reductions"].keys() >= entry["reductions"].keys(), key
        for reduction, value in entry["reductions"].items():
            assert same["reductions"][reduction]["data"] == pytest.approx(value["data"], rel=1e-5, abs=1e-7), key
