#!/usr/bin/env python3
"""tornasole tail: follows a run as it is written and ends when the run does, with the reason."""

import os
import subprocess
import tempfile
import threading

from cli_program import PROGRAM, WRITER, ProgramTest, environment, main, strict_json


class LiveRun(ProgramTest):
    def setUp(self):
        directory = tempfile.TemporaryDirectory()
        self.addCleanup(directory.cleanup)
        self.path = os.path.join(directory.name, "run")

    def start_run(self):
        run = subprocess.Popen(
            [WRITER, "live", self.path], stdin=subprocess.PIPE, stdout=subprocess.PIPE, text=True, env=environment()
        )
        self.addCleanup(self.finish, run)
        return run

    def finish(self, process):
        process.kill()
        process.communicate()

    def order(self, run, what):
        run.stdin.write(what + "\n")
        run.stdin.flush()
        if what == "step":
            self.assertEqual(run.stdout.readline(), "done\n")

    def start_tail(self, *arguments):
        tail = subprocess.Popen(
            [PROGRAM, "tail", self.path, "--poll", "0.02", "--timeout", "120", *arguments],
            stdout=subprocess.PIPE,
            stderr=subprocess.PIPE,
            text=True,
            env=environment(),
        )
        alarm = threading.Timer(400, tail.kill)
        alarm.start()
        self.addCleanup(alarm.cancel)
        self.addCleanup(self.finish, tail)
        return tail

    def test_lines_come_while_the_run_writes_and_end_with_it(self):
        tail = self.start_tail()  # before there is a directory
        run = self.start_run()
        for number in range(3):
            self.order(run, "step")
            self.assertEqual(tail.stdout.readline(), f"step {number} (TRAIN {number})  loss {4 / 2**number:g}\n")
        self.order(run, "end")
        rest, errors = tail.communicate(timeout=300)
        self.assertEqual((rest, errors, tail.returncode), ("the run ended\n", "", 0))

    def test_a_run_that_dies_is_noticed(self):
        run = self.start_run()
        self.order(run, "step")
        tail = self.start_tail("--json")
        first = tail.stdout.readline()
        self.assertEqual(strict_json(first).get("values"), {"loss": 4.0}, first)
        run.kill()
        run.wait()
        rest, errors = tail.communicate(timeout=300)
        self.assertEqual((errors, tail.returncode), ("", 1))
        self.assertEqual(strict_json(rest)["end"], "presumed dead")

    def test_only_the_last_steps_are_shown_first(self):
        run = self.start_run()
        for _ in range(5):
            self.order(run, "step")
        self.order(run, "end")
        run.wait(timeout=300)
        result = self.run_program("tail", self.path, "-n", "2")
        self.assertEqual(result.stdout.splitlines()[0], "step 3 (TRAIN 3)  loss 0.5")
        self.assertEqual(len(result.stdout.splitlines()), 3)
        self.assertEqual(len(self.run_program("tail", self.path, "-n", "0").stdout.splitlines()), 1)

    def test_a_run_that_is_just_being_set_up_is_waited_for(self):
        for sign in ("claim.smd", "claim-0123456789abcdef0123456789abcdef.tmp", "tornasole/worker_0_health.json"):
            path = os.path.join(self.path, sign.partition(".")[0])
            os.makedirs(os.path.dirname(os.path.join(path, sign)))
            with open(os.path.join(path, sign), "w") as file:
                file.write("{}")
            with self.subTest(sign=sign):
                result = self.run_program("tail", path, "--poll", "0.01", "--timeout", "0.1")
                self.assertEqual((result.returncode, result.stdout), (1, ""))
                self.assertIn("a run has begun there and written nothing yet", result.stderr)

    def test_a_run_that_never_begins(self):
        result = self.run_program("tail", self.path, "--poll", "0.01", "--timeout", "0.1")
        self.assertEqual((result.returncode, result.stdout), (1, ""))
        self.assertIn("no such directory; waited 0.1 s", result.stderr)


if __name__ == "__main__":
    main()
