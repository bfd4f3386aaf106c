"""Trials as TensorBoard's files: what `tornasole export` writes, as TensorBoard itself reads it."""

import json
import math
import pathlib
import shutil
import subprocess
import sys
import time

import numpy as np
import pytest
from boards import fetch, histograms_of, runs_below, scalars_of, server, wait_for

import tornasole.pytorch as ts

GOLDEN = pathlib.Path(__file__).resolve().parents[2] / "golden" / "smdebug"


def tornasole(*arguments, code=0):
    done = subprocess.run([sys.executable, "-m", "tornasole", *map(str, arguments)], capture_output=True, text=True)
    assert done.returncode == code, done.stdout + done.stderr
    return done.stdout


@pytest.fixture
def exported(tmp_path):
    def export(name, *more):
        shutil.copytree(GOLDEN / name / "trial", tmp_path / "trial")
        tornasole("export", tmp_path / "trial", "--format", "tensorboard", "-o", tmp_path / "boards", *more)
        return tmp_path / "boards"

    return export


def expected_values(name):
    """(tensor, global step, mode) -> flattened values, of what smdebug read."""
    expected = json.loads((GOLDEN / name / "expected.json").read_text())
    for tensor in expected["tensors"]:
        for entry in tensor["entries"]:
            yield tensor["name"], entry


def test_a_trial_of_smdebug_is_shown_with_its_values(exported):
    boards = exported("pytorch_mlp")
    scalars, histograms = scalars_of(boards), histograms_of(boards)
    compared = 0
    for name, entry in expected_values("pytorch_mlp"):
        value = entry["value"]
        if value.get("status") != "ok" or value["dtype"] == "string":
            continue
        tag = (entry["mode"], name.replace(":", "_"))
        if value["size"] == 1:
            points = dict(scalars[tag])
            assert points[entry["global_step"]] == pytest.approx(value["data"][0], rel=1e-6)
        elif "data" in value:
            numbers = np.array(value["data"], dtype=np.float64)
            shown = histograms[tag][entry["global_step"]]
            assert (shown.num, shown.min, shown.max) == (numbers.size, numbers.min(), numbers.max())
            assert math.isclose(shown.sum, numbers.sum(), rel_tol=1e-9, abs_tol=1e-9)
        compared += 1
    assert compared > 10


def test_reductions_are_curves_of_their_own(exported):
    boards = exported("pytorch_reductions")
    scalars = scalars_of(boards)
    compared = 0
    for name, entry in expected_values("pytorch_reductions"):
        for reduction, value in entry.get("reductions", {}).items():
            points = dict(scalars[entry["mode"], f"{name}/{reduction}"])
            assert points[entry["global_step"]] == pytest.approx(value["data"][0], rel=1e-6)
            compared += 1
    assert compared > 10


@pytest.mark.parametrize("fast", [True, False], ids=["data server", "python loader"])
def test_boosted_trees_are_tables_and_hyperparameters(exported, fast):
    boards = exported("xgboost_full", "--images", "--findings")
    (run,) = runs_below(boards)
    with server(boards, fast=fast) as address:
        wait_for(address, "data/plugin/scalars/tags", 5)
        texts = wait_for(address, "data/plugin/text/tags", 1)
        assert "trees" in texts[run] and "check/summary" in texts[run]
        trees = fetch(address, "data/plugin/text/text", run=run, tag="trees")
        assert "<table>" in trees[0]["text"] and "Leaf" in trees[0]["text"]
        assert set(fetch(address, "data/plugin/images/tags")[run]) >= {"full_shap/f0/image"}
        request = json.dumps({"experimentName": "", "allowedStatuses": ["STATUS_UNKNOWN", "STATUS_SUCCESS"],
                              "colParams": [], "startIndex": 0, "sliceSize": 10})
        groups = fetch(address, "data/plugin/hparams/session_groups", request=request)["sessionGroups"]
        (group,) = groups
        assert group["hparams"]["objective"] == "binary:logistic"
        assert group["hparams"]["max_depth"] == 2


def test_a_run_is_followed_while_it_is_written(tmp_path):
    trial, boards = tmp_path / "trial", tmp_path / "boards"
    command = [sys.executable, "-m", "tornasole", "export", trial, "--format", "tensorboard", "-o", boards, "--follow",
               "--poll", "0.1", "--json"]
    follower = subprocess.Popen([*map(str, command)], stdout=subprocess.PIPE, text=True)
    hook = ts.Hook(trial, save_config=ts.SaveConfig(save_interval=1))
    hook.set_mode(ts.modes.TRAIN)
    try:
        import torch

        net = torch.nn.Linear(2, 1)
        hook.register_module(net)
        for number in range(4):
            hook.save_scalar("live", float(number))
            net(torch.randn(3, 2)).sum().backward()
            end = time.monotonic() + 30
            while number > 1 and len(scalars_of(boards).get(("TRAIN", "scalar/live"), [])) < number:
                assert time.monotonic() < end, "the step was not exported"
                time.sleep(0.1)
        hook.close()
        report = json.loads(follower.communicate(timeout=60)[0])
    finally:
        follower.kill()
    assert report["files"] > 1, "what came later went into files of its own"
    # The first two were saved in one step, where the later one counts.
    assert [value for _, value in scalars_of(boards)["TRAIN", "scalar/live"]] == [1, 2, 3]


def test_wrong_use_is_explained(tmp_path, exported):
    boards = exported("pytorch_mlp")
    tornasole("export", tmp_path / "trial", "--format", "tensorboard", "-o", boards, code=2)
    tornasole("export", tmp_path / "trial", "--format", "csv", "-o", tmp_path / "x.csv", "--follow", code=2)
    tornasole("export", tmp_path / "trial", "--format", "csv", "-o", tmp_path / "x.csv", "--images", code=2)
