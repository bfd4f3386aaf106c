#!/usr/bin/env python3
"""tornasole completion: what bash offers, with the real bash; and that no command or option is missing anywhere."""

import os
import re
import shutil
import subprocess
import unittest

from cli_program import FIXTURES, PROGRAM, ProgramTest, environment, main

COMPLETE = r"""
source <("$PROGRAM" completion bash)
COMP_WORDS=("$@")
COMP_CWORD=$(($# - 1))
_tornasole
printf '%s\n' "${COMPREPLY[@]}"
"""


@unittest.skipUnless(shutil.which("bash"), "no bash here")
class Bash(ProgramTest):
    def offers(self, *words):
        path = os.path.dirname(PROGRAM) + os.pathsep + os.environ["PATH"]
        result = subprocess.run(
            ["bash", "--norc", "-c", COMPLETE, "bash", "tornasole", *words],
            capture_output=True,
            text=True,
            cwd=FIXTURES,
            env=environment({"PATH": path, "PROGRAM": PROGRAM}),
            timeout=60,
            check=True,
        )
        self.assertEqual(result.stderr, "")
        return result.stdout.split("\n")[:-1]

    def test_commands(self):
        self.assertIn("first-bad", self.offers(""))
        self.assertEqual(self.offers("sh"), ["show"])
        self.assertEqual(self.offers("config", ""), ["check"])
        self.assertEqual(self.offers("completion", ""), ["bash", "zsh", "fish"])

    def test_options_and_their_values(self):
        self.assertEqual(self.offers("show", "--st"), ["--step", "--stat"])
        self.assertEqual(self.offers("show", "pytorch_mlp/trial", "--mode", ""), ["train", "eval", "predict", "global"])
        self.assertEqual(self.offers("stats", "x", "--sort", "abs_m"), ["abs_min", "abs_max", "abs_mean", "abs_median"])
        self.assertIn("--framework", self.offers("config", "check", "--f"))

    def test_directories_then_tensors(self):
        self.assertEqual(self.offers("ls", "pytorch_m"), ["pytorch_mlp"])
        self.assertEqual(self.offers("show", "pytorch_mlp/trial", "Net_fc1"), ["Net_fc1.bias", "Net_fc1.weight"])
        self.assertEqual(self.offers("show", "gone", ""), [""])

    def test_the_script_is_sound(self):
        script = self.run_program("completion", "bash").stdout
        subprocess.run(["bash", "-n"], input=script, text=True, check=True, timeout=60)


class EveryShell(ProgramTest):
    def test_every_command_and_option_is_there(self):
        commands = re.findall(r"(?m)^  ([a-z][a-z-]+) ", self.run_program("--help").stdout.split("Commands:")[1])
        commands = [c for c in commands if c != "tornasole"]
        self.assertGreater(len(commands), 8)
        for shell in ("bash", "zsh", "fish"):
            script = self.run_program("completion", shell).stdout
            for command in commands:
                self.assertIn(command, script, shell)
                for option in re.findall(r"(?m)^  (?:-\w )?--([a-z-]+)", self.run_program(command, "--help").stdout):
                    self.assertIn(option, script, (shell, command))


if __name__ == "__main__":
    main()
