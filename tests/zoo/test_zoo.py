"""Trainings that are sick in known ways, and healthy ones that look like it: what `tornasole check` says of each.

Every training is captured by `tornasole run` with its default preset, as a user's script would be. A table of all of
them is printed at the end.
"""

import json
import pathlib
import subprocess
import sys

import pytest

import tornasole
from architectures import ARCHITECTURES
from doubts import DOUBTS
from glances import GLANCES
from often_called import OFTEN_CALLED
from rates import RATES
from strangers import STRANGERS
from trainings import TRAININGS

HERE = pathlib.Path(__file__).parent
PROGRAM = pathlib.Path(tornasole.__file__).parent / "bin" / "tornasole"
ZOOS = (TRAININGS, ARCHITECTURES, STRANGERS, OFTEN_CALLED, RATES, GLANCES, DOUBTS)
EXPECTED = {name: rules for zoo in ZOOS for name, (_, rules) in zoo.items()}
_TABLE = []


@pytest.fixture(scope="module", name="stable")
def fixture_stable(tmp_path_factory):
    """A process that trains what it is told."""
    out = tmp_path_factory.mktemp("stable") / "run"
    command = [sys.executable, "-m", "tornasole", "run", "--out", str(out), str(HERE / "stable.py")]
    with subprocess.Popen(command, stdin=subprocess.PIPE, stdout=subprocess.PIPE, text=True) as process:
        yield process
        process.stdin.close()
        assert process.wait(60) == 0


@pytest.fixture(scope="module", autouse=True)
def fixture_table():
    yield
    width = max(len(name) for name, _ in _TABLE) if _TABLE else 0
    print("\n" + "\n".join(f"{name:{width}}  {', '.join(told) or '-'}" for name, told in _TABLE))


def capture(stable, name, directory):
    """The directory of the trial of a training."""
    out, log = directory / "run", directory / "log"
    stable.stdin.write(json.dumps([name, str(out), str(log)]) + "\n")
    stable.stdin.flush()
    assert stable.stdout.readline() == "0\n", log.read_text()
    return out


@pytest.mark.parametrize("name", EXPECTED)
def test_what_check_says_of_a_training(name, stable, tmp_path):
    out = capture(stable, name, tmp_path)
    before = sorted((path, path.stat().st_mtime_ns) for path in out.rglob("*"))
    checked = subprocess.run([PROGRAM, "check", out, "--json"], capture_output=True, text=True, timeout=600)
    assert sorted((path, path.stat().st_mtime_ns) for path in out.rglob("*")) == before
    report = json.loads(checked.stdout)
    verdicts = [verdict for verdict in report["verdicts"] if verdict["severity"] != "info"]
    _TABLE.append((name, [v["rule"] + ("" if v["symptom_of"] is None else " (symptom)") for v in verdicts]))
    assert checked.returncode == (10 if verdicts else 0)
    causes = {verdict["rule"] for verdict in verdicts if verdict["symptom_of"] is None}
    if EXPECTED[name]:
        assert causes & set(EXPECTED[name]), report
    else:
        assert not verdicts, report
    for verdict in verdicts:
        assert verdict["message"] and verdict["causes"] and verdict["advice"]
        assert 0 <= verdict["first_step"] <= verdict["last_step"]
