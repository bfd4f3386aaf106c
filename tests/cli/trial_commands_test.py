#!/usr/bin/env python3
"""Every command that reads a trial: text against golden files, JSON, exit codes, wrong paths, wrong names.

Set TORNASOLE_UPDATE_GOLDEN=1 to write the golden files anew, then read the difference.
"""

import hashlib
import os
import shutil
import tempfile
import time

from cli_program import FIXTURES, ProgramTest, main, strict_json

MLP = "pytorch_mlp/trial"
# Golden file -> arguments, run in the directory of the fixtures.
GOLDENS = {
    "ls_mlp": ["ls", MLP],
    "ls_mlp_long": ["ls", MLP, "--long"],
    "ls_pattern": ["ls", MLP, "^gradient"],
    "ls_names": ["ls", "xgboost_default/trial", "--names"],
    "ls_workers": ["ls", "core_workers/trial"],
    "ls_live": ["ls", "core_workers_live/trial"],
    "ls_damaged": ["ls", "corrupt/index_cut/trial"],
    "ls_above": ["ls", "corrupt"],
    "show_weight": ["show", MLP, "Net_fc1.weight"],
    "show_loss": ["show", MLP, "CrossEntropyLoss_output_0", "--mode", "train"],
    "show_slice": ["show", MLP, "Net_fc1.weight", "--mode", "eval", "--step", "0", "--slice", "::2,1:3", "--only",
                   "values"],
    "show_reductions": ["show", "pytorch_reductions/trial", "Net_fc1.weight"],
    "show_strings": ["show", "core_types/trial", "str/list"],
    "show_worker": ["show", "core_workers/trial", "loss", "--worker", "worker_2", "--step", "2"],
    "stats_mlp": ["stats", MLP],
    "stats_sorted": ["stats", MLP, "gradient", "--sort", "abs_max", "--mode", "train", "--step", "4"],
    "stats_reductions": ["stats", "pytorch_reductions/trial"],
    "stats_types": ["stats", "core_types/trial"],
    "tail_mlp": ["tail", MLP],
    "tail_chosen": ["tail", MLP, "weight", "--stat", "l2", "--mode", "train", "-n", "2"],
    "check_mlp": ["check", MLP],
    "check_types": ["check", "core_types/trial", "--rule", "ExplodingTensor", "--rule", "Overfit"],
    "first_bad_none": ["first-bad", MLP],
    "first_bad_found": ["first-bad", "core_types/trial"],
    "diff_equal": ["diff", MLP, MLP],
    "diff_mismatches": ["diff", MLP, "pytorch_reductions/trial", "Net_fc1"],
    "diff_global": ["diff", MLP, "pytorch_reductions/trial", "^Cross", "--global-steps", "--rel", "0.5"],
    "verify_sound": ["verify", MLP],
    "verify_damaged": ["verify", "corrupt/event_cut/trial"],
    "verify_missing": ["verify", "corrupt/event_missing/trial"],
}


def expected_of(fixture):
    with open(os.path.join(FIXTURES, fixture, "expected.json"), encoding="utf-8") as file:
        return strict_json(file.read())


class Goldens(ProgramTest):
    def test_output_is_the_golden_one(self):
        for name, arguments in GOLDENS.items():
            with self.subTest(name):
                result = self.run_program(*arguments, cwd=FIXTURES)
                text = f"$ tornasole {' '.join(arguments)}\n{result.stdout}"
                if result.stderr:
                    text += "--- standard error\n" + result.stderr
                text += f"--- exit code {result.returncode}\n"
                self.equals_golden(f"{name}.txt", text.replace(FIXTURES, "FIXTURES"))

    def test_plain_characters_without_utf8(self):
        result = self.run_program("show", MLP, "Net_fc1.weight", cwd=FIXTURES, variables={"LANG": "C"})
        self.assertTrue(result.stdout.isascii())
        self.equals_golden("show_weight_ascii.txt", result.stdout)

    def test_nothing_but_json_with_json(self):
        for name, arguments in GOLDENS.items():
            if "--names" in arguments:
                continue
            with self.subTest(name):
                text = self.run_program(*arguments, "--json", cwd=FIXTURES).stdout
                self.assertTrue(text.isascii())
                for document in text.splitlines() if arguments[0] == "tail" else [text]:
                    strict_json(document)


