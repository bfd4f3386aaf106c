"""The rows about MXNet, with a training of it."""

import importlib

import mxnet
import pytest
from acceptance_rows import ELSEWHERE, IN_EACH
from framework_package import check_hook_classes, check_names
from mxnet import autograd, gluon

import tornasole.mxnet as ts

rows = pytest.mark.rows
EVERY = ts.SaveConfig(save_interval=1)


def train(hook, hybrid=False, configure=None):
    """One step of a model whose layers are called a and b."""
    net = gluon.nn.HybridSequential(prefix="net_")
    net.add(gluon.nn.Dense(3, prefix="a_"), gluon.nn.Dense(2, prefix="b_"))
    net.initialize()
    if hybrid:
        net.hybridize()
    if configure is not None:
        configure(net)
    hook.register_hook(net)
    with autograd.record():
        output = net(mxnet.nd.ones((4, 5)))
    output.backward()
    hook.close()


@rows(1, 34, 60, 61)
def test_names_to_import(tmp_path):
    package = importlib.import_module("tornasole.mxnet")
    hook_module = importlib.import_module("tornasole.mxnet.hook")
    assert package.TornasoleHook is hook_module.TornasoleHook
    assert {"SaveConfig", "Collection", "Hook", "ReductionConfig", "modes"} <= set(package.__all__)
    assert isinstance(package.TornasoleHook(str(tmp_path / "run")), package.Hook)


@rows(68)
def test_models_that_are_hybridized_can_be_registered_too(tmp_path, saved):
    train(ts.Hook(out_dir=str(tmp_path / "run"), save_config=EVERY, save_all=True), hybrid=True)
    assert {"a_weight", "gradient/b_bias", "net_output_0"} <= saved()[0]
    assert "a_output_0" not in saved()[0]


@rows(69)
def test_register_hook_attaches_to_a_model(tmp_path, saved):
    train(ts.TornasoleHook(str(tmp_path / "run"), save_config=EVERY))
    assert {"a_weight", "a_bias", "gradient/a_weight"} <= saved()[0]


KEYWORDS = {
    41: ({"input": True, "output": False}, {"a_input_0"}),
    113: ({"inputs": True, "outputs": True}, {"a_input_0", "a_output_0"}),
    169: ({}, {"a_output_0"}),
    320: ({"inputs": True}, {"a_input_0", "a_output_0"}),
}


@rows(*KEYWORDS)
def test_tensors_of_a_block(tmp_path, saved, row):
    keywords, names = KEYWORDS[row]
    hook = ts.Hook(out_dir=str(tmp_path / "run"), save_config=EVERY, include_collections=["Conv2DBlock"])
    train(hook, configure=lambda net: hook.get_collection("Conv2DBlock").add_block_tensors(net[0], **keywords))
    assert saved()[0] == names


@rows(116)
def test_the_package_under_both_names():
    check_names("mxnet", ("Hook",))


@rows(126)
def test_the_classes_of_hooks(tmp_path):
    check_hook_classes("mxnet", ("Hook",), tmp_path)


def test_every_row_of_this_folder_is_shown(request):
    shown = {item.callspec.params["row"] for item in request.session.items if hasattr(item, "callspec")}
    assert shown == {*ELSEWHERE["of_mxnet"], *IN_EACH}
