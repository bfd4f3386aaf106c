"""A test that fails runs once more: with ctest, with pytest, and with the fuzz targets."""

import pathlib
import stat
import subprocess
import sys

import pytest

ROOT = pathlib.Path(__file__).resolve().parents[2]
sys.path.insert(0, str(ROOT / "scripts"))

import stage_tests  # noqa: E402

# Fails or is killed as often as its second argument says, then passes; counts its runs in the file of its first.
TIMES = """\
import os, pathlib, signal, sys, time
runs = pathlib.Path(sys.argv[1])
earlier = len(runs.read_text()) if runs.exists() else 0
runs.write_text("x" * (earlier + 1))
if earlier < int(sys.argv[2]):
    print("FAIL: the failure of run", earlier + 1)
    if sys.argv[3] == "signal":
        os.kill(os.getpid(), signal.SIGSEGV)
    if sys.argv[3] == "hang":
        time.sleep(60)
    sys.exit(77 if sys.argv[3] == "skip" else 1)
"""


@pytest.fixture(name="stage")
def fixture_stage(tmp_path, monkeypatch):
    monkeypatch.setenv("PYTEST_DISABLE_PLUGIN_AUTOLOAD", "1")
    stage = stage_tests.Stage("made", tmp_path / "logs")
    yield stage
    stage.log.close()


def runs_of(tmp_path):
    return {path.stem: len(path.read_text()) for path in tmp_path.glob("*.runs")}


CTEST_CASES = {
    # name: (how often it fails, how, runs, whether it passes in the end, what its first failure says)
    "steady": (0, "exit", 1, True, None),
    "once": (1, "exit", 2, True, "FAIL: the failure of run 1"),
    "once_by_signal": (1, "signal", 2, True, "FAIL: the failure of run 1"),
    "once_too_slow": (1, "hang", 2, True, "ended after 1"),
    "twice": (2, "exit", 2, False, None),
    "always": (99, "exit", 2, False, None),
}


def test_ctest_tries_what_failed_once_more(stage, tmp_path):
    (tmp_path / "times.py").write_text(TIMES)
    lines = []
    for name, (times, how, *_) in {**CTEST_CASES, "skipped": (99, "skip"), "not_asked_for": (99, "exit")}.items():
        command = f'"{sys.executable}" "{tmp_path}/times.py" "{tmp_path}/{name}.runs" {times} {how}'
        limit = 10 if how == "hang" else 60
        lines.append(f'add_test({name} {command})\n')
        lines.append(f'set_tests_properties({name} PROPERTIES TIMEOUT {limit} SKIP_RETURN_CODE 77)\n')
    (tmp_path / "CTestTestfile.cmake").write_text("".join(lines))

    stage_tests.run_ctest(stage, tmp_path, [*CTEST_CASES, "skipped", "unknown"])

    runs = runs_of(tmp_path)
    assert runs == {**{name: case[2] for name, case in CTEST_CASES.items()}, "skipped": 1}
    assert stage.passed == sum(case[3] for case in CTEST_CASES.values())
    assert sorted(stage.failed) == sorted([*(name for name, case in CTEST_CASES.items() if not case[3]), "unknown"])
    assert [what.split(" ")[0] for what in stage.skipped] == ["skipped"]
    expected = {name: case[4] for name, case in CTEST_CASES.items() if case[4]}
    assert stage.unsteady.keys() == expected.keys()
    for name, text in expected.items():
        assert text in "\n".join(stage_tests.first_failure(stage.unsteady[name])), name


PYTEST_FILE = """\
import os, pathlib
import pytest

HERE = pathlib.Path(__file__).parent
def earlier(name):
    runs = HERE / (name + ".runs")
    count = len(runs.read_text()) if runs.exists() else 0
    runs.write_text("x" * (count + 1))
    return count

def test_steady(): earlier("steady")
@pytest.mark.parametrize("text", ["a::b [c]", "é\\x00", "plain"])
def test_of_many(text):
    assert earlier("many " + str(len(text))) > 0 or text == "plain", "the first failure of " + repr(text)
class TestInAClass:
    def test_once(self): assert earlier("once") > 0, "the first failure of once"
    def test_always(self): earlier("always"); assert False, "fails whenever it runs"
@pytest.fixture
def unready():
    assert earlier("fixture") > 0, "the fixture was not ready"
def test_with_a_fixture(unready): pass
def test_skipped(): earlier("skipped"); pytest.skip("it is not for here")
"""


