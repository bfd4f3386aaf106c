#!/usr/bin/env python3
"""tornasole config check: the worked examples against golden output, errors, exit codes.

Set TORNASOLE_UPDATE_GOLDEN=1 to write the golden files anew, then read the difference.
"""

import json
import os
import subprocess
import tempfile
import unittest

from cli_program import PROGRAM, TESTS, ProgramTest, main

EXAMPLES = os.path.join(TESTS, "config", "examples")

FRAMEWORKS = {
    "e1_minimal": "pytorch",
    "e2_all_hook_parameters": "pytorch",
    "e3_modes": "tensorflow",
    "e4_collection_beats_mode_of_hook": "pytorch",
    "e5_default_collection_off": "tensorflow",
    "e6_everything_as_text": "pytorch",
    "e7_xgboost": "xgboost",
    "e8_when_nan": "pytorch",
    "e9_collection_without_patterns": "pytorch",
}


class WorkedExamples(ProgramTest):
    def check(self, name, *arguments, **keywords):
        return self.run_program(
            "config", "check", name + ".json", "--framework", FRAMEWORKS[name], *arguments, cwd=EXAMPLES, **keywords
        )

    def test_every_example_is_here(self):
        self.assertEqual(sorted(FRAMEWORKS), sorted(f[:-5] for f in os.listdir(EXAMPLES)))

    def test_output_is_the_golden_one(self):
        for name in FRAMEWORKS:
            with self.subTest(name):
                result = self.check(name)
                self.assertEqual((result.returncode, result.stderr), (0, ""))
                self.equals_golden(name + ".txt", result.stdout)

    def steps(self, name, *arguments):
        """{(collection, mode): steps} of the JSON output."""
        report = json.loads(self.check(name, "--json", *arguments).stdout)
        return {(c["name"], s["mode"]): s["first"] for c in report["collections"] for s in c["steps"]}

    def test_steps_of_the_examples(self):
        # Written down from the meaning of the examples, not from the program's output.
        self.assertEqual(self.steps("e1_minimal"), {("losses", "every mode"): [500 * i for i in range(8)]})
        e2 = self.steps("e2_all_hook_parameters")
        self.assertEqual(e2[("losses", "every mode")], [3, 5, 8, 50, 100, 150, 200, 250])
        self.assertEqual(e2[("default", "every mode")], e2[("losses", "every mode")])
        self.assertEqual(e2[("attention", "every mode")], [3, 200, 400, 600, 800])
        e3 = self.steps("e3_modes")
        intervals = {"TRAIN": 20, "EVAL": 4, "PREDICT": 8, "GLOBAL": 8}
        for collection in ("weights", "metrics", "sm_metrics", "losses"):
            for mode, interval in intervals.items():
                if collection == "losses":
                    interval = {"EVAL": 1, "GLOBAL": 64}.get(mode, interval)
                self.assertEqual(e3[(collection, mode)], [interval * i for i in range(8)], (collection, mode))
        e4 = self.steps("e4_collection_beats_mode_of_hook")
        self.assertEqual(e4[("acts", "every mode")], [9 * i for i in range(8)])
        self.assertEqual(e4[("losses", "TRAIN")], [7 * i for i in range(8)])
        self.assertEqual(e4[("losses", "EVAL")], [500 * i for i in range(8)])
        e5 = self.steps("e5_default_collection_off")
        self.assertEqual(e5[("metrics", "every mode")], [])
        self.assertEqual(e5[("losses", "every mode")][:5], [0, 1, 2, 3, 500])
        self.assertEqual(e5[("sm_metrics", "every mode")][:5], [0, 1, 2, 3, 500])
        e6 = self.steps("e6_everything_as_text")
        self.assertEqual(e6[("gradients", "TRAIN")][:2], [0, 500])
        self.assertEqual(e6[("gradients", "EVAL")], [])
        e7 = self.steps("e7_xgboost")
        self.assertEqual(e7[("metrics", "every mode")][:3], [0, 10, 20])
        self.assertEqual(e7[("losses", "every mode")][:3], [0, 1, 2])
        self.assertEqual(e7[("feature_importance", "every mode")][:3], [0, 10, 20])
        self.assertEqual(self.steps("e8_when_nan")[("weights", "every mode")][:3], [0, 10, 20])
        self.assertEqual(set(self.steps("e9_collection_without_patterns")), {("losses", "every mode")})

    def test_forms_of_the_examples(self):
        def forms(name):
            return {c["name"]: c["form"] for c in json.loads(self.check(name, "--json").stdout)["collections"]}

        self.assertEqual(
            forms("e2_all_hook_parameters"), {"losses": "raw", "default": "min, max", "attention": "std"}
        )
        self.assertEqual(
            forms("e6_everything_as_text")["gradients"], "mean, median, l1_norm, abs_max, abs_l2_norm, raw"
        )

    def test_steps_are_counted_up_to_a_number(self):
        self.assertEqual(self.steps("e1_minimal", "--steps", "1000")[("losses", "every mode")], [0, 500])
        report = json.loads(self.check("e1_minimal", "--steps", "10000", "--json").stdout)
        self.assertEqual(report["collections"][0]["steps"][0]["count"], 20)
        self.assertIn("(20 of 10000)", self.check("e1_minimal", "--steps", "10000").stdout)

    def test_a_collection_the_script_must_fill_is_a_warning(self):
        result = self.check("e9_collection_without_patterns")
        self.assertEqual(result.returncode, 0)
        self.assertIn('warning: collection "my_layers" has neither a pattern nor a name', result.stdout)

    def test_the_environment_is_shown(self):
        result = self.check("e1_minimal", variables={"TORNASOLE_FSYNC": "step"})
        self.assertRegex(result.stdout, r"(?m)^fsync +step +TORNASOLE_FSYNC$")


