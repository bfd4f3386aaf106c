#!/usr/bin/env python3
"""Runs the checks of the project in stages, each timed, all of them whatever fails, and ends in one line:

    N passed, N failed[, N skipped][, N left out][, N unsteady]

A test counts once in each environment: a ctest entry, a Python test, a fuzz target; a check of all files is one test.
Skipped are tests whose Python environment cannot be made here; with CI=true that is a failure. Left out are tests that
an environment has to do without (an older PyTorch, Keras 3, another Python), and that ran in one before it: they are
named, with the reason. A test that fails runs once more, alone; if it passes then it has passed and is named as
unsteady, with what it said at first. Logs: build/test-logs/<stage>.log.
"""

import argparse
import concurrent.futures
import os
import re
import subprocess
import sys
import time

from stage_tests import ROOT, Outcome, Stage, first_failure, pytest_outcomes, run_ctest, run_fuzz, run_pytest, tests_of

# The label of the tests that need a Python environment, and its name in requirements/.
ENVIRONMENTS = {"interop": "smdebug", "survival": "smdebug", "s3": "s3"}
# Environment -> the folders whose tests run in it, with the package installed there. The first one of a folder runs
# everything that is in it.
PYTHON_SUITES = {
    "torch": [
        *("tests/python/core", "tests/python/trials", "tests/python/rules", "tests/python/torch", "tests/python/run"),
        "tests/acceptance",
        *("tests/zoo", "tests/scripts"),
    ],
    "torch-old": ["tests/python/torch"],
}
FRAMEWORK_SUITES = {
    "xgboost": ["tests/python/xgboost", "tests/acceptance/of_xgboost"],
    "xgboost-old": ["tests/python/xgboost"],
    "mxnet": ["tests/python/mxnet", "tests/acceptance/of_mxnet"],
    "jax": ["tests/python/jax"],
    # Keras 2 has everything that is tested; Keras 3 does without sessions and older optimizers.
    "tensorflow-legacy": ["tests/python/tensorflow"],
    "tensorflow": ["tests/python/tensorflow", "tests/acceptance/of_tensorflow"],
    "keras-torch": ["tests/python/keras_torch"],
    "tensorboard": ["tests/python/tensorboard"],
}
# Peers that some of these tests call.
PYTHON_PEERS = ["smdebug", "bench", "xgboost-old"]
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


def build_dir(preset):
    return ROOT / "build" if preset == "release" else ROOT / "build" / preset


def make_environment(stage, name):
    return stage.prepare(f"the environment {name}", "scripts/env.sh", name)


def make_environments(stage, labels):
    """Makes what the labelled tests need; the labels that cannot be served."""
    missing = set()
    for label in sorted(labels & ENVIRONMENTS.keys()):
        if not make_environment(stage, ENVIRONMENTS[label]):
            missing.add(label)
    return missing


def ctest(stage, preset, *, without=(), only=None):
    """Runs the tests of a build whose labels are wanted, and counts each."""
    chosen = {
        name: labels
        for name, labels in tests_of(build_dir(preset)).items()
        if not labels & set(without) and (only is None or only in labels)
    }
    missing = make_environments(stage, set().union(*chosen.values()) if chosen else set())
    for name in sorted(name for name, labels in chosen.items() if labels & missing):
        del chosen[name]
        stage.skipped.append(f"{name} (its Python environment cannot be made)")
    if not chosen:
        return
    run_ctest(stage, build_dir(preset), chosen, env=SANITIZER_OPTIONS)


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
        stage.failed["layering: no test ran"] = ""


def stage_build(stage):
    """What is compiled here is in the compiler cache for the package of the stage that runs beside the others."""
    if stage.configure("release"):
        stage.build("release")


def stage_release(stage):
    if stage.configure("release") and stage.build("release"):
        ctest(stage, "release", without=("long", "install", "adapters"))


def stage_asan(stage):
    if stage.configure("asan") and stage.build("asan"):
        ctest(stage, "asan", without=("long", "interop", "survival", "install", "adapters", "docs"))


def fuzz(stage, seconds):
    if stage.configure("asan") and stage.build("asan"):
        run_fuzz(stage, build_dir("asan") / "bin", seconds, env=SANITIZER_OPTIONS)


def stage_fuzz(stage):
    fuzz(stage, 10)


def stage_fuzz_long(stage):
    fuzz(stage, 600)


def stage_tsan(stage):
    if not stage.configure("tsan"):
        return
    # A test is named as its program, so only these are built.
    programs = sorted(name for name, labels in tests_of(build_dir("tsan")).items() if "threads" in labels)
    if not programs:
        stage.failed["tsan: no test has the label threads"] = ""
    elif stage.build("tsan", *programs):
        ctest(stage, "tsan", only="threads", without=("long",))


def run_suites(stage, suites):
    """Runs the tests of Python environments, one after the other; what ran."""
    for environment in PYTHON_PEERS:
        if not make_environment(stage, environment):
            stage.failed[f"the environment {environment} cannot be made"] = ""
    ran = set()  # in an environment before
    for environment, folders in suites.items():
        if not make_environment(stage, environment):
            stage.skipped += [f"{folder} (the environment {environment} cannot be made)" for folder in folders]
            continue
        python = ROOT / ".venvs" / environment / "bin" / "python"
        in_this = [run_pytest(stage, python, folder, environment, ran) for folder in folders]
        ran = ran.union(*in_this)
    return ran