def test_pytest_tries_exactly_what_failed_once_more(stage, tmp_path):
    (tmp_path / "test_made.py").write_text(PYTEST_FILE)
    stage_tests.run_pytest(stage, sys.executable, tmp_path, "here")
    runs = runs_of(tmp_path)
    once = {"steady": 1, "many 5": 1, "skipped": 1}
    assert runs == {**once, "many 8": 2, "many 2": 2, "once": 2, "always": 2, "fixture": 2}
    assert [what.rsplit(".", 1)[1] for what in stage.failed] == ["test_always"]
    assert "fails whenever it runs" in "".join(stage.failed.values())
    assert stage.passed == 6
    assert len(stage.skipped) == 1 and "it is not for here" in stage.skipped[0]
    unsteady = {name.rsplit("test_made.", 1)[1]: text for name, text in stage.unsteady.items()}
    assert len(unsteady) == 4
    assert "the first failure of once" in unsteady["TestInAClass.test_once"]
    assert "the fixture was not ready" in unsteady["test_with_a_fixture"]


WHOLE_CASES = [
    # what happens to the file, how often, what stands in the end: passed, failed, unsteady, tests run
    ("it dies as a whole", "os.kill(os.getpid(), 9)", 1, (2, 0, 1)),
    ("it dies as a whole each time", "os.kill(os.getpid(), 9)", 2, (0, 1, 0)),
    ("it cannot be imported", "raise ImportError('not there')", 1, (3, 0, 1)),
    ("it cannot be imported at all", "raise ImportError('not there')", 2, (1, 1, 0)),
    ("it takes too long", "time.sleep(600)", 1, (2, 0, 1)),
    ("it ends early with success", "os._exit(0)", 1, (2, 0, 1)),
]


@pytest.mark.parametrize("what, trouble, times, stands", WHOLE_CASES, ids=[case[0] for case in WHOLE_CASES])
def test_a_python_suite_that_breaks_as_a_whole_runs_again(stage, tmp_path, monkeypatch, what, trouble, times, stands):
    monkeypatch.setattr(stage_tests, "PYTEST_LIMIT_S", 12 if "sleep" in trouble else 300)
    troubled = (
        "import os, pathlib, time\n"
        "RUNS = pathlib.Path(__file__).parent / 'whole.runs'\n"
        "earlier = len(RUNS.read_text()) if RUNS.exists() else 0\n"
        "RUNS.write_text('x' * (earlier + 1))\n"
        f"if earlier < {times}: {trouble}\n"
        "def test_a(): pass\n"
        "def test_b(): pass\n"
    )
    (tmp_path / "test_troubled.py").write_text(troubled)
    if "import" in what:
        (tmp_path / "test_other.py").write_text("def test_c(): pass\n")
    stage_tests.run_pytest(stage, sys.executable, tmp_path, "here")
    assert (stage.passed, len(stage.failed), len(stage.unsteady)) == stands, (stage.failed, stage.unsteady)
    assert runs_of(tmp_path) == {"whole": 2}


# As a fuzz target: reads every file of its last argument, and leaves the one that breaks it where it is told.
FUZZ_PROGRAM = """\
#!/bin/sh
for argument; do
  case $argument in -artifact_prefix=*) broken=${argument#*=} ;; esac
  corpus=$argument
done
echo x >> "$0.runs"
echo "#1 INITED cov: 7"
echo "stat::number_of_executed_units: 100"
"""
FUZZ_CASES = {
    # name: (what its program does besides, whether it passes in the end, whether it is unsteady, runs)
    "fuzz_steady": ("", True, False, 1),
    "fuzz_input": ('echo bad > "$broken/crash-1"\n[ ! -e "$corpus/crash-1" ] && [ $(wc -l < "$0.runs") -gt 1 ]', False,
                   False, 2),
    "fuzz_busy": ('[ $(wc -l < "$0.runs") -gt 1 ]', True, True, 2),
}


