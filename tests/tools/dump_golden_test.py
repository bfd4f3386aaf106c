#!/usr/bin/env python3
"""A reader is right if it gives every recorded answer: dumps every golden trial and compares.

usage: dump_golden_test.py PROBE GOLDEN
"""

import copy
import json
import pathlib
import subprocess
import sys
import unittest

from compare_dump import compare

PROBE, GOLDEN = sys.argv[1], pathlib.Path(sys.argv[2])
# Every trial of the golden directory; a new one raises the number, so that none is left out unnoticed.
FIXTURES = 45


def dump(trial, *arguments):
    done = subprocess.run([PROBE, "dump", trial, *arguments], capture_output=True, text=True, timeout=60)
    assert done.returncode == 0, done.stderr
    return json.loads(done.stdout)


class EveryGoldenTrial(unittest.TestCase):
    def test_gives_the_recorded_answers(self):
        trials = sorted(path for path in GOLDEN.rglob("trial") if path.is_dir())
        self.assertEqual(len(trials), FIXTURES)
        compared = refused = 0
        for trial in trials:
            wanted = json.loads((trial.parent / "expected.json").read_text())
            with self.subTest(trial=str(trial.parent.relative_to(GOLDEN))):
                comparison = compare(dump(trial), wanted)
                self.assertFalse(comparison.differences, "\n".join(comparison.differences[:10]))
                compared += comparison.compared
                refused += "open" in wanted
        print(f"{len(trials)} trials, of which {refused} must not open; {compared} comparisons", file=sys.stderr)

    def test_large_values_are_summed_up(self):
        trial = GOLDEN / "core_types" / "trial"
        full = {tensor["name"]: tensor for tensor in dump(trial)["tensors"]}
        for tensor in dump(trial, "0")["tensors"]:
            for short, whole in zip(tensor["entries"], full[tensor["name"]]["entries"]):
                value, reference = short["value"], whole["value"]
                if value["status"] != "ok" or not reference["size"]:
                    continue
                self.assertNotIn("data", value)
                self.assertEqual(value["sha256"], reference["sha256"])
                numbers = reference["data"]
                if all(isinstance(number, (int, float)) for number in numbers):
                    self.assertEqual((value["min"], value["max"]), (float(min(numbers)), float(max(numbers))), tensor["name"])
                    mean = sum(numbers) / len(numbers)
                    self.assertAlmostEqual(value["mean"], mean, delta=1e-9 * max(map(abs, numbers)))


# Golden trials that verify finds damaged or incomplete; all others are sound. A flipped byte in a value that carries no
# checksum is among the sound ones: nothing can tell.
NOT_SOUND = {
    "corrupt/collections_missing", "corrupt/collections_too_few", "corrupt/collections_unknown_top_key",
    "corrupt/event_bad_length_crc", "corrupt/event_cut", "corrupt/event_missing", "corrupt/event_missing_live",
    "corrupt/index_bad_mode", "corrupt/index_cut", "corrupt/index_duplicate_name", "corrupt/index_foreign_json",
    "corrupt/index_meta_empty", "corrupt/index_meta_missing", "corrupt/index_payloads_missing",
    "corrupt/index_two_documents", "corrupt/index_zero_bytes", "interrupted_truncated",
}


class VerifyOfGoldenTrials(unittest.TestCase):
    def test_finds_the_damaged_ones(self):
        found = set()
        for trial in sorted(GOLDEN.rglob("trial")):
            done = subprocess.run([PROBE, "verify", trial], capture_output=True, text=True, timeout=60)
            self.assertIn(done.returncode, (0, 3), done.stderr)
            report = json.loads(done.stdout)
            self.assertEqual(report["sound"], done.returncode == 0)
            self.assertGreater(report["values"], 0)
            if not report["sound"]:
                found.add(str(trial.parent.relative_to(GOLDEN)))
        self.assertEqual(found, NOT_SOUND)


class TheComparison(unittest.TestCase):
    """Finds what it must: each of these changes makes a difference."""

    def setUp(self):
        self.wanted = json.loads((GOLDEN / "core_workers" / "expected.json").read_text())
        self.got = dump(GOLDEN / "core_workers" / "trial")

    def finds(self, change):
        got = copy.deepcopy(self.got)
        change(got)
        self.assertTrue(compare(got, self.wanted).differences)

    def test_changes_are_found(self):
        self.assertFalse(compare(self.got, self.wanted).differences)
        self.finds(lambda got: got["tensors"].pop())
        self.finds(lambda got: got["tensors"][0]["entries"].pop())
        self.finds(lambda got: got["tensors"][0]["entries"][0]["value"].update(sha256="0"))
        self.finds(lambda got: got["tensors"][0]["entries"][0]["value"].update(data=[1]))
        self.finds(lambda got: got["tensors"][0]["entries"][0].update(value={"status": "error"}))
        self.finds(lambda got: got["tensors"][0]["entries"][0].update(shape=[7]))
        self.finds(lambda got: got["trial"].update(last_complete_step=1))
        self.finds(lambda got: got["trial"]["steps"].update(TRAIN=[]))
        self.finds(lambda got: got["collections"]["custom"].update(saved_tensors=[]))
        self.finds(lambda got: got.update(open={"status": "error"}))


if __name__ == "__main__":
    unittest.main(argv=sys.argv[:1])