def stage_python(stage):
    ran = run_suites(stage, PYTHON_SUITES)
    for version in OTHER_PYTHONS:
        stage.run_twice(lambda _, version=version: installed_with(stage, version), ran)


def stage_frameworks(stage):
    run_suites(stage, FRAMEWORK_SUITES)


def installed_with(stage, version):
    """Installs the package with another Python, and runs the tests that need no framework."""
    title = f"Python {version}"
    report = stage.logs / f"{stage.name}-{version}.xml"
    report.unlink(missing_ok=True)
    began = stage.logged_bytes()
    code = stage.exit_code("scripts/python_version.sh", version, report)
    if code == NO_SUCH_PYTHON:
        what = ["pip install .", "tests/python/core", "tests/python/trials", "tests/python/rules"]
        stage.left_out[title, "it is not on this machine"] = what
        return {}
    answer = dict(pytest_outcomes(report, title))
    installed = Outcome("passed") if answer else Outcome("failed", stage.logged_since(began))
    return {f"{title}: pip install .": installed, **answer}


def stage_install(stage):
    if stage.configure("release") and stage.build("release"):
        ctest(stage, "release", only="install", without=("long",))


def stage_adapters(stage):
    if not stage.prepare("the packages of the adapters", "scripts/packages.sh", "adapters"):
        stage.skipped.append("adapters_test (its packages cannot be installed)")
        return
    for environment in ("torch", "torch-old", "xgboost", "xgboost-old"):
        if not make_environment(stage, environment):
            stage.skipped.append(f"adapters_test (the environment {environment} cannot be made)")
            return
    if stage.configure("release") and stage.build("release"):
        ctest(stage, "release", only="adapters")


def stage_long(stage):
    if stage.configure("release") and stage.build("release"):
        ctest(stage, "release", only="long")


EVERY_CHANGE = {
    "format": stage_format,
    "lint": stage_lint,
    "layering": stage_layering,
    "build": stage_build,
    "python": stage_python,
    "release": stage_release,
    "asan": stage_asan,
    "fuzz": stage_fuzz,
    "tsan": stage_tsan,
    "install": stage_install,
    "adapters": stage_adapters,
    "frameworks": stage_frameworks,
}
LONG = {"long": stage_long, "fuzz-long": stage_fuzz_long}
BESIDE = "python"


def run_stage(name, function):
    print(f"== {name}", flush=True)
    began = time.monotonic()
    stage = Stage(name)
    try:
        function(stage)
    except (OSError, subprocess.CalledProcessError, ValueError) as error:
        stage.failed[f"{name}: {error}"] = ""
    stage.log.close()
    if os.environ.get("CI") == "true" and stage.skipped:
        stage.failed |= {f"{what}: skipped, and CI=true forbids it": "" for what in stage.skipped}
        stage.skipped = []
    if stage.failed:
        lines = stage.log_path.read_text(errors="replace").splitlines()
        print(*lines[-80:], sep="\n")
    seconds = time.monotonic() - began
    print(f"== {name}: {len(stage.failed)} failed, {stage.passed} passed, {seconds:.0f} s", flush=True)
    return stage, seconds


def run_all(names, stages):
    """Runs stages in turn, but BESIDE beside those after it: it keeps one processor busy at most, and builds the rest."""
    with concurrent.futures.ThreadPoolExecutor() as pool:
        results = []
        for name in names:
            started = pool.submit(run_stage, name, stages[name])
            if name != BESIDE:
                started.result()
            results.append(started)
        return [started.result() for started in results]


def main():
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--long", action="store_true", help="the long stages instead of those of every change")
    parser.add_argument("--stages", help="only these, separated by commas")
    arguments = parser.parse_args()
    stages = LONG if arguments.long else EVERY_CHANGE
    names = arguments.stages.split(",") if arguments.stages else list(stages)
    if unknown := [name for name in names if name not in stages]:
        parser.error(f"no stage is called {', '.join(unknown)}; there are {', '.join(stages)}")

    results = run_all(names, stages)
    print("\nstage          seconds  passed  failed  skipped")
    for stage, seconds in results:
        counts = f"{stage.passed:6d}  {len(stage.failed):6d}  {len(stage.skipped):7d}"
        print(f"{stage.name:14s} {seconds:7.0f}  {counts}")
    for stage, _ in results:
        for (environment, reason), names in sorted(stage.left_out.items()):
            print(f"left out: {stage.name}: {environment}: {reason}: {', '.join(sorted(names))}")
    for stage, _ in results:
        for what, text in stage.unsteady.items():
            print(f"unsteady: {stage.name}: {what}", *first_failure(text), sep="\n    ")
    # What must be looked at stands last: of a long output people are shown the end.
    for stage, _ in results:
        for what in stage.skipped:
            print(f"skipped: {stage.name}: {what}")
        for what, text in stage.failed.items():
            print(f"failed:  {stage.name}: {what}", *first_failure(text), sep="\n    ")
    passed = sum(stage.passed for stage, _ in results)
    failed = sum(len(stage.failed) for stage, _ in results)
    skipped = sum(len(stage.skipped) for stage, _ in results)
    left_out = sum(stage.left_out_count() for stage, _ in results)
    unsteady = sum(len(stage.unsteady) for stage, _ in results)
    others = ((skipped, "skipped"), (left_out, "left out"), (unsteady, "unsteady"))
    rest = [f", {count} {what}" for count, what in others if count]
    print(f"{passed} passed, {failed} failed" + "".join(rest))
    sys.exit(1 if failed else 0)


if __name__ == "__main__":
    main()