class Json(ProgramTest):
    def json_of(self, *arguments, code=0):
        result = self.run_program(*arguments, "--json", cwd=FIXTURES)
        self.assertEqual((result.returncode, result.stderr), (code, ""), arguments)
        return strict_json(result.stdout)

    def test_values_are_those_of_the_fixture(self):
        expected = expected_of("pytorch_mlp")
        count = 0
        for tensor in expected["tensors"]:
            for entry in tensor["entries"]:
                if entry["value"]["status"] != "ok" or "data" not in entry["value"]:
                    continue
                shown = self.json_of("show", MLP, tensor["name"], "--step", str(entry["global_step"]), "--only", "values")
                self.assertEqual(shown["values"], entry["value"]["data"], tensor["name"])
                self.assertEqual(shown["dtype"], entry["value"]["dtype"])
                self.assertEqual((shown["mode"], shown["worker"]), (entry["mode"], entry["worker"]) if
                                 shown["mode"] != "GLOBAL" else ("GLOBAL", entry["worker"]))
                count += 1
        self.assertGreater(count, 50)

    def test_ls_says_what_the_fixture_says(self):
        for fixture in ("pytorch_mlp", "core_hook", "core_workers", "core_types", "xgboost_full", "spot_resume"):
            with self.subTest(fixture):
                expected = expected_of(fixture)
                listed = self.json_of("ls", f"{fixture}/trial")
                self.assertEqual([t["name"] for t in listed["tensors"]], expected["trial"]["tensor_names"])
                self.assertEqual(sorted(listed["workers"]), sorted(expected["trial"]["workers"]))
                self.assertEqual(listed["steps"][0]["count"], len(expected["trial"]["steps"]["GLOBAL"]))
                self.assertEqual({s["mode"] for s in listed["steps"][1:]}, set(expected["trial"]["modes"]))
                self.assertEqual(listed["state"], "ended")

    def test_the_size_is_that_of_the_regular_files(self):
        with tempfile.TemporaryDirectory() as directory:
            trial = os.path.join(directory, "trial")
            shutil.copytree(os.path.join(FIXTURES, MLP), trial)
            before = self.json_of("ls", trial)
            os.symlink(os.path.join(FIXTURES, MLP), os.path.join(trial, "link"))
            os.symlink("link", os.path.join(trial, "link_to_link"))
            os.mkfifo(os.path.join(trial, "pipe"))
            os.makedirs(os.path.join(trial, "attempts", "1", *["deep"] * 100))
            with open(os.path.join(trial, "attempts", "1", "deep", "more"), "wb") as file:
                file.truncate(1000)
            after = self.json_of("ls", trial)
        self.assertEqual((after["files"], after["bytes"]), (before["files"] + 1, before["bytes"] + 1000))

    def test_not_finite_numbers_are_texts(self):
        path = self.written("sick")
        shown = self.json_of("show", path, "loss")
        self.assertEqual(shown["values"], ["NaN"])
        self.assertEqual([y for _, y in shown["over_steps"]["points"]][-2:], ["Infinity", "NaN"])
        weight = self.json_of("show", path, "weight")
        self.assertEqual(weight["values"], [1.0, "NaN", "-Infinity"])
        self.assertEqual((weight["stats"]["nan"], weight["stats"]["neg_inf"]), (1, 1))

    def test_errors_are_json_too(self):
        error = self.json_of("show", MLP, "Net_fc1.weigth", code=2)["error"]
        self.assertEqual(error["code"], "not found")
        self.assertIn("Net_fc1.weight", error["message"])
        self.assertIn("no such directory", self.json_of("ls", "gone", code=2)["error"]["message"])


