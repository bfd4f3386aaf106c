"""A stage of the checks while it runs: its log, what it has counted, and how its tests are run.

1. All tests of a set run, side by side where they may.
2. What failed, and what was to run and did not, runs once more, alone.
3. What passes then has passed, but is unsteady: the stage keeps the text of the first failure, so that it is looked
   into. What fails twice has failed.
"""

import dataclasses
import json
import os
import pathlib
import re
import shutil
import signal
import subprocess
import xml.etree.ElementTree

ROOT = pathlib.Path(__file__).resolve().parent.parent
LOGS = ROOT / "build" / "test-logs"
# A folder of Python tests that takes longer hangs; ctest has limits of its own.
PYTEST_LIMIT_S = 5400
UNSTEADY_LINES = 40


@dataclasses.dataclass
class Outcome:
    """What became of a test in one try; the text is the failure's, or why it was skipped."""

    verdict: str  # passed, failed or skipped
    text: str = ""


class Stage:
    """Where the output of a stage goes and what it has counted."""

    def __init__(self, name, logs=LOGS):
        self.name = name
        self.passed = 0
        self.failed = {}  # what failed -> what it said, where that is known
        self.skipped = []
        self.left_out = {}  # (environment, reason) -> tests it does without, which ran elsewhere
        self.unsteady = {}  # what passed at the second try -> the text of its first failure
        self.logs = logs
        logs.mkdir(parents=True, exist_ok=True)
        self.log_path = logs / f"{name}.log"
        self.log = self.log_path.open("w")

    def run(self, *command, env=None):
        """Runs a command into the log; whether it succeeded."""
        return self.exit_code(*command, env=env) == 0

    def exit_code(self, *command, env=None, limit_s=None):
        """As a shell would see it; None for a command that took longer than the limit and was ended."""
        self.log.write(f"$ {' '.join(map(str, command))}\n")
        self.log.flush()
        environment = {**os.environ, **(env or {})}
        with subprocess.Popen(
            command, cwd=ROOT, env=environment, stdout=self.log, stderr=subprocess.STDOUT, start_new_session=True
        ) as process:
            try:
                return process.wait(limit_s)
            except subprocess.TimeoutExpired:
                self.log.write(f"\nended after {limit_s} s\n")
                return None
            finally:
                if process.poll() is None:
                    os.killpg(process.pid, signal.SIGKILL)

    def count(self, what, succeeded, text=""):
        if succeeded:
            self.passed += 1
        else:
            self.failed[what] = text

    def check(self, what, *command, env=None):
        """Runs a command that is one test, and whose answer depends on the files alone."""
        succeeded = self.run(*command, env=env)
        self.count(what, succeeded)
        return succeeded

    def prepare(self, what, *command, env=None):
        """Runs a command that the tests need, once more if it fails; whether it succeeded."""
        began = self.logged_bytes()
        if self.run(*command, env=env):
            return True
        text = self.logged_since(began)
        if not self.run(*command, env=env):
            return False
        self.unsteady[what] = text
        return True

    def logged_bytes(self):
        self.log.flush()
        return self.log_path.stat().st_size

    def logged_since(self, position):
        self.log.flush()
        return self.log_path.read_bytes()[position:].decode(errors="replace")

    def configure(self, preset):
        return self.needed(f"configure {preset}", "cmake", "--preset", preset)

    def build(self, preset, *targets):
        wanted = [argument for target in targets for argument in ("--target", target)]
        return self.needed(f"build {preset}", "cmake", "--build", "--preset", preset, *wanted)

    def needed(self, what, *command):
        if self.prepare(what, *command):
            return True
        self.failed[what] = ""
        return False

    def left_out_count(self):
        return sum(map(len, self.left_out.values()))

    def note_skipped(self, name, reason, ran_elsewhere):
        """`ran_elsewhere`: tests by their names without the environment; what is among them is merely left out."""
        environment, _, test = name.partition(": ")
        path = test.replace("/", ".")  # a file that skips itself as a whole stands for its tests
        if test in ran_elsewhere or any(other.startswith(f"{path}.") for other in ran_elsewhere):
            self.left_out.setdefault((environment, reason), []).append(test)
        else:
            self.skipped.append(f"{name} ({reason})")

    def run_twice(self, run, ran_elsewhere=()):
        """Counts what run(None), all tests, answers, after run(names) has tried those that failed again; what ran.

        run answers name -> Outcome. What broke as a whole, a program of many tests, is one name in its first answer;
        when it does not break again the second answer has its tests instead.
        """
        first = run(None)
        broken = [name for name, outcome in first.items() if outcome.verdict == "failed"]
        if broken:
            self.log.write(f"\nonce more, alone: {', '.join(broken)}\n")
        second = run(broken) if broken else {}
        for name in [*first, *(name for name in second if name not in first)]:
            outcome = second.get(name) if name in broken else first.get(name, second.get(name))
            if outcome and outcome.verdict == "skipped" and name not in broken:
                self.note_skipped(name, outcome.text, ran_elsewhere)
            elif outcome:
                self.count(name, outcome.verdict == "passed", outcome.text)
            if name in broken and (not outcome or outcome.verdict == "passed"):
                self.unsteady[name] = first[name].text
        return {name for name, outcome in {**first, **second}.items() if outcome.verdict != "skipped"}


def first_failure(text):
    """The lines of an output from where it first speaks of a failure; the last ones if it never does."""
    lines = text.strip().splitlines()
    for number, line in enumerate(lines):
        if re.search(r": Failure$|^(FAIL|ERROR): |^E  |Sanitizer: |runtime error: |^BROKEN", line):
            return lines[number : number + UNSTEADY_LINES]
    return lines[-UNSTEADY_LINES:]


