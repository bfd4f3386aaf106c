#!/usr/bin/env python3
"""Runs the checks of the project in stages, each timed, all of them whatever fails, and ends in one line:

    N passed, N failed[, N skipped][, N left out]

A test counts once in each environment: a ctest entry, a Python test, a fuzz target; a check of all files is one test.
Skipped are tests whose Python environment cannot be made here; with CI=true that is a failure. Left out are tests that
an older PyTorch or another Python has to do without, and that ran in the main environment: they are named, with the
reason. Logs: build/test-logs/<stage>.log.
"""

import argparse
import json
import os
import pathlib
import re
import subprocess
import sys
import time
import xml.etree.ElementTree

ROOT = pathlib.Path(__file__).resolve().parent.parent
LOGS = ROOT / "build" / "test-logs"
# The label of the tests that need a Python environment, and its name in requirements/.
ENVIRONMENTS = {"interop": "smdebug", "survival": "smdebug"}
# Environment -> the folders whose tests run in it, with the package installed there. The first one runs everything.
PYTHON_SUITES = {
    "torch": ["tests/python/core", "tests/python/trials", "tests/python/torch", "tests/python/run", "tests/acceptance"],
    "torch-old": ["tests/python/torch"],
}
# Run with the package and a few libraries alone, besides the Python of the environments: those of the table in
# pyproject.toml that are on this machine.
OTHER_PYTHONS = ["3.10", "3.12", "3.13"]
NO_SUCH_PYTHON = 77  # what scripts/python_version.sh exits with
SANITIZER_OPTIONS = {
    "ASAN_OPTIONS": "detect_stack_use_after_return=1:strict_string_checks=1:check_initialization_order=1",
    "UBSAN_OPTIONS": "print_stacktrace=1",
    "TSAN_OPTIONS": "halt_on_error=1:second_deadlock_stack=1",
    "ASAN_SYMBOLIZER_PATH": "/usr/bin/llvm-symbolizer-19",
    "TSAN_SYMBOLIZER_PATH": "/usr/bin/llvm-symbolizer-19",
}


class Stage:
    """One stage while it runs: where its output goes and what it has counted."""

    def __init__(self, name):
        self.name = name
        self.passed = 0
        self.failed = []
        self.skipped = []
        self.left_out = {}  # (environment, reason) -> names
        LOGS.mkdir(parents=True, exist_ok=True)
        self.log_path = LOGS / f"{name}.log"
        self.log = self.log_path.open("w")

    def run(self, *command, env=None):
        """Runs a command into the log; whether it succeeded."""
        return self.exit_code(*command, env=env) == 0

    def exit_code(self, *command, env=None):
        self.log.write(f"$ {' '.join(map(str, command))}\n")
        self.log.flush()
        environment = {**os.environ, **(env or {})}
        return subprocess.run(command, cwd=ROOT, env=environment, stdout=self.log, stderr=subprocess.STDOUT).returncode

    def count(self, what, succeeded):
        if succeeded:
            self.passed += 1
        else:
            self.failed.append(what)

    def check(self, what, *command, env=None):
        """Runs a command that is one test."""
        succeeded = self.run(*command, env=env)
        self.count(what, succeeded)
        return succeeded

    def configure(self, preset):
        if self.run("cmake", "--preset", preset):
            return True
        self.failed.append(f"configure {preset}")
        return False

    def build(self, preset, *targets):
        wanted = [argument for target in targets for argument in ("--target", target)]
        if self.run("cmake", "--build", "--preset", preset, *wanted):
            return True
        self.failed.append(f"build {preset}")
        return False


def build_dir(preset):
    return ROOT / "build" if preset == "release" else ROOT / "build" / preset


def tests_of(preset):
    """Name -> labels of every test that the build knows."""
    command = ["ctest", "--test-dir", build_dir(preset), "--show-only=json-v1"]
    listed = subprocess.run(command, capture_output=True, text=True, check=True)
    tests = {}
    for test in json.loads(listed.stdout)["tests"]:
        properties = {entry["name"]: entry["value"] for entry in test.get("properties", [])}
        tests[test["name"]] = set(properties.get("LABELS", []))
    return tests


def make_environments(stage, labels):
    """Makes what the labelled tests need; the labels that cannot be served."""
    missing = set()
    for label in sorted(labels & ENVIRONMENTS.keys()):
        if not stage.run("scripts/env.sh", ENVIRONMENTS[label]):
            missing.add(label)
    return missing


