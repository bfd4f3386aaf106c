"""Rows 24 to 39: damage, hostile trials, values, names, live readers, forks and threads.

Tests of the folders do most of them; here they are counted."""

import json
import os
import re
import subprocess

from survival_world import need, numbers

TENSORS = 4  # of a step, unless a run is told otherwise


def run_tests(world, program, pattern, rounds=1000):
    environment = {**os.environ, "TORNASOLE_TEST_ROUNDS": str(rounds)}
    line = [os.path.join(world.bin, program), f"--gtest_filter={pattern}", "--gtest_brief=1"]
    done = subprocess.run(line, capture_output=True, text=True, timeout=600, check=False, env=environment)
    ran = int(re.search(r"(\d+) tests? from", done.stdout).group(1))
    need(done.returncode == 0 and ran > 0, f"{program} {pattern}: {done.stdout[-800:]}")
    return {"tests": ran}


def row_24(world):
    """a thousand bit flips in event files."""
    return run_tests(world, "trial_test", "Damage.BitFlips*")


def row_24_full(world):
    """ten thousand bit flips in event files."""
    return run_tests(world, "trial_test", "Damage.BitFlips*", rounds=10_000)


def row_25(world):
    """a thousand changed bytes in index and collections files."""
    return run_tests(world, "trial_test", "Damage.ByteChanges*")


def row_25_full(world):
    """twenty thousand changed bytes in index and collections files, every other one in each."""
    return run_tests(world, "trial_test", "Damage.ByteChanges*", rounds=20_000)


def row_26(world):
    """every file cut at every byte, and delivered byte by byte."""
    return run_tests(world, "trial_test", "Damage.EveryFileCut*:Damage.ALiveReader*")


def row_31(world):
    """hostile trials."""
    return run_tests(world, "trial_test", "HostileTrial.*")


def row_29(world):
    """all types, bit-exact."""
    return run_tests(world, "capture_test", "*BitExact*")


def row_32(world):
    """names, the writing half."""
    return run_tests(world, "capture_test", "*BadNames*:*WorkerNames*:*CollectionNames*")


def row_33(world):
    """patterns."""
    return run_tests(world, "pattern_test", "Pattern.*:Limits.*")


def row_34(world):
    """configuration, mutated."""
    return run_tests(world, "config_test", "Mutations.*")


def row_35(world):
    """links and permissions."""
    return run_tests(world, "store_test", "*LocalPermissions*:*Traps*:*Links*")


def live_readers(world, seconds, ours, theirs):
    out, log = world.new_run()
    think = 20
    steps = seconds * 1000 // think
    writing = world.command(out, log, steps=steps, think_ms=think, bytes=4000, tensors=TENSORS, when_full="block")
    writer = world.start(writing, stdout=subprocess.PIPE, text=True)
    readers = [[os.path.join(world.bin, "live_reader"), out]] * ours
    readers += [[world.python, os.path.join(world.source, "tests/survival/live_smdebug.py"), out]] * theirs
    processes = [world.start(line, stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True) for line in readers]
    writer.communicate(timeout=seconds * 10 + 300)
    figures = {"readers": len(readers), "steps": 0, "passed_over_by_smdebug": 0, "violations": 0}
    figures |= {"p50_ms": 0, "p99_ms": 0}
    for line, process in zip(readers, processes):
        stdout, stderr = process.communicate(timeout=300 + 6 * seconds)
        need(process.returncode == 0, f"{os.path.basename(line[-2])}: {stdout} {stderr[-500:]}")
        answer = json.loads(stdout)
        figures["steps"] = max(figures["steps"], answer["steps"])
        # smdebug passes over a step whose file a listing misses that was made while it listed; we must not.
        if line[0] != world.python:
            need(answer["steps"] == steps, f"live_reader saw {answer['steps']} of {steps} steps")
        else:
            need(0 < answer["steps"] <= steps, f"smdebug saw {answer['steps']} of {steps} steps")
            figures["passed_over_by_smdebug"] = max(figures["passed_over_by_smdebug"], steps - answer["steps"])
        for key in ("p50_ms", "p99_ms"):
            figures[key] = max(figures[key], answer.get(key, 0))
    # Once the run is over nothing is made beside a listing, and smdebug finds every step.
    counts = world.check(out, log)
    need(counts["readable"] == steps and counts["lost"] == 0, f"{counts}")
    values = world.check_with_smdebug()
    need(values == steps * TENSORS, f"smdebug reads {values} values of {steps} steps")
    return figures


def row_36(world):
    """live readers for a minute: four of ours, two of smdebug."""
    return live_readers(world, 60, ours=4, theirs=2)


def row_36_full(world):
    """live readers for ten minutes: four of ours, four of smdebug."""
    return live_readers(world, 600, ours=4, theirs=4)


def row_37(world):
    """fork: children neither write nor hang."""
    out, log = world.new_run()
    done = world.train(out, log, steps=50, fork=8)
    need(done.returncode == 0 and "child" not in done.stderr, done.stderr)
    counts = world.check(out, log)
    need(counts["lost"] == 0, f"{counts}")
    return numbers(done)


def row_39(world):
    """16 threads, one recorder; two recorders."""
    out, log = world.new_run()
    done = world.train(out, log, steps=100, threads=16, tensors=64, bytes=20_000, when_full="block")
    need(done.returncode == 0, done.stderr)
    counts = world.check(out, log)
    need(counts["lost"] == 0, f"{counts}")
    return {**numbers(done), **run_tests(world, "capture_test", "*Threads*:*TwoHooks*")}
