"""What is captured of a training with Gluon: names, values, moments; and that the training is the same."""

import copy
import json

import mxnet
import numpy
import pytest
from gluon_trainings import Net, Training
from mxnet import gluon
from trial_dump import TrialDump

import tornasole.mxnet as ts
from tornasole.trials import create_trial

EVERY = ts.SaveConfig(save_interval=1)
WEIGHTS = {"net_dense0_weight", "net_dense1_weight", "net_dense2_weight"}
BIASES = {"net_dense0_bias", "net_dense1_bias", "net_dense2_bias"}
GRADIENTS = {f"gradient/{name}" for name in WEIGHTS | BIASES}
LOSS = "softmaxcrossentropyloss0_output_0"


@pytest.fixture
def logged(caplog):
    """What the package logs."""
    logger = ts.Hook.logger.fget(None)
    logger.addHandler(caplog.handler)
    yield caplog
    logger.removeHandler(caplog.handler)


def hook_for(tmp_path, **options):
    return ts.Hook(out_dir=str(tmp_path / "run"), **{"save_config": EVERY, **options})


COLLECTIONS = [
    ("losses are always saved", {}, {LOSS}),
    ("weights", {"include_collections": ["weights"]}, {LOSS} | WEIGHTS),
    ("biases", {"include_collections": ["biases"]}, {LOSS} | BIASES),
    ("gradients", {"include_collections": ["gradients"]}, {LOSS} | GRADIENTS),
    (
        "a block that is called twice has numbers that go on",
        {"include_regex": ["dense1_(in|out)put"]},
        {LOSS} | {f"net_dense1_{side}_{i}" for side in ("input", "output") for i in (0, 1)},
    ),
    ("the root's own output", {"include_regex": ["^net_output"]}, {LOSS, "net_output_0"}),
]


@pytest.mark.parametrize("what, options, names", COLLECTIONS, ids=[row[0] for row in COLLECTIONS])
def test_collections(what, options, names, tmp_path):
    hook = hook_for(tmp_path, **options)
    Training(hook).run(2)
    hook.close()
    trial = TrialDump(tmp_path / "run")
    assert {name.replace("net__", "net_") for name in trial.names} == names
    assert trial.steps == {"GLOBAL": [0, 1]}
    assert hook.report()["errors"] == []


def test_values_that_nobody_wants_are_not_fetched(tmp_path, monkeypatch):
    hook = hook_for(tmp_path)
    training = Training(hook)
    fetched = []
    fetch = mxnet.nd.NDArray.asnumpy
    monkeypatch.setattr(mxnet.nd.NDArray, "asnumpy", lambda array: fetched.append(array.shape) or fetch(array))
    training.run(3)
    hook.close()
    assert fetched == [(6,)] * 3  # the loss


def test_save_all(tmp_path):
    hook = hook_for(tmp_path, save_all=True)
    Training(hook).run(1)
    hook.close()
    names = set(TrialDump(tmp_path / "run").names)
    assert WEIGHTS | BIASES | GRADIENTS | {LOSS, "net_input_0", "net_output_0", "net_dense0_relu_output_0"} <= names
    assert {"softmaxcrossentropyloss0_input_0", "softmaxcrossentropyloss0_input_1"} <= names


def test_values_and_when_they_are_read(tmp_path):
    hook = hook_for(tmp_path, include_collections=["weights", "gradients"])
    training = Training(hook)
    losses, after = [], []
    for _ in range(3):
        losses.append(training.step().asnumpy())
        after.append(training.weights())
    gradient = training.net.last.weight.grad().asnumpy()
    hook.close()
    trial = create_trial(str(tmp_path / "run"))
    for step in range(3):
        numpy.testing.assert_array_equal(trial.tensor(LOSS).value(step), losses[step])
        for name in WEIGHTS:
            saved = trial.tensor(name).value(step)
            numpy.testing.assert_array_equal(saved, after[step][name], "parameters are those after the update")
    numpy.testing.assert_array_equal(trial.tensor("gradient/net_dense2_weight").value(2), gradient)


def test_modes_and_what_is_saved_of_a_step_that_a_change_of_mode_ends(tmp_path):
    schedule = {ts.modes.TRAIN: ts.SaveConfigMode(save_interval=2), ts.modes.EVAL: ts.SaveConfigMode(save_interval=1)}
    hook = hook_for(tmp_path, save_config=schedule, include_collections=["weights", "gradients"])
    training = Training(hook)
    hook.set_mode(ts.modes.TRAIN)
    training.run(3)
    hook.set_mode(ts.modes.EVAL)
    training.evaluate()
    hook.close()
    trial = TrialDump(tmp_path / "run")
    assert trial.modes() == [(0, "TRAIN", 0), (2, "TRAIN", 2), (3, "EVAL", 0)]
    assert trial.names_at(2) == WEIGHTS | GRADIENTS | {LOSS}
    assert trial.names_at(3) == WEIGHTS | {LOSS}, "an evaluation has no gradients"


