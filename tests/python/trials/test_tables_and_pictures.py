"""Trials as tables, in notebooks and as pictures."""

import builtins
import sys

import pytest

from trial_files import TrialFiles

from tornasole.exceptions import SMDebugRuntimeError
from tornasole.modes import ModeKeys
from tornasole.trials import create_trial


@pytest.fixture
def trial(tmp_path):
    files = TrialFiles(tmp_path / "run", "ab")
    for step in range(4):
        mode, mode_step = ("TRAIN", step) if step < 3 else ("EVAL", 0)
        tensors = {"loss": [10 - step], "smdebug/reductions/mean/w": [step], "smdebug/reductions/abs_max/w": [step + 1]}
        files.write_steps([step], mode=mode, mode_step=mode_step, tensors=tensors | {"big": [[1, 2], [3, 4]]})
    files.write(4, worker="a")
    return create_trial(str(tmp_path / "run"))


def test_a_table_has_a_row_per_step_worker_and_tensor(trial):
    pytest.importorskip("pandas")
    table = trial.to_pandas()
    assert list(table.columns) == ["step", "mode", "mode_step", "worker", "tensor", "value", "mean", "abs_max"]
    assert len(table) == 4 * 2 * 2
    first = table[(table.step == 2) & (table.worker == "b")].set_index("tensor")
    assert (first.loc["loss", "value"], first.loc["w", "mean"], first.loc["w", "abs_max"]) == (8, 2, 3)
    assert first["mode"].tolist() == ["TRAIN", "TRAIN"]
    assert table[table.step == 3]["mode"].unique().tolist() == ["EVAL"]


@pytest.mark.parametrize(
    "arguments, rows",
    [
        (dict(names="loss"), 8),
        (dict(names=["loss", "w"], mode=ModeKeys.EVAL), 4),
        (dict(names="^w$"), 8),
        (dict(names="big"), 0),
        (dict(names="nothing"), 0),
        (dict(mode=ModeKeys.PREDICT), 0),
    ],
)
def test_a_part_of_the_table(arguments, rows, trial):
    pytest.importorskip("pandas")
    table = trial.to_pandas(**arguments)
    assert len(table) == rows
    assert list(table.columns)[:5] == ["step", "mode", "mode_step", "worker", "tensor"]


def test_a_notebook_shows_a_trial_and_its_tensors(trial, tmp_path):
    shown = trial._repr_html_()
    for part in ("run", "TRAIN steps", "0, 1, 2", "loss", "a, b"):
        assert part in shown
    shown = trial.tensor("big")._repr_html_()
    for part in ("Tensor big", "(2, 2)", "TRAIN 2", "2.5", "5.47723"):
        assert part in shown
    assert "2" in trial.tensor("w")._repr_html_()


def test_names_are_escaped(tmp_path):
    TrialFiles(tmp_path).write(0, tensors={"<script>alert(1)</script>": [1]})
    trial = create_trial(str(tmp_path), name="<b>x")
    for shown in (trial._repr_html_(), trial.tensor("<script>alert(1)</script>")._repr_html_()):
        assert "<script>" not in shown and "<b>x" not in shown
        assert "&lt;script&gt;" in shown


def test_a_long_trial_is_shown_in_short(tmp_path):
    files = TrialFiles(tmp_path)
    files.write_steps(range(100), tensors={f"t{number}": [1] for number in range(60)})
    shown = create_trial(str(tmp_path))._repr_html_()
    assert "(100 steps)" in shown and "and 10 more" in shown
    assert len(shown) < 20_000


def test_a_plot_of_a_scalar_a_tensor_and_a_reduction(trial):
    matplotlib = pytest.importorskip("matplotlib")
    matplotlib.use("Agg")
    axes = trial.tensor("loss").plot(mode=ModeKeys.TRAIN)
    (line,) = axes.lines
    assert line.get_xydata().tolist() == [[0, 10], [1, 9], [2, 8]]
    assert axes.get_title() == "loss" and axes.get_xlabel() == "TRAIN step"
    axes = trial.tensor("big").plot()
    assert [line.get_label() for line in axes.lines] == ["mean", "min", "max"]
    axes = trial.tensor("w").plot()
    assert sorted(line.get_label() for line in axes.lines) == ["abs_max", "mean"]
    assert trial.tensor("big").plot(reduction="sum", ax=axes) is axes
    assert axes.lines[-1].get_ydata().tolist() == [10, 10, 10, 10]


@pytest.mark.parametrize(
    "module, ask", [("pandas", lambda t: t.to_pandas()), ("matplotlib", lambda t: t.tensor("loss").plot())]
)
def test_what_is_not_installed_is_said(module, ask, trial, monkeypatch):
    real_import = builtins.__import__

    def without(name, *arguments, **options):
        if name.split(".")[0] == module:
            raise ImportError(name)
        return real_import(name, *arguments, **options)

    for name in [name for name in sys.modules if name.split(".")[0] == module]:
        monkeypatch.delitem(sys.modules, name)
    monkeypatch.setattr(builtins, "__import__", without)
    with pytest.raises(SMDebugRuntimeError, match=f"pip install {module}"):
        ask(trial)
