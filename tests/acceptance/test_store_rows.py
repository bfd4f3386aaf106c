"""Rows about runs on S3, written to a server on loopback, and about steps that some workers never end."""

import numpy
import pytest

pytest.importorskip("torch")
pytest.importorskip("tornasole.pytorch")

import tornasole.pytorch as ts  # noqa: E402
from tornasole.core.hook import BaseHook  # noqa: E402
from tornasole.trials import create_trial  # noqa: E402
from training import GRADIENTS, LOSS, WEIGHTS, train  # noqa: E402

rows = pytest.mark.rows


@rows(3)
def test_a_bucket_and_a_prefix_are_a_place_to_write_to(server):
    hook = train(ts.Hook(out_dir="s3://bucket/some/prefix", save_config=ts.SaveConfig(save_interval=2)), 3)
    assert hook.out_dir == "s3://bucket/some/prefix"
    trial = create_trial("s3://bucket/some/prefix")
    assert trial.steps() == [0, 2] and set(trial.tensor_names()) == LOSS


@rows(63)
def test_the_older_hook_takes_the_same_place(server):
    hook = ts.TornasoleHook(out_dir="s3://bucket/older", save_config=ts.SaveConfig(save_interval=3))
    assert hook.out_dir == "s3://bucket/older"
    train(hook, 4)
    trial = create_trial("s3://bucket/older")
    assert trial.steps() == [0, 3] and LOSS | WEIGHTS <= set(trial.tensor_names())


@rows(74)
def test_weights_and_gradients_every_hundred_steps(server):
    schedule = ts.SaveConfig(save_interval=100)
    hook = ts.TornasoleHook("s3://bucket/run", save_config=schedule, include_collections=["weights", "gradients"])
    train(hook, 201)
    trial = create_trial("s3://bucket/run")
    assert trial.steps() == [0, 100, 200]
    for step in trial.steps():
        assert set(trial.tensor_names(step=step)) == LOSS | WEIGHTS | GRADIENTS


class Worker(BaseHook):
    """One of three, which end a step together or not."""

    _framework = "pytorch"
    rank = 0

    def _get_worker_rank(self):
        return self.rank, 3


def write_as(rank, place, steps):
    """So many steps of one worker, whose run stays open."""
    kind = type("Worker", (Worker,), {"rank": rank})
    hook = kind(place, save_all=True, include_workers="all", save_config=ts.SaveConfig(save_interval=1))
    for _ in range(steps):
        hook._begin_step()
        hook._engine_hook.save("weight", numpy.ones(2, numpy.float32))
        hook._end_step()
    hook._wait_until_written(60)
    return hook


@rows(218)
@pytest.mark.parametrize("name", ["INCOMPLETE_STEP_WAIT_WINDOW", "SMDEBUG_INCOMPLETE_STEP_WAIT_WINDOW", None])
def test_half_of_too_many_incomplete_steps_count_as_complete(name, tmp_path, monkeypatch):
    # One worker runs on while the two others stop after their first step.
    steps = 20 if name else 1000
    if name is not None:
        monkeypatch.setenv(name, "10")
    open_runs = [write_as(rank, tmp_path / "run", count) for rank, count in ((0, steps), (1, 1), (2, 1))]
    trial = create_trial(str(tmp_path / "run"))
    if name is None:
        assert trial.steps() == [0], "999 steps wait: the window is 1000 wide"
    else:
        # 19 wait, so the first five count as complete at one look, five of 14 at the next, and then the rest may wait.
        seen = [trial.steps() for _ in range(3)]
        assert seen[1] == seen[2] == list(range(11))
    assert len(trial.steps(show_incomplete_steps=True)) == steps
    for hook in open_runs:
        hook.close()
