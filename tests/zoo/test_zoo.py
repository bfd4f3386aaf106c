"""Trainings that are sick in known ways, and healthy ones that look like it: what `tornasole check` says of each.

Every training runs under `tornasole run` with its default preset, as a user's script would. A table of all of them is
printed at the end.
"""

import json
import pathlib
import subprocess
import sys

import pytest

from architectures import ARCHITECTURES
from trainings import TRAININGS

HERE = pathlib.Path(__file__).parent
# name -> script, rules
ALL = {name: ("trainings.py", rules) for name, (_, rules) in TRAININGS.items()}
ALL.update({name: ("architectures.py", rules) for name, (_, rules) in ARCHITECTURES.items()})
_TABLE = []


def command(*arguments):
    return subprocess.run(
        [sys.executable, "-m", "tornasole", *map(str, arguments)], capture_output=True, text=True, timeout=600
    )


@pytest.fixture(scope="module", autouse=True)
def fixture_table():
    yield
    width = max(len(name) for name, _ in _TABLE) if _TABLE else 0
    print("\n" + "\n".join(f"{name:{width}}  {', '.join(told) or '-'}" for name, told in _TABLE))


@pytest.mark.parametrize("name", ALL)
def test_what_check_says_of_a_training(name, tmp_path):
    script, expected = ALL[name]
    ran = command("run", "--out", tmp_path / "run", HERE / script, name)
    assert ran.returncode == 0, ran.stderr
    before = sorted((path, path.stat().st_mtime_ns) for path in (tmp_path / "run").rglob("*"))
    checked = command("check", tmp_path / "run", "--json")
    assert sorted((path, path.stat().st_mtime_ns) for path in (tmp_path / "run").rglob("*")) == before
    report = json.loads(checked.stdout)
    verdicts = [verdict for verdict in report["verdicts"] if verdict["severity"] != "info"]
    _TABLE.append((name, [v["rule"] + ("" if v["symptom_of"] is None else " (symptom)") for v in verdicts]))
    assert checked.returncode == (10 if verdicts else 0)
    causes = {verdict["rule"] for verdict in verdicts if verdict["symptom_of"] is None}
    if expected:
        assert causes & set(expected), report
    else:
        assert not verdicts, report
    for verdict in verdicts:
        assert verdict["message"] and verdict["causes"] and verdict["advice"]
        assert 0 <= verdict["first_step"] <= verdict["last_step"]
