#!/usr/bin/env python3
"""What a terminal is sent: colours and progress there alone, its width, and never a byte that a name put there."""

import os
import re
import tempfile
import unittest

from cli_program import FIXTURES, ProgramTest, main, strict_json

MLP = os.path.join(FIXTURES, "pytorch_mlp", "trial")
# What we send ourselves: colours, and the return and clearing of a progress line.
OWN_SEQUENCES = re.compile(rb"\x1b\[(?:0|1|2|33|1;31)m|\r\x1b\[K")
BAD_CHARACTERS = re.compile("[\x00-\x09\x0b-\x1f\x7f-\x9f\u200b-\u200f\u2028-\u202e\u2066-\u2069\ufeff]")


class Presentation(ProgramTest):
    def test_colours_on_a_terminal_only(self):
        sick = self.written("sick")
        _, coloured = self.on_terminal("stats", sick)
        self.assertIn(b"\x1b[1;31m!\x1b[0m", coloured)
        for variables in ({"NO_COLOR": "1"}, {"TERM": "dumb"}):
            self.assertNotIn(b"\x1b", self.on_terminal("stats", sick, variables=variables)[1])
        piped = self.run_program("stats", sick, variables={"TERM": "xterm"})
        self.assertNotIn("\x1b", piped.stdout + piped.stderr)
        self.assertRegex(piped.stdout, r"(?m)^!  loss .* NaN")
        self.assertRegex(piped.stdout, r"(?m)^!  weight ")
        self.assertRegex(piped.stdout, r"(?m)^   healthy ")

    def test_lines_fit_the_terminal(self):
        for columns in (60, 80, 120):
            for words in (["ls", "trial"], ["show", "trial", "Net_fc1.weight"], ["stats", "trial"],
                          ["stats", "trial", "--sort", "l1"]):
                with self.subTest(f"{columns} {words[0]}"):
                    lines = self.lines_on_terminal(*words, columns=columns, cwd=os.path.dirname(MLP))
                    self.assertLessEqual(max(map(len, lines)), columns)

    def test_a_path_stays_whole_and_nothing_else_is_longer(self):
        """It is there to be copied: the terminal wraps it."""
        path = self.written("sick", os.path.join("a" * 100, "trial"))
        below = os.path.dirname(path)
        for given in (path, os.path.join("..", "a" * 100, "trial")):
            lines = self.lines_on_terminal("ls", given, columns=60, cwd=below)
            self.assertEqual([line for line in lines if len(line) > 60], [f"  path     {given}"])

    def lines_on_terminal(self, *arguments, **options):
        return OWN_SEQUENCES.sub(b"", self.on_terminal(*arguments, **options)[1]).decode("utf-8").splitlines()

    def test_long_names_lose_their_middle(self):
        path = self.written("hook-names")
        text = OWN_SEQUENCES.sub(b"", self.on_terminal("ls", path, columns=70)[1]).decode("utf-8")
        self.assertRegex(text, "(?m)^a+…a+ +3 +0 +2$")
        self.assertIn("a" * 5000, self.run_program("ls", path).stdout)

    def test_progress_is_shown_on_a_terminal_and_leaves_nothing(self):
        path = self.written("large")
        code, output = self.on_terminal("show", path, "layer1/weight", "--only", "plot")
        if b"%" in output:  # a fast machine is done before the first line
            self.assertRegex(output.decode("utf-8"), "\r\x1b\\[Kreading [█░]+ +[0-9]+ %")
            self.assertGreater(output.rfind(b"\r\x1b[K"), output.rfind(b"%"))
        self.assertEqual(code, 0)
        self.assertEqual(self.run_program("show", path, "layer1/weight", "--only", "plot").stderr, "")


@unittest.skipIf(os.name != "posix", "needs pseudo-terminals")
class HostileNames(ProgramTest):
    """Trials whose names are made to harm whoever prints them, each command, on a terminal."""

    def commands(self, trial, out):
        names = [t["name"] for t in strict_json(self.run_program("ls", trial, "--json").stdout)["tensors"]]
        self.assertGreater(len(names), 10)
        yield ["ls", trial]
        yield ["ls", trial, "--long"]
        yield ["ls", trial, "--names"]
        yield ["ls", os.path.dirname(trial)]
        yield ["stats", trial]
        yield ["stats", trial, "no such \x1b[31m name"]
        for name in names:
            if "\x00" not in name and len(name) < 10_000:  # what an argument can hold
                yield ["show", trial, name]
                yield ["show", trial, name + "\x1b[31m"]
        yield ["plot", trial, ".", "-o", os.path.join(out, "plot.svg")]
        yield ["plot", trial, ".", "-o", os.path.join(out, "plot.png")]
        yield ["plot", trial, ".", "-o", os.path.join(out, "esc\x1b[31m.svg")]
        yield ["tail", trial, "."]
        yield ["check", trial]
        yield ["first-bad", trial]
        yield ["dump", trial]
        yield ["verify", trial]
        yield ["repair", trial, "--dry-run"]
        yield ["diff", trial, trial, "--html", os.path.join(out, "diff.html")]
        yield ["diff", trial, self.other, "--all"]
        yield ["export", trial, "-o", os.path.join(out, "values.csv")]
        yield ["export", trial, "-o", os.path.join(out, "boards\x1b[31m"), "--format", "tensorboard", "--findings"]
        yield ["import", os.path.join(out, "boards\x1b[31m"), "-o", os.path.join(out, "imported\x1b[31m")]
        yield ["show", trial, "loss", "--worker", "\x1b[31m"]
        yield ["nonsense\x1b[31m"]

    def check_bytes(self, arguments, output):
        text = OWN_SEQUENCES.sub(b"", output).decode("utf-8")  # which must be UTF-8
        found = BAD_CHARACTERS.search(text)
        self.assertIsNone(found, f"{arguments}: {found and text[max(found.start() - 40, 0):found.end() + 40]!r}")

    def check_trial(self, kind):
        # The name of the directory is part of what is printed.
        trial = self.written(kind, "run\x1b]0;title\x07\u202e")
        self.other = self.written("sick", "other\x1b[2J")
        with tempfile.TemporaryDirectory() as out:
            for arguments in self.commands(trial, out):
                with self.subTest(str(arguments)[:200]):
                    code, output = self.on_terminal(*arguments)
                    self.assertIn(code, (0, 1, 2, 3, 10), output)
                    self.check_bytes(arguments, output)
                    self.check_bytes(arguments, self.on_terminal(*arguments, "--json")[1])
            for name in (entry.name for entry in os.scandir(out) if entry.is_file()):
                with open(os.path.join(out, name), "rb") as file:
                    content = file.read()
                if name.endswith((".svg", ".html")):  # values.csv is data: it holds the names as they are
                    self.check_bytes([name], content)
                    self.assertNotIn(b"<script", content)
            self.assertGreaterEqual(len(os.listdir(out)), 4)

    def test_names_that_the_hook_takes(self):
        self.check_trial("hook-names")

    def test_names_that_only_a_forger_writes(self):
        self.check_trial("raw-names")


if __name__ == "__main__":
    main()