class Errors(ProgramTest):
    def check(self, text, *arguments, **keywords):
        return self.run_program("config", "check", "-", *arguments, text=text, **keywords)

    def test_every_error_is_printed_and_the_code_is_2(self):
        result = self.check(
            '{"LocalPath": 5,\n"HookParameters": {"save_interval": "fifty",\n"include_regex": "a("},\n'
            '"CollectionConfigurations": [{"CollectionName": "c",\n"CollectionParameters": {"include_regex": "["}}]}'
        )
        self.assertEqual((result.returncode, result.stdout), (2, ""))
        lines = result.stderr.splitlines()
        self.assertEqual(
            lines[:2],
            [
                "error: standard input:1: LocalPath: 5 is not allowed; allowed: a text",
                'error: standard input:2: HookParameters.save_interval: "fifty" is not allowed; allowed: an integer of '
                "at least 1",
            ],
        )
        self.assertTrue(lines[2].startswith('error: standard input:3: include_regex: pattern "a("'), lines[2])
        self.assertTrue(lines[3].startswith('error: standard input:5: c.include_regex: pattern "["'), lines[3])
        self.assertEqual(lines[4:], ["4 errors"])

    def test_a_pattern_of_one_mode_stands_where_it_stands(self):
        result = self.check(
            '{"LocalPath": "/tmp/x", "HookParameters": {\n"train.when_nan": "["},\n'
            '"CollectionConfigurations": [{"CollectionName": "c",\n"CollectionParameters": {"eval.when_nan": "("}}]}'
        )
        self.assertEqual(result.returncode, 2)
        lines = result.stderr.splitlines()
        self.assertTrue(lines[0].startswith('error: standard input:2: train.when_nan: pattern "["'), lines[0])
        self.assertTrue(lines[1].startswith('error: standard input:4: c.eval.when_nan: pattern "("'), lines[1])

    def test_a_number_too_large_is_named_with_its_line_and_key(self):
        for number in ("1E400", "1" * 400):
            with self.subTest(number=number[:9]):
                result = self.check('{"HookParameters": {\n"save_interval": ' + number + "}}")
                self.assertEqual(result.returncode, 2)
                self.assertIn(f"line 2: save_interval: the number {number[:40]}", result.stderr)
                self.assertNotIn("json.exception", result.stderr)
                self.assertLess(len(result.stderr), 200)

    def test_json_carries_the_errors(self):
        result = self.check('{"HookParameters":\n{"save_all": "x"}}', "--json")
        self.assertEqual((result.returncode, result.stderr), (2, ""))
        report = json.loads(result.stdout)
        self.assertFalse(report["sound"])
        [error] = report["errors"]
        self.assertEqual((error["file"], error["line"], error["key"]), ("standard input", 2, "HookParameters.save_all"))
        self.assertIn('"x" is not allowed', error["message"])

    def test_files_that_cannot_be_read(self):
        with tempfile.TemporaryDirectory() as directory:
            missing = os.path.join(directory, "gone.json")
            unreadable = os.path.join(directory, "secret.json")
            pipe = os.path.join(directory, "pipe")
            long = os.path.join(directory, "long.json")
            os.mkfifo(pipe)
            with open(unreadable, "w", encoding="utf-8") as file:
                file.write("{}")
            with open(long, "w", encoding="utf-8") as file:
                file.write("{}" + " " * 2**20)
            os.chmod(unreadable, 0)
            cases = [
                (missing, "No such file or directory"),
                (directory, "is a directory, not a file"),
                (pipe, "is not a regular file"),
                (long, "longer than the limit of 1048576 bytes"),
            ]
            if os.geteuid() != 0:
                cases.append((unreadable, "Permission denied"))
            for path, message in cases:
                with self.subTest(message):
                    result = self.run_program("config", "check", path)
                    self.assertEqual((result.returncode, result.stdout), (2, ""))
                    self.assertEqual(result.stderr, f"error: configuration file {path}: {message}\n1 error\n")
                    report = json.loads(self.run_program("config", "check", path, "--json").stdout)
                    self.assertFalse(report["sound"])
                    self.assertIn(message, report["errors"][0]["message"])

    def test_without_a_name_the_file_of_the_environment_is_checked(self):
        with tempfile.TemporaryDirectory() as directory:
            path = os.path.join(directory, "hook.json")
            with open(path, "w", encoding="utf-8") as file:
                file.write('{"LocalPath": "/from/environment"}')
            result = self.run_program("config", "check", variables={"SMDEBUG_CONFIG_FILE_PATH": path})
            self.assertEqual(result.returncode, 0)
            self.assertIn("/from/environment", result.stdout)

    def test_wrong_use_is_2(self):
        for arguments in (
            [],
            ["config"],
            ["nonsense"],
            ["config", "check", "a", "b"],
            ["config", "check", "-", "--framework", "jax"],
            ["config", "check", "-", "--steps", "0"],
            ["config", "check", "-", "--steps", "many"],
            ["config", "check", "--colour"],
        ):
            with self.subTest(arguments):
                result = self.run_program(*arguments, text="{}")
                self.assertEqual((result.returncode, result.stdout), (2, ""))
                self.assertNotEqual(result.stderr, "")

    def test_control_characters_are_escaped(self):
        hostile = "\x1b[31m\x1b]0;title\x07\u202e"
        good = self.check(json.dumps({"LocalPath": "/x" + hostile, hostile: 1}))
        self.assertEqual(good.returncode, 0)
        bad = self.check(json.dumps({"CollectionConfigurations": [{"CollectionName": "c", hostile: 1}], "S3Path": 1}))
        self.assertEqual(bad.returncode, 2)
        for text in (good.stdout, bad.stderr):
            self.assertIn("\\x1b[31m", text)
            for character in "\x1b\x07\u202e":
                self.assertNotIn(character, text)

    def test_bytes_that_are_no_text(self):
        result = self.run_bytes("config", "check", "-", data=b"\xff\xfe{\x00}")
        self.assertEqual(result.returncode, 2)
        self.assertTrue(result.stderr.decode("utf-8").startswith("error: standard input: "))

    def test_a_full_disk_is_told(self):
        if not os.path.exists("/dev/full"):
            self.skipTest("no /dev/full here")
        with open("/dev/full", "w", encoding="utf-8") as full:
            result = subprocess.run(
                [PROGRAM, "config", "check", "-"], input=b"{}", stdout=full, stderr=subprocess.PIPE, timeout=300, check=False
            )
        self.assertEqual(result.returncode, 1)
        self.assertIn(b"cannot write", result.stderr)