def test_a_fuzz_target_begins_again_with_what_broke_it(stage, tmp_path):
    for name, (does, *_) in FUZZ_CASES.items():
        program = tmp_path / name
        program.write_text(FUZZ_PROGRAM + does + "\n")
        program.chmod(program.stat().st_mode | stat.S_IXUSR)
    stage_tests.run_fuzz(stage, tmp_path, 1, env={"TMPDIR": str(tmp_path)})
    runs = {path.stem: len(path.read_text().split()) for path in tmp_path.glob("*.runs")}
    assert runs == {name: case[3] for name, case in FUZZ_CASES.items()}
    assert list(stage.failed) == [name for name, case in FUZZ_CASES.items() if not case[1]]
    assert stage.passed == sum(case[1] for case in FUZZ_CASES.values())
    assert list(stage.unsteady) == [name for name, case in FUZZ_CASES.items() if case[2]]


@pytest.mark.parametrize(
    "what, times, prepared, unsteady",
    [("it succeeds", 0, True, []), ("once it fails", 1, True, ["a build"]), ("it fails twice", 2, False, [])],
)
def test_what_the_tests_need_is_tried_twice(stage, tmp_path, what, times, prepared, unsteady):
    (tmp_path / "times.py").write_text(TIMES)
    command = (sys.executable, tmp_path / "times.py", tmp_path / "build.runs", str(times), "exit")
    assert stage.prepare("a build", *command) == prepared
    assert list(stage.unsteady) == unsteady
    assert all("the failure of run 1" in text for text in stage.unsteady.values())


def test_the_summary_names_what_is_unsteady_and_passes(tmp_path):
    """The whole program, with one stage whose test fails at first."""
    program = (
        "import sys; sys.argv = ['test.py']; sys.path.insert(0, %r)\n"
        "import importlib.util, pathlib\n"
        "import stage_tests\n"
        "stage_tests.Stage.__init__.__defaults__ = (pathlib.Path(%r),)\n"
        "spec = importlib.util.spec_from_file_location('stages', %r)\n"
        "stages = importlib.util.module_from_spec(spec); spec.loader.exec_module(stages)\n"
        "answers = iter([{'a': stage_tests.Outcome('failed', 'x.cc:1: Failure\\nit was late')},\n"
        "                {'a': stage_tests.Outcome('passed')}])\n"
        "stages.EVERY_CHANGE = {'made': lambda stage: stage.run_twice(lambda names: next(answers))}\n"
        "stages.main()\n"
    ) % (str(ROOT / "scripts"), str(tmp_path), str(ROOT / "scripts" / "test.py"))
    done = subprocess.run([sys.executable, "-c", program], capture_output=True, text=True, timeout=120, check=False)
    assert done.returncode == 0, done.stderr
    assert "unsteady: made: a\n    x.cc:1: Failure\n    it was late\n" in done.stdout
    assert done.stdout.splitlines()[-1] == "1 passed, 0 failed, 1 unsteady"


LEFT_OUT_CASES = [
    # a test that was skipped, and whether it is merely left out since it ran elsewhere
    ("a test", "tests.a.test_one", True),
    ("a parameter with a slash", "tests.a.test_two[docs/x.md]", True),
    ("a whole file", "tests/b/test_file", True),
    ("a test that ran nowhere", "tests.a.test_three", False),
    ("a file whose name begins like another's", "tests/b/test_fil", False),
]


@pytest.mark.parametrize("what, test, is_left_out", LEFT_OUT_CASES, ids=[case[0] for case in LEFT_OUT_CASES])
def test_what_ran_elsewhere_is_left_out_and_the_rest_is_skipped(stage, what, test, is_left_out):
    ran = {"tests.a.test_one", "tests.a.test_two[docs/x.md]", "tests.b.test_file.test_in_it"}
    stage.note_skipped(f"old: {test}", "too old", ran)
    assert stage.left_out == ({("old", "too old"): [test]} if is_left_out else {})
    assert stage.skipped == ([] if is_left_out else [f"old: {test} (too old)"])
