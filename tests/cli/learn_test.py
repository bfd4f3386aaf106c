#!/usr/bin/env python3
"""tornasole learn, and what its file is good for: tornasole rule and tornasole check with --invariants."""

import json
import os
import tempfile

from cli_program import ProgramTest, main, strict_json


class Learn(ProgramTest):
    def setUp(self):
        directory = tempfile.TemporaryDirectory()
        self.addCleanup(directory.cleanup)
        self.file = os.path.join(directory.name, "invariants.jsonl")

    def run_well(self, *arguments, code=0):
        result = self.run_program(*arguments)
        self.assertEqual((result.returncode, result.stderr), (code, ""), result.stdout)
        return result.stdout

    def test_a_file(self):
        healthy = self.written("healthy")
        text = self.run_well("learn", healthy, "-o", self.file)
        self.assertRegex(text, r"^\d+ invariants from 6 steps of 1 run\n")
        with open(self.file, encoding="utf-8") as file:
            head, *lines = [strict_json(line) for line in file]
        self.assertEqual(head, {"tornasole_invariants": 1, "trials": [healthy], "steps": 6})
        self.assertEqual(text.split()[0], str(len(lines)))
        self.assertEqual(
            lines[0], {"kind": "finite", "tensor": "^healthy$", "mode": "TRAIN", "parameters": {}, "support": 6}
        )
        answer = strict_json(self.run_well("learn", healthy, healthy, "--out", self.file, "--json"))
        self.assertEqual((answer["steps"], answer["out"], answer["trials"]), (12, self.file, [healthy, healthy]))
        self.assertEqual(sum(answer["kinds"].values()), answer["invariants"])

    def test_without_a_file_they_are_printed(self):
        lines = self.run_well("learn", self.written("healthy")).splitlines()
        self.assertEqual(strict_json(lines[0])["tornasole_invariants"], 1)

    def test_the_rule_and_check(self):
        healthy, sick = self.written("healthy"), self.written("sick")
        self.run_well("learn", healthy, "-o", self.file)
        self.run_well("rule", healthy, "InvariantCheck", "--invariants", self.file)
        answer = strict_json(
            self.run_well("rule", "--trial-dir", sick, "--rule-name", "InvariantCheck", "--invariants", self.file,
                          "--json", code=10)
        )
        (rule,) = answer["rules"]
        self.assertEqual(rule["steps_met"], [4, 5])
        broken = {(one["kind"], one["tensor"]) for one in rule["report"]["Details"]["broken"]}
        self.assertIn(("finite", "^loss$"), broken)
        report = strict_json(self.run_well("check", sick, "--invariants", self.file, "--json", code=10))
        (verdict,) = [one for one in report["verdicts"] if one["rule"] == "InvariantCheck"]
        self.assertEqual((verdict["first_step"], verdict["severity"]), (4, "warning"))
        self.assertEqual(set(verdict["tensors"]), {"loss", "weight"})
        self.assertIn("InvariantCheck", report["checked"])
        self.assertNotIn("InvariantCheck", self.run_well("check", healthy, "--invariants", self.file))

    def test_what_is_refused(self):
        with open(self.file, "w", encoding="utf-8") as file:
            json.dump({"tornasole_invariants": 7}, file)
        healthy = self.written("healthy")
        gone = self.file + ".gone"
        for arguments, told in (
            (("learn",), "DIR"),
            (("learn", gone), "no such directory"),
            (("learn", healthy, "--json"), "--out"),
            (("rule", healthy, "InvariantCheck"), "invariants is missing"),
            (("rule", healthy, "InvariantCheck", "--invariants", gone), "invariants.jsonl.gone"),
            (("rule", healthy, "InvariantCheck", "--invariants", self.file), ':1: "tornasole_invariants" is 7; this'),
            (("check", healthy, "--invariants", self.file), ':1: "tornasole_invariants" is 7; this program reads'),
        ):
            with self.subTest(arguments):
                result = self.run_program(*arguments)
                self.assertEqual((result.returncode, result.stdout), (2, ""), result.stderr)
                self.assertIn(told, result.stderr)

    def test_what_is_no_file_is_not_replaced(self):
        healthy = self.written("healthy")
        os.symlink(os.devnull, self.file)
        pipe = self.file + ".pipe"
        os.mkfifo(pipe)
        for name, command in ((self.file, "learn"), (pipe, "learn"), (pipe, "diff")):
            with self.subTest(name, command=command):
                before = os.lstat(name)
                option = ["-o", name] if command == "learn" else [healthy, "--html", name]
                result = self.run_program(command, healthy, *option)
                self.assertEqual((result.returncode, result.stdout), (2, ""), result.stderr)
                self.assertIn(f"{name} exists and is no regular file", result.stderr)
                after = os.lstat(name)
                self.assertEqual((before.st_ino, before.st_mode), (after.st_ino, after.st_mode))


if __name__ == "__main__":
    main()
