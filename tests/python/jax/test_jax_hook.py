"""Trees of arrays that a program of JAX hands over; and the page and the example that show it."""

import os
import pathlib
import subprocess
import sys

import jax
import jax.numpy as jnp
import numpy
import pytest
from trial_dump import TrialDump

import tornasole
import tornasole.jax as ts
from tornasole.trials import create_trial

ROOT = pathlib.Path(__file__).resolve().parents[3]
sys.path.insert(0, str(ROOT / "tests" / "python" / "core"))
from test_docs_snippets import pages  # noqa: E402
from test_docs_snippets import test_snippets_of_a_page_run_as_printed as run_page  # noqa: E402

EVERY = ts.SaveConfig(save_interval=1)


def error(parameters, inputs):
    hidden = jnp.tanh(inputs @ parameters["dense"]["kernel"] + parameters["dense"]["b"])
    return jnp.mean((hidden @ parameters["out"][0]) ** 2)


def train(hook=None, steps=4, mode=None):
    """A few steps; the parameters at the end and what the loop saw."""
    keys = jax.random.split(jax.random.PRNGKey(0), 3)
    parameters = {
        "dense": {"kernel": jax.random.normal(keys[0], (3, 4)), "b": jnp.zeros(4)},
        "out": [jax.random.normal(keys[1], (4, 1))],
    }
    inputs = jax.random.normal(keys[2], (5, 3))
    seen = []
    for _ in range(steps):
        loss, gradients = jax.value_and_grad(error)(parameters, inputs)
        seen.append((float(loss), gradients, parameters))
        if hook is not None:
            with hook.new_step(mode):
                hook.save_loss(loss)
                hook.save_gradients(gradients)
                hook.save_parameters(parameters)
        parameters = jax.tree_util.tree_map(lambda p, g: p - 0.1 * g, parameters, gradients)
    return parameters, seen


WEIGHTS = {"weight/dense/kernel", "weight/out/0"}
BIASES = {"bias/dense/b"}
GRADIENTS = {f"gradient/{name}" for name in WEIGHTS | BIASES}
COLLECTIONS = [
    ("losses are always saved", {}, {"loss"}),
    ("weights", {"include_collections": ["weights"]}, {"loss"} | WEIGHTS),
    ("biases", {"include_collections": ["biases"]}, {"loss"} | BIASES),
    ("gradients", {"include_collections": ["gradients"]}, {"loss"} | GRADIENTS),
    ("everything", {"save_all": True}, {"loss"} | WEIGHTS | BIASES | GRADIENTS),
]


@pytest.mark.parametrize("what, options, names", COLLECTIONS, ids=[row[0] for row in COLLECTIONS])
def test_collections(what, options, names, tmp_path):
    hook = ts.Hook(out_dir=str(tmp_path / "run"), save_config=ts.SaveConfig(save_interval=2), **options)
    train(hook, mode=ts.modes.TRAIN)
    hook.close()
    trial = TrialDump(tmp_path / "run")
    assert set(trial.names) == names
    assert trial.steps == {"GLOBAL": [0, 2], "TRAIN": [0, 2]}


def test_values_are_those_of_the_step_and_the_training_is_the_same(tmp_path):
    hook = ts.Hook(out_dir=str(tmp_path / "run"), save_config=EVERY, save_all=True)
    captured, seen = train(hook)
    hook.close()
    bare, _ = train()
    for ours, theirs in zip(jax.tree_util.tree_leaves(captured), jax.tree_util.tree_leaves(bare)):
        numpy.testing.assert_array_equal(ours, theirs)
    trial = create_trial(str(tmp_path / "run"))
    for step, (loss, gradients, parameters) in enumerate(seen):
        assert trial.tensor("loss").value(step) == numpy.float32(loss)
        numpy.testing.assert_array_equal(trial.tensor("gradient/weight/out/0").value(step), gradients["out"][0])
        numpy.testing.assert_array_equal(trial.tensor("weight/dense/kernel").value(step), parameters["dense"]["kernel"])


TYPES = ["float32", "bfloat16", "float16", "int8", "bool", "complex64", "float8_e4m3fn"]


@pytest.mark.parametrize("name", TYPES)
def test_element_types(name, tmp_path):
    value = jnp.array([0, 1, 2, 3]).astype(name)
    hook = ts.Hook(out_dir=str(tmp_path / "run"), save_config=EVERY, include_collections=["weights"])
    with hook.new_step():
        hook.save_parameters({"x": value})
    hook.close()
    saved = create_trial(str(tmp_path / "run")).tensor("weight/x").value(0)
    assert saved.tobytes() == numpy.asarray(value).tobytes()


def test_what_is_being_traced_is_left_out_and_the_program_runs(tmp_path):
    hook = ts.Hook(out_dir=str(tmp_path / "run"), save_config=EVERY, save_all=True)

    @jax.jit
    def step(x):
        hook.save_loss(x.sum(), "inside")
        return x.sum()

    with hook.new_step():
        assert float(step(jnp.ones(3))) == 3.0
        hook.save_loss(4.0)
    hook.close()
    assert TrialDump(tmp_path / "run").names == ["loss"]


def test_nothing_is_copied_when_nothing_is_due(tmp_path):
    class Watched:
        copies = 0

        def __array__(self, *arguments, **options):
            Watched.copies += 1
            return numpy.ones(3, numpy.float32)

    hook = ts.Hook(out_dir=str(tmp_path / "run"), save_config=ts.SaveConfig(save_interval=3), save_all=True)
    for _ in range(6):
        with hook.new_step():
            hook.save_loss(Watched())
    hook.close()
    assert Watched.copies == 2


def test_an_exception_marks_the_step_and_a_lost_directory_harms_nothing(tmp_path):
    hook = ts.Hook(out_dir=str(tmp_path / "run"), save_config=EVERY, save_all=True)
    with pytest.raises(ZeroDivisionError), hook.new_step():
        hook.save_loss(1 / 0)
    hook.close()
    lost = ts.Hook(out_dir=str(tmp_path / "lost"), save_config=EVERY, save_all=True)
    (tmp_path / "lost").write_text("a file in the place of the directory")
    captured, _ = train(lost, steps=8)
    lost.close()
    for ours, theirs in zip(jax.tree_util.tree_leaves(captured), jax.tree_util.tree_leaves(train(steps=8)[0])):
        numpy.testing.assert_array_equal(ours, theirs)
    assert lost.report()["committed_steps"] == 0


@pytest.mark.parametrize("snippets", list(pages(of="jax")))
def test_the_page_runs_as_printed(snippets, tmp_path):
    run_page(snippets, tmp_path)


def test_the_example(tmp_path):
    assert list(pages(of="jax"))
    command = [sys.executable, str(ROOT / "examples" / "python" / "jax_mlp.py"), str(tmp_path / "run")]
    package = os.path.dirname(os.path.dirname(os.path.abspath(tornasole.__file__)))
    environment = {**os.environ, "PYTHONPATH": package}
    ran = subprocess.run(command, env=environment, capture_output=True, text=True, timeout=300, check=False)
    assert ran.returncode == 0, ran.stderr
    assert "the last loss is" in ran.stdout
    trial = TrialDump(tmp_path / "run")
    assert {"loss", "weight/hidden/kernel", "bias/out/bias", "gradient/weight/out/kernel"} <= set(trial.names)
    assert trial.steps["TRAIN"] == [0, 10, 20, 30, 40]
