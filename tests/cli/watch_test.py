#!/usr/bin/env python3
"""tornasole watch: a run as it goes, what is found in it as soon as it is there, and an end with the run."""

import os
import subprocess
import tempfile
import threading
import time

from cli_program import PROGRAM, WRITER, ProgramTest, environment, main, strict_json


class WatchTest(ProgramTest):
    def setUp(self):
        directory = tempfile.TemporaryDirectory()
        self.addCleanup(directory.cleanup)
        self.path = os.path.join(directory.name, "run")

    def finish(self, process):
        process.kill()
        process.communicate()

    def start_run(self):
        run = subprocess.Popen(
            [WRITER, "live", self.path], stdin=subprocess.PIPE, stdout=subprocess.PIPE, text=True, env=environment()
        )
        self.addCleanup(self.finish, run)
        return run

    def order(self, run, what):
        run.stdin.write(what + "\n")
        run.stdin.flush()
        return run.stdout.readline().strip() if what != "end" else None

    def start_watch(self, *arguments):
        watch = subprocess.Popen(
            [PROGRAM, "watch", self.path, "--poll", "0.02", "--timeout", "60", *arguments],
            stdout=subprocess.PIPE,
            stderr=subprocess.PIPE,
            text=True,
            env=environment(),
        )
        alarm = threading.Timer(120, watch.kill)
        alarm.start()
        self.addCleanup(alarm.cancel)
        self.addCleanup(self.finish, watch)
        return watch

    def rest(self, watch):
        """What it prints until it ends; communicate() would miss what readline() read ahead."""
        output, errors = watch.stdout.read(), watch.stderr.read()
        watch.wait()
        return output, errors

    def test_a_finding_comes_while_the_run_goes_on_and_the_end_ends_it(self):
        watch = self.start_watch()  # before there is a directory
        self.assertEqual(watch.stdout.readline(), f"waiting for a run in {self.path}\n")
        run = self.start_run()
        for order in ("step", "step", "nan"):
            self.assertEqual(self.order(run, order), "done")
        self.assertRegex(watch.stdout.readline(), "^running, [0-3] steps?")
        line = watch.stdout.readline()
        self.assertRegex(line, "^error: .*loss.*")
        self.assertIsNone(watch.poll())
        # Nothing else happened: the run waits for its next order.
        self.order(run, "end")
        output, errors = self.rest(watch)
        self.assertEqual((errors, watch.returncode), ("", 10))
        self.assertIn("the run ended, 3 steps; 3 steps kept, the training waited ", output)

    def events(self, text):
        return [strict_json(line) for line in text.splitlines()]

    def test_json(self):
        run = self.start_run()
        self.order(run, "step")
        watch = self.start_watch("--json")
        seen = []
        while not seen or seen[-1]["event"] != "progress":
            seen.append(strict_json(watch.stdout.readline()))
        self.order(run, "nan")
        while seen[-1]["event"] != "finding":
            seen.append(strict_json(watch.stdout.readline()))
        self.assertEqual((seen[-1]["severity"], seen[-1]["first_step"]), ("error", 1))
        self.assertEqual(seen[-1]["tensors"][:1], ["loss"])
        self.order(run, "end")
        output, errors = self.rest(watch)
        self.assertEqual((errors, watch.returncode), ("", 10))
        seen += self.events(output)
        for event in seen:
            self.assertLess(abs(event["time"] - time.time()), 300)
        progress = [event for event in seen if event["event"] == "progress"]
        self.assertEqual(progress[0]["losses"], [{"name": "loss", "mode": "TRAIN", "step": 0, "value": 4.0}])
        self.assertEqual(progress[-1]["losses"][0]["value"], "NaN")
        self.assertEqual(progress[-1]["capture"]["dropped"], {})
        self.assertEqual([event["state"] for event in seen if event["event"] == "state"][:1], ["running"])
        end = seen[-1]
        self.assertEqual((end["event"], end["state"], end["steps"], end["exit_code"]), ("end", "ended", 2, 10))

    def first_state(self, watch):
        """Of the run, once it has published anything: until then it is waited for."""
        for line in watch.stdout:
            event = strict_json(line)
            if event["event"] == "state":
                return event["state"]
            self.assertEqual(event["event"], "waiting")
        return None

    def test_a_run_that_is_over(self):
        for kind, code, told in (("sick", 10, "error: "), ("healthy", 0, "the run ended, 6 steps")):
            with self.subTest(kind):
                result = self.run_program("watch", self.written(kind))
                self.assertEqual((result.returncode, result.stderr), (code, ""), result.stdout)
                self.assertIn(told, result.stdout)
                # The same status, and the same claims, as check.
                self.assertEqual(self.run_program("check", self.written(kind)).returncode, code)

    def test_a_run_that_dies_is_noticed(self):
        run = self.start_run()
        self.order(run, "step")
        watch = self.start_watch("--json")
        self.assertEqual(self.first_state(watch), "running")
        run.kill()
        run.wait()
        output, errors = self.rest(watch)
        self.assertEqual((errors, watch.returncode), ("", 1))
        self.assertEqual(self.events(output)[-1]["state"], "presumed dead")

    def test_an_interrupt_ends_it_in_order(self):
        run = self.start_run()
        self.order(run, "step")
        watch = self.start_watch("--json")
        self.assertEqual(self.first_state(watch), "running")
        watch.terminate()
        output, errors = self.rest(watch)
        self.assertEqual((errors, watch.returncode), ("", 1))
        self.assertEqual(self.events(output)[-1]["how"], "interrupted")

    def test_a_terminal(self):
        code, output = self.on_terminal("watch", self.written("sick"), columns=60)
        self.assertEqual(code, 10, output)
        frames = output.split(b"\x1b[J")
        last = frames[-2].replace(b"\x1b[K", b"").decode()
        self.assertIn("ended, 6 steps, the last is 5", last)
        self.assertIn("loss TRAIN  NaN at step 5", last)
        self.assertIn("findings, up to step 5", last)
        self.assertLess(last.count("\n"), 40)
        # Each frame begins where the one before did.
        lines = frames[-3].count(b"\n")
        self.assertTrue(frames[-2].startswith(b"\r\x1b[%dA" % lines), frames[-2][:20])

    def test_bad_use(self):
        result = self.run_program("watch", self.written("healthy"), "--rule", "NoSuchRule")
        self.assertEqual((result.returncode, result.stdout), (2, ""))
        self.assertIn("NoSuchRule", result.stderr)
        result = self.run_program("watch", self.path, "--poll", "0.01", "--timeout", "0.05")
        self.assertEqual(result.returncode, 1)
        self.assertIn("no such directory; waited 0.05 s", result.stderr)


if __name__ == "__main__":
    main()