class WrongUse(ProgramTest):
    COMMANDS = {
        "ls": [], "show": ["x"], "stats": [], "plot": ["x", "-o", "x.svg"], "tail": ["--timeout", "0", "--poll", "0.01"],
        "check": [], "first-bad": [], "dump": [], "verify": [], "repair": [], "diff": ["other"], "export": ["-o", "x.csv"],
        "watch": ["--timeout", "0", "--poll", "0.01"], "rule": ["ExplodingTensor"], "learn": [],
    }

    def test_paths_that_are_no_trial(self):
        with tempfile.TemporaryDirectory() as directory:
            file = os.path.join(directory, "file")
            empty = os.path.join(directory, "empty")
            other = os.path.join(directory, "other")
            os.mkdir(empty)
            os.makedirs(os.path.join(other, "photos"))
            with open(file, "w", encoding="utf-8") as handle:
                handle.write("text")
            with open(os.path.join(other, "notes.txt"), "w", encoding="utf-8") as handle:
                handle.write("text")
            cases = [
                (os.path.join(directory, "gone"), "no such directory", {2}),
                ("", "no such directory", {2}),
                (file, "is a file, not the directory of a run", {2}),
                (empty, "is empty", {1, 2}),
                (other, "trial", {1, 2}),
            ]
            for command, more in self.COMMANDS.items():
                for path, message, codes in cases:
                    if command in ("tail", "watch") and message in ("no such directory", "is empty"):
                        codes = {1}  # it waited
                    if command == "rule" and not path:
                        message = "no trial: give the directory of a run"
                    with self.subTest(f"{command} {path}"):
                        begin = time.monotonic()
                        result = self.run_program(command, path, *more, cwd=directory)
                        self.assertLess(time.monotonic() - begin, 30)
                        if command == "dump" and path == other:
                            self.assertEqual(result.returncode, 1)
                            continue  # the document says it
                        self.assertIn(result.returncode, codes, result.stderr)
                        self.assertEqual(result.stdout, "")
                        self.assertTrue(result.stderr.startswith("error: "), result.stderr)
                        self.assertIn(message, result.stderr)

    def test_a_directory_above_trials_names_them(self):
        result = self.run_program("show", ".", "loss", cwd=os.path.join(FIXTURES, "core_hook"))
        self.assertEqual(result.returncode, 2)
        self.assertIn("./trial", result.stderr)

    def test_names_that_are_not_there(self):
        for arguments, message in (
            (["show", MLP, "Net_fc1.weigth"], 'did you mean "Net_fc1.weight"'),
            (["stats", MLP, "Net_fc1.weigth"], 'did you mean "Net_fc1.weight"'),
            (["plot", MLP, "Net_fc1.weigth", "-o", "/nowhere/x.svg"], 'did you mean "Net_fc1.weight"'),
            (["show", MLP, "Net_fc1.weight", "--step", "3"], "3"),
            (["show", MLP, "Net_fc1.weight", "--step", "99"], "99"),
            (["show", MLP, "gradient/Net_fc1.weight", "--mode", "eval"], "EVAL"),
            (["show", MLP, "Net_fc1.weight", "--worker", "worker_9"], "worker_0"),
            (["stats", MLP, "--worker", "worker_9"], "worker_0"),
            (["stats", MLP, "("], "("),
            (["ls", MLP, "("], "("),
            (["plot", MLP, "weight", "-o", "picture.gif"], ".svg or .png"),
        ):
            with self.subTest(arguments):
                result = self.run_program(*arguments, cwd=FIXTURES)
                self.assertEqual((result.returncode, result.stdout), (2, ""), result.stderr)
                self.assertIn(message, result.stderr)

    def test_slices(self):
        for text, message in (
            ("9", "index 9 is outside axis 0, which has 6 elements"),
            ("0,0,0", "3 parts, but the tensor has 2 axes"),
            ("a:b", '"a" is no whole number'),
            ("::0", "the step is 0"),
            ("1:2:3:4", "at most begin:end:step"),
            ("", ""),
        ):
            with self.subTest(text):
                result = self.run_program("show", MLP, "Net_fc1.weight", "--slice", text, cwd=FIXTURES)
                if text:
                    self.assertEqual(result.returncode, 2)
                self.assertIn(message, result.stderr)

    def test_arguments(self):
        for arguments in (
            ["show", MLP],
            ["show", MLP, "loss", "--step", "-1"],
            ["show", MLP, "loss", "--step", "many"],
            ["show", MLP, "loss", "--mode", "test"],
            ["stats", MLP, "--sort", "size"],
            ["plot", MLP, "loss"],
            ["tail", MLP, "--poll", "0"],
            ["ls"],
            ["completion", "tcsh"],
            ["ls", MLP, "--unknown"],
        ):
            with self.subTest(arguments):
                result = self.run_program(*arguments, cwd=FIXTURES)
                self.assertEqual((result.returncode, result.stdout), (2, ""))
                self.assertTrue(result.stderr.startswith("error: "))

    def test_every_help_has_an_example_and_the_exit_codes(self):
        commands = [[name] for name in (*self.COMMANDS, "completion")] + [["config", "check"]]
        for command in commands:
            with self.subTest(command):
                result = self.run_program(*command, "--help")
                self.assertEqual((result.returncode, result.stderr), (0, ""))
                for word in ("Usage: tornasole " + " ".join(command), "Example:", "Exit codes:", f"tornasole {command[0]}"):
                    self.assertIn(word, result.stdout)
                self.assertLessEqual(max(map(len, result.stdout.splitlines())), 110)