def ctest(stage, preset, *, without=(), only=None):
    """Runs the tests of a build whose labels are wanted, and counts each."""
    chosen = {
        name: labels
        for name, labels in tests_of(preset).items()
        if not labels & set(without) and (only is None or only in labels)
    }
    missing = make_environments(stage, set().union(*chosen.values()) if chosen else set())
    for name in sorted(name for name, labels in chosen.items() if labels & missing):
        del chosen[name]
        stage.skipped.append(f"{name} (its Python environment cannot be made)")
    if not chosen:
        return
    report = LOGS / f"{stage.name}.xml"
    report.unlink(missing_ok=True)
    names = "^(" + "|".join(re.escape(name) for name in sorted(chosen)) + ")$"
    stage.run(
        *("ctest", "--test-dir", build_dir(preset), "--output-on-failure", "--tests-regex", names),
        *("--parallel", str(os.cpu_count()), "--output-junit", report, "--test-output-size-passed", "1000000"),
        env=SANITIZER_OPTIONS,
    )
    count_report(stage, report, set(chosen))


def count_report(stage, report, expected):
    seen = set()
    cases = xml.etree.ElementTree.parse(report).getroot().iter("testcase") if report.exists() else ()
    for case in cases:
        name = case.get("name")
        seen.add(name)
        if case.find("skipped") is not None and case.get("status") != "fail":
            stage.skipped.append(f"{name} ({case.find('skipped').get('message')})")
            continue
        stage.count(name, case.get("status") == "run")
        # A program passes when some of its tests skip themselves; they are named all the same.
        for inner in re.findall(r"^\[  SKIPPED \] (\S+) \(", case.findtext("system-out") or "", re.MULTILINE):
            stage.skipped.append(f"{name}: {inner}")
    stage.failed += [f"{name} (was not run)" for name in sorted(expected - seen)]


def stage_format(stage):
    stage.check("format", "scripts/format.sh", "--check")


def stage_lint(stage):
    if stage.configure("release"):
        stage.check("lint", "scripts/lint.py", "build")


def stage_layering(stage):
    stage.run(sys.executable, "tests/layering_test.py", "-v")
    output = stage.log_path.read_text()
    verdicts = re.findall(r"^(\w+) \(.*\.\.\. (ok|FAIL|ERROR|skipped.*)$", output, re.MULTILINE)
    for name, verdict in verdicts:
        stage.count(f"layering: {name}", verdict == "ok")
    if not verdicts:
        stage.failed.append("layering: no test ran")


def stage_release(stage):
    if stage.configure("release") and stage.build("release"):
        ctest(stage, "release", without=("long", "install"))


def stage_asan(stage):
    if stage.configure("asan") and stage.build("asan"):
        ctest(stage, "asan", without=("long", "interop", "survival", "install", "docs"))


def fuzz(stage, seconds):
    if not (stage.configure("asan") and stage.build("asan")):
        return
    stage.run("tests/fuzz/run.sh", build_dir("asan") / "bin", str(seconds), env=SANITIZER_OPTIONS)
    stage.log.flush()
    # One row per target: its name, runs, edges, and "ok" or what is wrong.
    rows = re.findall(r"^(fuzz_\w+) +\S+ +\S+ +(.*)$", stage.log_path.read_text(errors="replace"), re.MULTILINE)
    for name, result in rows:
        stage.count(name, result == "ok")
    if not rows:
        stage.failed.append("fuzz: no target ran")


def stage_fuzz(stage):
    fuzz(stage, 30)


def stage_fuzz_long(stage):
    fuzz(stage, 600)


def stage_tsan(stage):
    if not stage.configure("tsan"):
        return
    # A test is named as its program, so only these are built.
    programs = sorted(name for name, labels in tests_of("tsan").items() if "threads" in labels)
    if not programs:
        stage.failed.append("tsan: no test has the label threads")
    elif stage.build("tsan", *programs):
        ctest(stage, "tsan", only="threads", without=("long",))


def pytest(stage, environment, folder, ran_elsewhere=None):
    """Runs the Python tests of a folder in an environment, and counts each; the tests that ran."""
    python = ROOT / ".venvs" / environment / "bin" / "python"
    report = LOGS / f"{stage.name}-{environment}-{folder.replace('/', '-')}.xml"
    report.unlink(missing_ok=True)
    stage.run(python, "-m", "pytest", "-q", "-rs", "-p", "no:cacheprovider", f"--junitxml={report}", folder)
    ran = count_pytest(stage, environment, report, ran_elsewhere)
    if not ran:
        stage.failed.append(f"{environment}: {folder}: no test ran")
    return ran


def reason_of(skipped):
    """Why pytest skipped a test. Of a whole file the message says nothing, but the text ends in it."""
    of_file = re.search(r"Skipped: (.*)['\"]\)$", skipped.text or "", re.DOTALL)
    return of_file[1] if of_file else skipped.get("message")