class Presentation(ProgramTest):
    def check_on_terminal(self, variables):
        code, output = self.on_terminal(
            "config", "check", os.path.join(EXAMPLES, "e1_minimal.json"), variables=variables
        )
        self.assertEqual(code, 0)
        return output.decode("utf-8")

    def test_colours_on_a_terminal_only(self):
        self.assertIn("\x1b[1m", self.check_on_terminal({"TERM": "xterm"}))
        self.assertNotIn("\x1b", self.check_on_terminal({"TERM": "xterm", "NO_COLOR": "1"}))
        self.assertNotIn("\x1b", self.check_on_terminal({"TERM": "dumb"}))
        piped = self.run_program("config", "check", "-", text="{}", variables={"TERM": "xterm"})
        self.assertNotIn("\x1b", piped.stdout)

    def test_help_and_version(self):
        version = self.run_program("--version")
        self.assertEqual(version.returncode, 0)
        self.assertRegex(version.stdout, r"^tornasole \d+\.\d+\.\d+\n$")
        for arguments, words in (
            (["--help"], ["config", "--version", "Exit codes"]),
            (["config", "--help"], ["check"]),
            (["config", "check", "--help"], ["FILE", "--framework", "--steps", "--json", "Exit codes"]),
        ):
            result = self.run_program(*arguments)
            self.assertEqual(result.returncode, 0, arguments)
            for word in words:
                self.assertIn(word, result.stdout, arguments)


if __name__ == "__main__":
    main()
