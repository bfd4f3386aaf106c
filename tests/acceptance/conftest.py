"""The acceptance list as tests: one for each row, and at the end how many rows are done, left, or need none.

A test says which rows it shows with ``@rows(17, 73)`` and runs once for each. Rows that no test shows must stand in
``acceptance_rows.py`` with the reason.
"""

import json
import os
import pathlib
import sys

import pytest

sys.path.insert(0, str(pathlib.Path(__file__).parent))
sys.path.insert(0, str(pathlib.Path(__file__).resolve().parents[2] / "python" / "smdebug_dropin"))
sys.path.insert(0, str(pathlib.Path(__file__).resolve().parents[1] / "s3"))

from acceptance_rows import ELSEWHERE, LAST_ROW, LEFT, NEED_NONE  # noqa: E402
from s3_fixtures import server  # noqa: E402, F401

# A busy disk takes what is queued in its own time: a test that writes a run wants all of it.
os.environ.setdefault("TORNASOLE_CLOSE_WAIT_S", "120")
_shown = {}
# Each of these folders runs by itself, in the environment of its framework.
collect_ignore = list(ELSEWHERE)


def pytest_generate_tests(metafunc):
    """Runs a test once for each row it shows."""
    marker = metafunc.definition.get_closest_marker("rows")
    if marker is not None:
        metafunc.parametrize("row", marker.args, ids=[f"row_{number:03d}" for number in marker.args])


def pytest_configure(config):
    config.addinivalue_line("markers", "rows(*numbers): the rows of the acceptance list that the test shows")


@pytest.hookimpl(hookwrapper=True)
def pytest_runtest_makereport(item, call):
    outcome = yield
    report = outcome.get_result()
    row = getattr(item, "callspec", None) and item.callspec.params.get("row")
    if row and (report.when == "call" or report.outcome != "passed"):
        _shown[row] = report.outcome


def pytest_terminal_summary(terminalreporter):
    """How far the list has come."""
    done = {row for row, outcome in _shown.items() if outcome == "passed"}
    failed = {row for row, outcome in _shown.items() if outcome == "failed"}
    write = terminalreporter.write_line
    write("")
    write(f"acceptance list: {len(done)} of {LAST_ROW} rows done, {len(failed)} failed, {len(LEFT)} left for later,")
    write(f"                 {len(NEED_NONE)} need no test")
    elsewhere = {row for rows in ELSEWHERE.values() for row in rows}
    write(f"  in the environments of other frameworks: {', '.join(map(str, sorted(elsewhere)))}")
    reasons = {}
    for row, reason in LEFT.items():
        reasons.setdefault(reason, []).append(row)
    for reason, numbers in reasons.items():
        write(f"  left, {reason}: {', '.join(map(str, numbers))}")
    silent = set(range(1, LAST_ROW + 1)) - set(_shown) - set(LEFT) - set(NEED_NONE) - elsewhere
    if silent:
        write(f"  not run this time: {', '.join(map(str, sorted(silent)))}")


@pytest.fixture(autouse=True)
def row():
    """The number of the row; the test runs once for each it shows."""


@pytest.fixture(autouse=True)
def clean_process(monkeypatch):
    """No hook and no shut-down from another test, and an environment that says nothing."""
    from tornasole.core import singleton_utils
    from tornasole.core.guard import guard

    for name in ("TRAINING_JOB_NAME", "SMDEBUG_CONFIG_FILE_PATH", "TENSORBOARD_CONFIG_FILE_PATH"):
        monkeypatch.delenv(name, raising=False)
    monkeypatch.setenv("SMDEBUG_TRAINING_END_DELAY_REFRESH", "0")  # the runs are over; nothing comes late
    yield
    if (hook := singleton_utils.current_hook()) is not None:
        hook.close()
    singleton_utils.del_hook()
    guard.hook = None
    guard.disable_smdebug = False


@pytest.fixture
def saved(tmp_path):
    """What a run in ``<tmp_path>/run`` holds: step -> names, from its index files."""

    def read(directory=tmp_path / "run"):
        steps = {}
        for path in sorted(pathlib.Path(directory).glob("index/*/*.json")):
            content = json.loads(path.read_text())
            steps[int(path.name.split("_")[0])] = {entry["tensorname"] for entry in content["tensor_payload"]}
        return steps

    return read


@pytest.fixture
def from_json(tmp_path):
    """A hook from a configuration file with this content, which writes to ``<tmp_path>/run``."""

    def make(hook_class, content):
        if isinstance(content, dict):
            content = json.dumps({"LocalPath": str(tmp_path / "run"), **content})
        (tmp_path / "config.json").write_text(content)
        return hook_class.create_from_json_file(str(tmp_path / "config.json"))

    return make