class Check(ProgramTest):
    def test_profiles(self):
        sick = self.written("sick")
        for profile, is_cause_known in (("check", True), ("reference", False)):
            result = self.run_program("check", sick, "--profile", profile, "--json")
            self.assertEqual((result.returncode, result.stderr), (10, ""))
            verdicts = strict_json(result.stdout)["verdicts"]
            (exploding,) = [verdict for verdict in verdicts if verdict["rule"] == "ExplodingTensor"]
            self.assertEqual(exploding["symptom_of"] is not None, is_cause_known)
        for rule, code in (("exploding_tensor", 10), ("Overfit", 0)):
            result = self.run_program("rule", sick, rule, "--profile", "check", "--json")
            self.assertEqual((result.returncode, result.stderr), (code, ""))
            self.assertEqual(bool(strict_json(result.stdout)["verdicts"]), code == 10)
        for refused in (["--threshold", "3"], ["--follow"], ["--report", "reports"]):
            result = self.run_program("rule", sick, "ExplodingTensor", "--profile", "check", *refused)
            self.assertEqual((result.returncode, result.stdout), (2, ""))
            self.assertIn("--profile check", result.stderr)
        result = self.run_program("check", sick, "--profile", "strict")
        self.assertEqual((result.returncode, result.stdout), (2, ""))
        self.assertIn("reference", result.stderr)


class Diff(ProgramTest):
    def test_exit_codes_tolerances_and_page(self):
        healthy, sick = self.written("healthy"), self.written("sick")
        self.assertEqual(self.run_program("diff", healthy, healthy).returncode, 0)
        report = self.run_program("diff", healthy, sick, "--json")
        self.assertEqual(report.returncode, 1)
        first = strict_json(report.stdout)["first"]
        self.assertEqual((first["tensor"], first["global_step_a"], first["index"]), ("weight", 2, [1]))
        for arguments, code in (
            (["--to-step", "2"], 0),
            (["--to-step", "4"], 1),
            (["--to-step", "4", "--rel", "0.01"], 0),
            (["--to-step", "4", "--abs", "0.011"], 0),
            (["--to-step", "4", "--tolerance", "weight=abs:0.011"], 0),
            (["--to-step", "4", "--tolerance", "loss=abs:1", "--tolerance", "weight=abs:0.001"], 1),
            (["loss", "--to-step", "4"], 0),
            (["--rel", "1"], 1),  # NaN is near nothing
        ):
            with self.subTest(arguments):
                self.assertEqual(self.run_program("diff", healthy, sick, *arguments).returncode, code)
        for arguments in (["--rel", "-1"], ["--tolerance", "loss"], ["--tolerance", "(=abs:1"], ["--ulp", "x"]):
            with self.subTest(arguments):
                self.assertEqual(self.run_program("diff", healthy, sick, *arguments).returncode, 2)
        page = os.path.join(os.path.dirname(sick), "page.html")
        self.assertEqual(self.run_program("diff", healthy, sick, "--html", page).returncode, 1)
        with open(page, encoding="utf-8") as file:
            self.assertIn("weight", file.read())


