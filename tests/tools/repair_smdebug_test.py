#!/usr/bin/env python3
"""What repair publishes, the real smdebug reads: a run it wrote itself and that was killed, with and without the
collections file.

usage: repair_smdebug_test.py PROBE GOLDEN
"""

import os
import pathlib
import shutil
import subprocess
import sys
import tempfile
import unittest

from smdebug.trials import create_trial

PROBE, GOLDEN = sys.argv[1], pathlib.Path(sys.argv[2])


class RepairedRuns(unittest.TestCase):
    def setUp(self):
        scratch = tempfile.TemporaryDirectory(prefix="tornasole-repaired-")
        self.addCleanup(scratch.cleanup)
        self.trial = pathlib.Path(scratch.name) / "trial"
        shutil.copytree(GOLDEN / "interrupted" / "trial", self.trial, copy_function=shutil.copyfile)

    def make_old(self):
        """A run without a health file counts as live for a minute after its last change."""
        for path in self.trial.rglob("*"):
            os.utime(path, (1_700_000_000, 1_700_000_000))

    def repair(self):
        return subprocess.run([PROBE, "repair", self.trial], capture_output=True, text=True, timeout=300)

    def check(self):
        done = self.repair()
        self.assertEqual(done.returncode, 0, done.stderr)
        trial = create_trial(str(self.trial))
        self.assertEqual(trial.steps(), [0, 1, 2, 3, 4])
        self.assertEqual(trial.workers(), ["worker_0"])
        # The step that was open held two whole values.
        self.assertEqual(sorted(trial.tensor_names(step=4)), ["w0", "w1"])
        for name in trial.tensor_names():
            for step in trial.tensor(name).steps():
                self.assertIsNotNone(trial.tensor(name).value(step))

    def test_with_its_collections(self):
        self.make_old()
        self.check()

    def test_killed_before_it_wrote_its_collections(self):
        shutil.rmtree(self.trial / "collections")
        self.make_old()
        self.check()

    def test_a_run_that_may_be_live_is_refused(self):
        done = self.repair()
        self.assertEqual(done.returncode, 1)
        self.assertIn("a live run writes there", done.stderr)


if __name__ == "__main__":
    unittest.main(argv=sys.argv[:1])