def test_reductions(tmp_path):
    reductions = ts.ReductionConfig(reductions=["mean", "std"], norms=["l2"])
    hook = hook_for(tmp_path, include_collections=["weights"], reduction_config=reductions)
    training = Training(hook).run(1)
    hook.close()
    entry = TrialDump(tmp_path / "run").entries()["net_dense0_weight", 0, "worker_0"]
    weight = training.weights()["net_dense0_weight"]
    assert entry["reductions"]["l2"]["data"][0] == pytest.approx(float(numpy.linalg.norm(weight)), rel=1e-6)
    assert entry["reductions"]["std"]["data"][0] == pytest.approx(float(weight.std()), rel=1e-5)


KEYWORDS = [
    ("outputs without being asked for", {}, {"output"}),
    ("inputs and outputs", {"inputs": True, "outputs": True}, {"input", "output"}),
    ("inputs alone", {"inputs": True, "outputs": False}, {"input"}),
    ("the older keywords", {"input": True, "output": False}, {"input"}),
]


@pytest.mark.parametrize("what, keywords, sides", KEYWORDS, ids=[row[0] for row in KEYWORDS])
def test_tensors_of_a_block(what, keywords, sides, tmp_path):
    hook = hook_for(tmp_path, include_collections=["mine"])
    net = Net(prefix="net_")
    hook.get_collection("mine").add_block_tensors(net.last, **keywords)
    Training(hook, net).run(1)
    hook.close()
    assert set(TrialDump(tmp_path / "run").collection("mine")) == {f"net_dense2_{side}_0" for side in sides}


def test_a_parameter_can_be_added_to_a_collection(tmp_path):
    hook = hook_for(tmp_path, include_collections=["mine"])
    training = Training(hook)
    hook.get_collection("mine").add(training.net.last.bias)
    training.run(1)
    hook.close()
    assert TrialDump(tmp_path / "run").collection("mine") == ["net_dense2_bias"]


def test_a_hybridized_block_shows_its_own_input_and_output_and_its_parameters(tmp_path):
    net = gluon.nn.HybridSequential(prefix="net_")
    with net.name_scope():
        net.add(gluon.nn.Dense(4, activation="relu"), gluon.nn.Dense(2))
    net.hybridize()
    hook = hook_for(tmp_path, save_all=True)
    Training(hook, net).run(2)
    hook.close()
    names = TrialDump(tmp_path / "run").names_at(1)
    assert {"net_input_0", "net_output_0", "net_dense0_weight", "gradient/net_dense1_bias", LOSS} <= names
    assert "net_dense0_output_0" not in names
    assert hook.report()["errors"] == []


def test_custom_tensors_and_scalars(tmp_path):
    hook = hook_for(tmp_path)
    training = Training(hook)
    hook.save_tensor("first", mxnet.nd.ones((2, 2)), collections_to_write="mine")
    training.run(1)
    hook.save_tensor("second", numpy.arange(3), collections_to_write="mine")
    hook.save_scalar("accuracy", 0.5)
    training.run(1)
    hook.save_tensor("third", [1.0, 2.0], collections_to_write="mine")
    hook.close()
    trial = TrialDump(tmp_path / "run")
    assert {name for name in ("first", "second", "third") if name in trial.names_at(0)} == {"first"}
    assert {"second", "third"} <= trial.names_at(1), "a value is saved in the step that begins next, or the last"
    assert trial.value("scalar/accuracy", 0) == [0.5]
    assert trial.collection("mine") == ["first", "second", "third"]


def test_eleven_losses(tmp_path):
    hook = hook_for(tmp_path)
    training = Training(hook)
    losses = [gluon.loss.L2Loss(prefix=f"l2loss{index}_") for index in range(12)]
    for loss in losses:
        hook.register_block(loss)
    outputs = training.net(training.inputs)
    for loss in losses:
        loss(outputs, outputs)
    hook.close()
    assert set(TrialDump(tmp_path / "run").collection("losses")) == {f"l2loss{index}_output_0" for index in range(12)}


def test_what_cannot_be_registered_is_told_of(tmp_path, logged):
    hook = hook_for(tmp_path)
    training = Training(hook)
    hook.register_hook(training.net)
    assert "registered already" in logged.text
    hook.register_block("no block")
    assert "takes a block of Gluon, not a value of type str" in logged.text