class Export(ProgramTest):
    def test_forms(self):
        healthy = self.written("healthy")
        out = os.path.dirname(healthy)

        def export(*arguments):
            return self.run_program("export", healthy, *arguments, cwd=out)

        self.assertEqual(export("loss", "-o", "loss.csv").returncode, 0)
        with open(os.path.join(out, "loss.csv"), encoding="utf-8") as file:
            self.assertEqual(len(file.readlines()), 7)
        again = export("loss", "-o", "loss.csv")
        self.assertEqual((again.returncode, again.stdout), (2, ""))
        self.assertEqual(export("loss", "-o", "loss.csv", "--overwrite").returncode, 0)
        self.assertEqual(export("-o", "stats.csv", "--stat", "l2", "--stat", "mean").returncode, 0)
        with open(os.path.join(out, "stats.csv"), encoding="utf-8") as file:
            self.assertEqual(len(file.readlines()), 1 + 3 * 6 * 2)
        for name in ("all.npz", "all.arrow"):
            self.assertEqual(export("-o", name).returncode, 0)
        self.assertEqual(export("-o", "arrays", "--format", "npy").returncode, 0)
        self.assertTrue(os.path.exists(os.path.join(out, "arrays", "manifest.json")))
        parquet = export("-o", "all.parquet")
        self.assertEqual(parquet.returncode, 1)
        self.assertIn("Python package", parquet.stderr)
        self.assertEqual(export("-o", "all.xyz").returncode, 2)
        self.assertEqual(export("-o", "x.csv", "nothing_like_it").returncode, 2)


class Dump(ProgramTest):
    def test_it_is_what_the_fixture_says(self):
        dumped = strict_json(self.run_program("dump", MLP, cwd=FIXTURES).stdout)
        expected = expected_of("pytorch_mlp")
        self.assertEqual(dumped["trial"]["tensor_names"], expected["trial"]["tensor_names"])
        hashes = [
            [e["value"]["sha256"] for t in document["tensors"] for e in t["entries"] if e["value"]["status"] == "ok"]
            for document in (dumped, expected)
        ]
        self.assertEqual(hashes[0], hashes[1])


class Repair(ProgramTest):
    def contents(self, path):
        found = {}
        for root, _, files in os.walk(path):
            for name in files:
                with open(os.path.join(root, name), "rb") as file:
                    found[os.path.relpath(os.path.join(root, name), path)] = hashlib.sha256(file.read()).hexdigest()
        return found

    def test_a_dead_run_is_repaired_once(self):
        with tempfile.TemporaryDirectory() as directory:
            path = os.path.join(directory, "trial")
            shutil.copytree(os.path.join(FIXTURES, "interrupted", "trial"), path)
            for root, directories, files in os.walk(path):  # nothing happened for an hour
                for name in directories + files:
                    os.utime(os.path.join(root, name), (time.time() - 3600,) * 2)
            before = self.contents(path)
            dry = self.run_program("repair", path, "--dry-run")
            self.assertIn(dry.returncode, (0, 3), dry.stderr)
            self.assertIn("would", dry.stdout)
            self.assertEqual(self.contents(path), before)
            first = self.run_program("repair", path)
            self.assertEqual((first.returncode, first.stderr), (0, ""))
            after = self.contents(path)
            self.assertNotEqual(after, before)
            second = self.run_program("repair", path)
            self.assertEqual((second.returncode, second.stdout), (0, "nothing to repair\n"))
            self.assertEqual(self.contents(path), after)
            self.assertEqual(self.run_program("verify", path).returncode, 0)

    def test_a_directory_that_holds_nothing_but_a_claim(self):
        note = "a run has begun there and written nothing: it is being set up, or it ended before its first step\n"
        for claim in ("claim.smd", "claim-0123456789abcdef0123456789abcdef.tmp"):
            with self.subTest(claim), tempfile.TemporaryDirectory() as directory:
                path = os.path.join(directory, claim)
                with open(path, "w", encoding="utf-8"):
                    pass
                os.utime(path, (time.time() - 3600,) * 2)
                for arguments in (("verify",), ("repair", "--dry-run")):
                    result = self.run_program(*arguments, directory)
                    self.assertEqual((result.returncode, result.stderr), (0, ""))
                    self.assertTrue(result.stdout.endswith(note), result.stdout)

    def test_a_live_run_is_refused(self):
        with tempfile.TemporaryDirectory() as directory:
            path = os.path.join(directory, "trial")
            shutil.copytree(os.path.join(FIXTURES, "interrupted", "trial"), path, copy_function=shutil.copy)
            result = self.run_program("repair", path)
            self.assertEqual((result.returncode, result.stdout), (1, ""))
            self.assertIn("live", result.stderr)


if __name__ == "__main__":
    main()
