#!/usr/bin/env python3
"""Runs killed at random moments, then repaired: what was finished is there, and a second repair changes nothing.

Steps that come faster than the disk takes them wait in the queue and die with the process. So a run that is paced is
killed when a step that it finished is on disk, and that one and all before must be there; in one that is not, all
before the last that has reached the disk, and that one if its values are complete.

usage: repair_survival_test.py --bin DIR [--runs N] [--seed N]
"""

import argparse
import hashlib
import json
import pathlib
import random
import subprocess
import sys
import tempfile
import time
import unittest

PACED_MS = 40
PATIENCE_S = 120  # for what happens at once on a machine that is not busy


def is_paced(options):
    """Whether a busy machine's writer keeps up: few bytes, and time between the steps."""
    return options["think_ms"] == PACED_MS and options["tensors"] * options["bytes"] <= 100_000


def snapshot(directory):
    """Every file with its content, and when it was changed."""
    return {
        str(path.relative_to(directory)): (hashlib.sha256(path.read_bytes()).hexdigest(), path.stat().st_mtime_ns)
        for path in sorted(directory.rglob("*"))
        if path.is_file()
    }


def logged_steps(log):
    """Whole lines only: the run may be writing one."""
    return [int(line) for line in log.read_text().split("\n")[:-1]] if log.exists() else []


def index_file(out, step):
    return out / "index" / f"{step // 1000:09}" / f"{step:012}_worker_0.json"


def on_disk(out):
    """The steps of which something has reached the disk, and those whose values are complete."""
    begun = {int(path.name) for path in (out / "events").glob("*") if path.name.isdigit()}
    files = {step: out / "events" / f"{step:012}" / f"{step:012}_worker_0.tfevents" for step in begun}
    return begun, {step for step, path in files.items() if path.exists()}


class Repair(unittest.TestCase):
    def setUp(self):
        scratch = tempfile.TemporaryDirectory(prefix="tornasole-repair-")
        self.addCleanup(scratch.cleanup)
        self.scratch = pathlib.Path(scratch.name)

    def start(self, number, **options):
        out, log = self.scratch / f"run{number}", self.scratch / f"log{number}"
        line = [ARGS.bin / "survival_train", "--out", out, "--log", log, "--steps", "1000000"]
        for key, value in options.items():
            line += [f"--{key.replace('_', '-')}", str(value)]
        process = subprocess.Popen(line, stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL)
        self.addCleanup(process.wait)
        self.addCleanup(process.kill)
        return process, out, log

    def until(self, process, condition, what):
        last = time.monotonic() + PATIENCE_S
        while not condition():
            self.assertIsNone(process.poll(), f"the run ended by itself, before {what}")
            self.assertLess(time.monotonic(), last, f"not there after {PATIENCE_S} s: {what}")
            time.sleep(0.002)

    def probe(self, command, out, *arguments, code=0):
        done = subprocess.run([ARGS.bin / "tools_probe", command, out, *arguments], capture_output=True, text=True)
        self.assertEqual(done.returncode, code, done.stdout + done.stderr)
        return json.loads(done.stdout) if code in (0, 3) else done.stderr

    def repaired(self, out, log, finished, paced=True):
        before = snapshot(out)
        if not paced:
            begun, complete = on_disk(out)
            finished = [step for step in finished if step < max(begun, default=-1) or step in complete]
        planned = self.probe("repair", out, "--dry-run")
        self.assertEqual(snapshot(out), before, "a dry run changed something")
        done = self.probe("repair", out)
        self.assertEqual(done["actions"], planned["actions"])
        self.assertEqual(done["problems"], [])
        after = snapshot(out)
        for path, state in before.items():
            if not path.endswith((".tmp", "_health.json", "claim.smd")):
                self.assertEqual(after.get(path), state, f"{path} was published and changed")
        self.assertFalse([path for path in after if path.endswith(".tmp")])
        verified = self.probe("verify", out)
        self.assertTrue(verified["sound"])
        self.assertEqual((verified["temporary"], verified["debris"]), (0, 0))
        checked = subprocess.run([ARGS.bin / "survival_check", log, out], capture_output=True, text=True)
        self.assertEqual(checked.returncode, 0, checked.stdout + checked.stderr)
        steps = {int(path.name.split("_")[0]) for path in (out / "index").rglob("*.json")}
        self.assertEqual(sorted(set(finished) - steps)[:10], [], "steps that were finished are missing")
        self.assertEqual(self.probe("repair", out)["actions"], [])
        self.assertEqual(snapshot(out), after, "a second repair changed something")
        return done, len(finished)

    def test_killed_at_random(self):
        chance = random.Random(ARGS.seed)
        finished = salvaged = partial = 0
        worst = 0.0
        for number in range(ARGS.runs):
            options = {"think_ms": chance.choice([0, 1, 5, PACED_MS]), "tensors": chance.randint(1, 20),
                       "bytes": chance.choice([40, 4000, 400000]), "when_full": "block"}
            with self.subTest(run=number, **options):
                process, out, log = self.start(number, **options)
                paced = is_paced(options)
                self.until(process, out.exists, "a directory")
                if paced:
                    self.until(process, lambda: logged_steps(log), "a finished step")
                time.sleep(chance.uniform(0.05, 0.9))
                done = logged_steps(log)
                if paced:
                    began = time.monotonic()
                    self.until(process, index_file(out, done[-1]).exists, f"step {done[-1]} on disk")
                    worst = max(worst, time.monotonic() - began)
                    time.sleep(chance.uniform(0, 0.05))
                process.kill()
                process.wait()
                report, count = self.repaired(out, log, done, paced=paced)
                finished += count
                salvaged += report["steps"]
                partial += report["values"]
        print(f"{ARGS.runs} runs killed, {finished} steps finished in time, all there; {salvaged} open steps "
              f"published with {partial} values; on disk after {worst:.3f} s at most", file=sys.stderr)
        self.assertGreater(finished, 0)

    def test_a_live_run_is_refused(self):
        process, out, log = self.start("live", think_ms=5, tensors=3)
        try:
            self.until(process, lambda: len(logged_steps(log)) >= 3, "three steps")
            for arguments in ([], ["--dry-run"]):
                message = self.probe("repair", out, *arguments, code=1)
                self.assertIn("live run", message)
                self.assertIn(f"process {process.pid}", message)
            self.probe("verify", out)
        finally:
            process.kill()
            process.wait()
        self.repaired(out, log, [])

    def test_an_attempt_that_was_moved_aside_is_repaired_too(self):
        for number in range(2):
            process, out, log = self.start("again", think_ms=1, tensors=5, bytes=40000)
            # The second begins by moving what the first left.
            written = [out] if number == 0 else [out / "attempts" / "1", out]
            self.until(process, lambda: all(index_file(place, 3).exists() for place in written), "four steps on disk")
            process.kill()
            process.wait()
            log.rename(log.with_suffix(f".{number}"))
        self.assertTrue((out / "attempts" / "1").is_dir())
        self.probe("repair", out)
        self.assertTrue((out / "attempts" / "1" / "training_job_end.ts").exists())
        report = self.probe("verify", out)
        self.assertTrue(all(attempt["sound"] for attempt in report["attempts"]))
        self.assertEqual(self.probe("repair", out)["actions"], [])


if __name__ == "__main__":
    parser = argparse.ArgumentParser()
    parser.add_argument("--bin", type=pathlib.Path, required=True)
    parser.add_argument("--runs", type=int, default=10)
    parser.add_argument("--seed", type=int, default=20240817)
    ARGS = parser.parse_args()
    unittest.main(argv=sys.argv[:1])