def test_a_parameter_without_a_value_is_left_out(tmp_path):
    class WithIdle(Net):
        def __init__(self, **options):
            super().__init__(**options)
            self.idle = gluon.nn.Dense(3)  # never called: its shape stays unknown

        def forward(self, x):
            return super().forward(x)

    hook = hook_for(tmp_path, include_collections=["weights"])
    training = Training(hook, WithIdle(prefix="net_"))
    with mxnet.autograd.record():
        loss = training.loss(training.net(training.inputs), training.labels)
    loss.backward()
    hook.close()
    names = TrialDump(tmp_path / "run").names
    assert WEIGHTS <= set(names) and len([name for name in names if "weight" in name]) == 3


def test_the_model_in_words(tmp_path):
    hook = hook_for(tmp_path)
    Training(hook).run(1)
    hook.close()
    model = json.loads((tmp_path / "run" / "tornasole" / "worker_0_model.json").read_text())
    assert model["modules"]["net_dense0"]["class"] == "Dense" and model["inputs"] == ["net_input_0"]
    assert model["parameters"]["net_dense2_weight"]["shape"] == [2, 4]
    assert model["losses"][0]["labels"] == ["softmaxcrossentropyloss0_input_1"]


HOOKS = [
    ("nothing due but the first", {"save_config": ts.SaveConfig(save_interval=100)}),
    ("everything in every step", {"save_all": True}),
    ("statistics", {"save_all": True, "reduction_config": ts.ReductionConfig(norms=["l2"])}),
]


@pytest.mark.parametrize("what, options", HOOKS, ids=[row[0] for row in HOOKS])
def test_the_training_is_the_same_bit_for_bit(what, options, tmp_path):
    bare = Training().run(8)
    draws = mxnet.nd.random.uniform(shape=(3,)).asnumpy()
    hook = hook_for(tmp_path, **options)
    captured = Training(hook).run(8)
    numpy.testing.assert_array_equal(mxnet.nd.random.uniform(shape=(3,)).asnumpy(), draws)
    hook.close()
    for name, weight in bare.weights().items():
        numpy.testing.assert_array_equal(captured.weights()[name], weight)


def test_nothing_is_left_behind_and_nothing_is_attached_when_nothing_is_due(tmp_path):
    hook = hook_for(tmp_path, save_config=ts.SaveConfig(save_interval=3), save_all=True)
    training = Training(hook)
    blocks = [training.net, training.loss, *training.net._children.values()]
    attached = []
    for _ in range(3):
        training.step()
        attached.append([len(block._forward_hooks) for block in blocks])
    assert attached == [[1] * 5, [0] * 5, [0] * 5]
    hook.close()
    assert not any(block._forward_hooks or block._forward_pre_hooks for block in blocks)
    training.run(2)
    assert TrialDump(tmp_path / "run").steps["GLOBAL"] == [0]


def test_a_lost_directory_and_a_copy_harm_nothing(tmp_path):
    hook = hook_for(tmp_path, save_all=True)
    (tmp_path / "run").write_text("a file in the place of the directory")
    captured = Training(hook).run(8)
    hook.close()
    bare = Training(copy.copy(hook)).run(8)
    for name, weight in bare.weights().items():
        numpy.testing.assert_array_equal(captured.weights()[name], weight)
    assert hook.report()["committed_steps"] == 0


def test_hooks_from_files_and_older_names(tmp_path, monkeypatch):
    config = tmp_path / "config.json"
    content = {"LocalPath": str(tmp_path / "a"), "CollectionConfigurations": [{"CollectionName": "gradients"}]}
    config.write_text(json.dumps(content))
    monkeypatch.setenv("SMDEBUG_CONFIG_FILE_PATH", str(config))
    hook = ts.get_hook()
    assert isinstance(hook, ts.Hook) and set(hook.include_collections) == {"losses", "gradients"}
    older = ts.TornasoleHook(str(tmp_path / "b"))
    assert set(older.include_collections) == {"losses", "weights", "gradients", "biases", "default"}


@pytest.mark.parametrize("is_hybrid", [True, False])
def test_the_graph_of_a_hybridized_block_goes_to_tensorboard(is_hybrid, tmp_path):
    net = gluon.nn.HybridSequential(prefix="net_")
    net.add(gluon.nn.Dense(3, activation="relu", prefix="a_"), gluon.nn.Dense(2, prefix="b_"))
    net.initialize()
    if is_hybrid:
        net.hybridize()
    hook = hook_for(tmp_path, export_tensorboard=True, include_collections=["weights"])
    hook.register_block(net)
    for _ in range(3):
        net(mxnet.nd.ones((4, 5)))
    hook.close()
    content = b"".join(path.read_bytes() for path in (tmp_path / "run" / "tensorboard").rglob("*tfevents*"))
    assert content.count(b"FullyConnected") == (2 if is_hybrid else 0), "once: other blocks keep no graph"
    assert (b"a_relu" in content) is is_hybrid