def count_pytest(stage, environment, report, ran_elsewhere):
    """Counts the tests of a report; those that ran. `ran_elsewhere`: what this environment may leave out."""
    ran = set()
    cases = xml.etree.ElementTree.parse(report).getroot().iter("testcase") if report.exists() else ()
    for case in cases:
        # A file that skips itself as a whole has no class.
        name = ".".join(filter(None, (case.get("classname"), case.get("name"))))
        skipped = case.find("skipped")
        if skipped is None:
            ran.add(name)
            stage.count(f"{environment}: {name}", case.find("failure") is None and case.find("error") is None)
        elif ran_elsewhere and any(other == name or other.startswith(f"{name}.") for other in ran_elsewhere):
            stage.left_out.setdefault((environment, reason_of(skipped)), []).append(name)
        else:
            stage.skipped.append(f"{environment}: {name} ({reason_of(skipped)})")
    return ran


def stage_python(stage):
    # Peers that some of the tests call.
    for environment in ("smdebug", "bench"):
        if not stage.run("scripts/env.sh", environment):
            stage.failed.append(f"the environment {environment} cannot be made")
    ran_in_main = set()
    for environment, folders in PYTHON_SUITES.items():
        if not stage.run("scripts/env.sh", environment):
            stage.skipped += [f"{folder} (the environment {environment} cannot be made)" for folder in folders]
            continue
        is_main = environment == next(iter(PYTHON_SUITES))
        for folder in folders:
            ran = pytest(stage, environment, folder, None if is_main else ran_in_main)
            if is_main:
                ran_in_main |= ran
    for version in OTHER_PYTHONS:
        name = f"Python {version}"
        report = LOGS / f"{stage.name}-{version}.xml"
        report.unlink(missing_ok=True)
        code = stage.exit_code("scripts/python_version.sh", version, report)
        if code == NO_SUCH_PYTHON:
            what = ["pip install .", "tests/python/core", "tests/python/trials"]
            stage.left_out[name, "it is not on this machine"] = what
            continue
        stage.count(f"{name}: pip install .", report.exists())
        count_pytest(stage, name, report, ran_in_main)


def stage_install(stage):
    if stage.configure("release") and stage.build("release"):
        ctest(stage, "release", only="install", without=("long",))


def stage_long(stage):
    if stage.configure("release") and stage.build("release"):
        ctest(stage, "release", only="long")


EVERY_CHANGE = {
    "format": stage_format,
    "lint": stage_lint,
    "layering": stage_layering,
    "release": stage_release,
    "python": stage_python,
    "asan": stage_asan,
    "fuzz": stage_fuzz,
    "tsan": stage_tsan,
    "install": stage_install,
}
LONG = {"long": stage_long, "fuzz-long": stage_fuzz_long}


def run_stage(name, function):
    print(f"== {name}", flush=True)
    began = time.monotonic()
    stage = Stage(name)
    try:
        function(stage)
    except (OSError, subprocess.CalledProcessError, ValueError) as error:
        stage.failed.append(f"{name}: {error}")
    stage.log.close()
    if os.environ.get("CI") == "true" and stage.skipped:
        stage.failed += [f"{what}: skipped, and CI=true forbids it" for what in stage.skipped]
        stage.skipped = []
    if stage.failed:
        lines = stage.log_path.read_text(errors="replace").splitlines()
        print(*lines[-80:], sep="\n")
    seconds = time.monotonic() - began
    print(f"== {name}: {len(stage.failed)} failed, {stage.passed} passed, {seconds:.0f} s", flush=True)
    return stage, seconds


def count_left_out(stage):
    return sum(map(len, stage.left_out.values()))


def main():
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--long", action="store_true", help="the long stages instead of those of every change")
    parser.add_argument("--stages", help="only these, separated by commas")
    arguments = parser.parse_args()
    stages = LONG if arguments.long else EVERY_CHANGE
    names = arguments.stages.split(",") if arguments.stages else list(stages)
    if unknown := [name for name in names if name not in stages]:
        parser.error(f"no stage is called {', '.join(unknown)}; there are {', '.join(stages)}")

    results = [run_stage(name, stages[name]) for name in names]
    print("\nstage          seconds  passed  failed  skipped  left out")
    for stage, seconds in results:
        counts = f"{stage.passed:6d}  {len(stage.failed):6d}  {len(stage.skipped):7d}  {count_left_out(stage):8d}"
        print(f"{stage.name:14s} {seconds:7.0f}  {counts}")
    for stage, _ in results:
        for what in stage.failed:
            print(f"failed:  {stage.name}: {what}")
        for what in stage.skipped:
            print(f"skipped: {stage.name}: {what}")
        for (environment, reason), names in sorted(stage.left_out.items()):
            print(f"left out: {stage.name}: {environment}: {reason}: {', '.join(sorted(names))}")
    passed = sum(stage.passed for stage, _ in results)
    failed = sum(len(stage.failed) for stage, _ in results)
    skipped = sum(len(stage.skipped) for stage, _ in results)
    left_out = sum(count_left_out(stage) for stage, _ in results)
    rest = [f", {count} {what}" for count, what in ((skipped, "skipped"), (left_out, "left out")) if count]
    print(f"{passed} passed, {failed} failed{''.join(rest)}")
    sys.exit(1 if failed else 0)


main()