def tests_of(directory):
    """Name -> labels of every test that the build in a directory knows."""
    command = ["ctest", "--test-dir", directory, "--show-only=json-v1"]
    listed = subprocess.run(command, capture_output=True, text=True, check=True)
    tests = {}
    for test in json.loads(listed.stdout)["tests"]:
        properties = {entry["name"]: entry["value"] for entry in test.get("properties", [])}
        tests[test["name"]] = set(properties.get("LABELS", []))
    return tests


def run_ctest(stage, directory, names, env=None):
    """Runs tests of a build by their names, and counts each."""

    def run(again):
        wanted = sorted(names if again is None else again)
        report = stage.logs / f"{stage.name}{'' if again is None else '-again'}.xml"
        report.unlink(missing_ok=True)
        pattern = "^(" + "|".join(re.escape(name) for name in wanted) + ")$"
        stage.run(
            *("ctest", "--test-dir", directory, "--output-on-failure", "--tests-regex", pattern),
            *("--parallel", str(os.cpu_count() if again is None else 1)),
            *("--output-junit", report, "--test-output-size-passed", "1000000"),
            env=env,
        )
        return {**{name: Outcome("failed", "was not run") for name in wanted}, **dict(ctest_outcomes(stage, report))}

    stage.run_twice(run)


def ctest_outcomes(stage, report):
    cases = xml.etree.ElementTree.parse(report).getroot().iter("testcase") if report.exists() else ()
    for case in cases:
        name = case.get("name")
        output = case.findtext("system-out") or ""
        if case.find("skipped") is not None and case.get("status") != "fail":
            yield name, Outcome("skipped", case.find("skipped").get("message"))
            continue
        # The report has no word about a limit; the time tells.
        after = f"{output}\nended after {float(case.get('time') or 0):.1f} s"
        yield name, Outcome("passed") if case.get("status") == "run" else Outcome("failed", after)
        # A program passes when some of its tests skip themselves; they are named all the same.
        for inner in re.findall(r"^\[  SKIPPED \] (\S+) \(", output, re.MULTILINE):
            stage.skipped.append(f"{name}: {inner}")


def run_pytest(stage, python, folder, title, ran_elsewhere=()):
    """Runs the Python tests of a folder by an interpreter, and counts each under a title; those that ran, without it."""
    stem = f"{stage.name}-{title}-{str(folder).strip('/').replace('/', '-')}"
    cache = stage.logs / f"{stem}.cache"
    shutil.rmtree(cache, ignore_errors=True)
    whole = f"{title}: {folder}"

    def run(again):
        report = stage.logs / f"{stem}{'' if again is None else '-again'}.xml"
        report.unlink(missing_ok=True)
        chosen = [] if again is None or again == [whole] else ["--last-failed", "--last-failed-no-failures", "none"]
        code = stage.exit_code(
            *(python, "-m", "pytest", "-q", "-rs", "--continue-on-collection-errors", "-o", f"cache_dir={cache}"),
            *(f"--junitxml={report}", *chosen, folder),
            limit_s=PYTEST_LIMIT_S,
        )
        answer = dict(pytest_outcomes(report, title))
        if not answer or (code not in (0, 1) and all(outcome.verdict != "failed" for outcome in answer.values())):
            answer[whole] = Outcome("failed", f"the exit code is {code}; {len(answer)} tests are reported")
        # One that cannot be imported is a name without a class; its tests take its place.
        missing = [name for name in again or () if name not in answer and name != whole and "." in name.split(": ")[1]]
        return {**answer, **{name: Outcome("failed", "was not run") for name in missing}}

    return {name.partition(": ")[2] for name in stage.run_twice(run, ran_elsewhere)}


def reason_of(skipped):
    """Why pytest skipped a test. Of a whole file the message says nothing, but the text ends in it."""
    of_file = re.search(r"Skipped: (.*)['\"]\)$", skipped.text or "", re.DOTALL)
    return of_file[1] if of_file else skipped.get("message")


def pytest_outcomes(report, title):
    for case in xml.etree.ElementTree.parse(report).getroot().iter("testcase") if report.exists() else ():
        place = case.get("classname")
        name = f"{title}: {place}.{case.get('name')}" if place else f"{title}: {case.get('name').replace('.', '/')}"
        problem = case.find("failure") if case.find("failure") is not None else case.find("error")
        if (skipped := case.find("skipped")) is not None:
            yield name, Outcome("skipped", reason_of(skipped))
        elif problem is not None:
            yield name, Outcome("failed", f"{problem.text or ''}\n{problem.get('message') or ''}")
        else:
            yield name, Outcome("passed")


def run_fuzz(stage, programs, seconds, env=None):
    """Runs every fuzz target of a directory. A second try begins with the inputs that broke the target before."""
    work = None

    def run(again):
        nonlocal work
        began = stage.logged_bytes()
        more = () if again is None else (work or "", *(again if work else ()))
        stage.run("tests/fuzz/run.sh", programs, str(seconds), *more, env=env)
        printed = stage.logged_since(began)
        left = re.search(r"^inputs and logs: (.*)$", printed, re.MULTILINE)
        work = left.group(1) if left else None
        # One row per target: its name, runs, edges, and "ok" or what is wrong.
        rows = re.findall(r"^(fuzz_\w+) +\S+ +\S+ +(.*)$", printed, re.MULTILINE)
        answer = {name: Outcome("passed" if result == "ok" else "failed", result) for name, result in rows}
        return answer or {"fuzz": Outcome("failed", "no target ran")}

    stage.run_twice(run)
