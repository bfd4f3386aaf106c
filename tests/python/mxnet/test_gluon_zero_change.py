"""Programs of Gluon that know nothing of tornasole, captured by the command that starts them."""

import os
import subprocess
import sys

import pytest
from trial_dump import TrialDump

import tornasole

PACKAGE = os.path.dirname(os.path.dirname(os.path.abspath(tornasole.__file__)))
TRAINING = """
import mxnet, numpy
from mxnet import autograd, gluon
mxnet.random.seed(0)
numpy.random.seed(0)
net = gluon.nn.HybridSequential(prefix="net_")
with net.name_scope():
    net.add(gluon.nn.Dense(4, activation="relu"), gluon.nn.Dense(2))
net.initialize(mxnet.init.Xavier())
if HYBRID:
    net.hybridize()
loss = gluon.loss.SoftmaxCrossEntropyLoss(prefix="softmaxcrossentropyloss0_")
trainer = gluon.Trainer(net.collect_params(), "sgd", {"learning_rate": 0.1})
inputs, labels = mxnet.nd.random.normal(shape=(6, 5)), mxnet.nd.array([0, 1, 0, 1, 1, 0])
for _ in range(4):
    with autograd.record():
        value = loss(net(inputs), labels)
    value.backward()
    trainer.step(6)
loss(net(inputs), labels)
print(sum(p.data().asnumpy().astype(float).sum() for p in net.collect_params().values()))
"""


def run(text, tmp_path, *under):
    script = tmp_path / "train.py"
    script.write_text(text)
    clean = {key: value for key, value in os.environ.items() if not key.startswith(("TORNASOLE_", "SMDEBUG_"))}
    clean.update({"PYTHONPATH": PACKAGE, "TORNASOLE_CLOSE_WAIT_S": "120"})
    command = [sys.executable, "-W", "ignore", *(["-m", "tornasole", "run", *under] if under else []), str(script)]
    ran = subprocess.run(command, cwd=tmp_path, env=clean, capture_output=True, text=True, timeout=300, check=False)
    assert ran.returncode == 0, ran.stderr
    return ran


LOSS = "softmaxcrossentropyloss0_output_0"
PRESETS = [
    ("losses alone", "light", False, {LOSS}),
    ("statistics", "standard", False, {LOSS, "net_dense0_weight", "gradient/net_dense1_bias"}),
    ("a model that is hybridized", "standard", True, {LOSS, "net_dense0_weight", "gradient/net_dense1_bias"}),
    ("everything", "full", False, {LOSS, "net_dense0_output_0", "net_output_0", "gradient/net_dense1_bias"}),
]


@pytest.mark.parametrize("what, preset, hybrid, names", PRESETS, ids=[row[0] for row in PRESETS])
def test_presets(what, preset, hybrid, names, tmp_path):
    text = TRAINING.replace("HYBRID", str(hybrid))
    ran = run(text, tmp_path, "--out", "out", "--preset", preset)
    assert ran.stdout == run(text, tmp_path).stdout, "the same model, and the program's own output alone"
    assert "tornasole: capturing into" in ran.stderr
    trial = TrialDump(tmp_path / "out")
    assert names <= set(trial.names) and (preset != "light" or names == set(trial.names))
    assert trial.modes() == [(0, "TRAIN", 0), (1, "TRAIN", 1), (2, "TRAIN", 2), (3, "TRAIN", 3), (4, "EVAL", 0)]


def test_a_hook_that_the_script_gives_up_is_followed_by_another(tmp_path):
    again = "\nimport tornasole.mxnet as ts\nts.get_hook().close()\nts.del_hook()\n"
    text = TRAINING.replace("HYBRID", "False")
    run(text + again + text, tmp_path, "--out", "out", "--preset", "light")
    assert TrialDump(tmp_path / "out").modes()[-1] == (4, "EVAL", 0)
    assert len(TrialDump(tmp_path / "out-2").modes()) >= 3, "from its second step on"


def test_the_hook_of_the_script_is_used(tmp_path):
    own = f"import tornasole.mxnet as ts\nts.Hook(out_dir={str(tmp_path / 'own')!r}, include_collections=['weights'])\n"
    run(own + TRAINING.replace("HYBRID", "False"), tmp_path, "--out", "out")
    assert not (tmp_path / "out").exists()
    assert {LOSS, "net_dense0_weight"} <= set(TrialDump(tmp_path / "own").names)


FAILS = """
import tornasole.mxnet as smd
from tornasole.core.utils import error_handling_agent

class Failing(smd.Hook):
    @error_handling_agent.catch_smdebug_errors()
    def forward_hook(self, *arguments):
        raise RuntimeError("on purpose")

failing = Failing(out_dir="failing")
TRAINING
assert error_handling_agent.disable_smdebug
error_handling_agent.disable_smdebug, error_handling_agent.hook = False, None
NEXT
TRAINING
assert not error_handling_agent.disable_smdebug and smd.get_hook() is not failing
"""


@pytest.mark.parametrize("what, text, place", [("its own", 'smd.Hook(out_dir="next")', "next"), ("none", "", "out")])
def test_a_hook_that_failed_is_not_the_one_of_the_next_training(what, text, place, tmp_path):
    training = TRAINING.replace("HYBRID", "False")
    program = FAILS.replace("TRAINING", training).replace("NEXT", text)
    run(program, tmp_path, "--out", "out")
    assert LOSS in TrialDump(tmp_path / place).names
