#!/usr/bin/env python3
"""tornasole completion: what bash, zsh and fish offer, asked of the real shells; and that nothing is missing.

A shell that is not installed is skipped by name, and with CI=true a failure."""

import os
import pty
import re
import select
import shutil
import subprocess
import tempfile
import time
import unittest

from cli_program import FIXTURES, PROGRAM, ProgramTest, environment, main

# What is typed after "tornasole", and what the shell offers for the last word.
CASES = (
    ("a command", ["sh"], {"show"}),
    ("a command of a command", ["config", ""], {"check"}),
    ("an argument that is one of a few words", ["completion", ""], {"bash", "zsh", "fish"}),
    ("an option", ["show", "--st"], {"--step", "--stat"}),
    ("an option of a command of a command", ["config", "check", "--f"], {"--framework"}),
    (
        "the value of an option",
        ["show", "pytorch_mlp/trial", "--mode", ""],
        {"train", "eval", "predict", "global"},
    ),
    (
        "a part of the value of an option",
        ["stats", "x", "--sort", "abs_m"],
        {"abs_min", "abs_max", "abs_mean", "abs_median"},
    ),
    ("a directory", ["ls", "pytorch_m"], {"pytorch_mlp"}),
    ("a rule", ["rule", "pytorch_mlp/trial", "Vani"], {"VanishingGradient"}),
    ("a rule by option", ["rule", "--rule-name", "Explo"], {"ExplodingTensor"}),
    ("a parameter of a rule", ["rule", "pytorch_mlp/trial", "ExplodingTensor", "--only"], {"--only_nan", "--only-nan"}),
    ("a tensor of the trial", ["show", "pytorch_mlp/trial", "Net_fc1"], {"Net_fc1.bias", "Net_fc1.weight"}),
)

BASH = r"""
source <("$PROGRAM" completion bash)
COMP_WORDS=("$@")
COMP_CWORD=$(($# - 1))
_tornasole
printf '%s\n' "${COMPREPLY[@]}"
"""

# What is offered goes through compadd: it writes the offers down, and the end of them.
ZSH = r"""
fpath=($ZDOTDIR $fpath)
autoload -Uz compinit && compinit -D -u
compadd() {
  local -a offered
  if [[ " ${@[1,(i)(-|--)]} " != *' '-(O|A|D|[a-zA-Z]#[OAD])' '* ]]; then
    builtin compadd -A offered "$@"
    print -rl -- $offered >> $ANSWER
  fi
  builtin compadd "$@"
}
ask() { _main_complete; print -r -- END >> $ANSWER }
zle -C ask complete-word ask
bindkey '^I' ask
"""

FISH = "source (tornasole completion fish | psub); complete -C $argv[1]"


def shell_environment(variables=None):
    path = os.path.dirname(PROGRAM) + os.pathsep + os.environ["PATH"]
    return environment({"PATH": path, "PROGRAM": PROGRAM, **(variables or {})})


def needs(shell):
    is_wanted = shutil.which(shell) or os.environ.get("CI") == "true"
    return unittest.skipUnless(is_wanted, f"no {shell} here")


class ShellTest(ProgramTest):
    def check_all(self):
        for what, words, expected in CASES:
            with self.subTest(what):
                self.assertEqual(self.offers(*words), expected)
        self.assertIn("first-bad", self.offers(""))


@needs("bash")
class Bash(ShellTest):
    def offers(self, *words):
        result = subprocess.run(
            ["bash", "--norc", "-c", BASH, "bash", "tornasole", *words],
            capture_output=True,
            text=True,
            cwd=FIXTURES,
            env=shell_environment(),
            timeout=300,
            check=True,
        )
        self.assertEqual(result.stderr, "")
        return set(result.stdout.split("\n")[:-1])

    def test_what_is_offered(self):
        self.check_all()
        self.assertEqual(self.offers("show", "gone", ""), {""})

    def test_the_script_is_sound(self):
        script = self.run_program("completion", "bash").stdout
        subprocess.run(["bash", "-n"], input=script, text=True, check=True, timeout=300)


@needs("fish")
class Fish(ShellTest):
    def offers(self, *words):
        with tempfile.TemporaryDirectory() as home:
            result = subprocess.run(
                ["fish", "--no-config", "-c", FISH, " ".join(["tornasole", *words])],
                capture_output=True,
                text=True,
                cwd=FIXTURES,
                env=shell_environment({"HOME": home}),
                timeout=300,
                check=True,
            )
        # An offer, and what it is about behind a tab.
        return {line.split("\t")[0].rstrip("/") for line in result.stdout.splitlines()}

    def test_what_is_offered(self):
        self.check_all()


@needs("zsh")
class Zsh(ShellTest):
    def setUp(self):
        home = tempfile.TemporaryDirectory()
        self.addCleanup(home.cleanup)
        self.home = home.name
        self.answer = os.path.join(self.home, "answer")
        with open(os.path.join(self.home, "_tornasole"), "w", encoding="utf-8") as file:
            file.write(self.run_program("completion", "zsh").stdout)
        with open(os.path.join(self.home, ".zshrc"), "w", encoding="utf-8") as file:
            file.write(ZSH)

    def answered(self):
        if not os.path.exists(self.answer):
            return []
        with open(self.answer, encoding="utf-8") as file:
            return file.read().split("\n")[:-1]

    def offers(self, *words):
        """What is offered; a zsh that misses what was typed while it set up its terminal is asked again."""
        for _ in range(3):
            self.ask(words)
            if "END" in self.answered():
                return set(self.answered()) - {"END", ""}
        self.fail("zsh did not answer")

    def ask(self, words):
        """Types the words and the tabulator at a zsh that believes to be at a terminal."""
        variables = {"HOME": self.home, "ZDOTDIR": self.home, "ANSWER": self.answer, "TERM": "dumb"}
        if os.path.exists(self.answer):
            os.remove(self.answer)
        child, terminal = pty.fork()
        if child == 0:
            os.chdir(FIXTURES)
            os.execvpe("zsh", ["zsh", "-i", "-o", "NO_GLOBAL_RCS"], shell_environment(variables))
        try:
            os.write(terminal, (" ".join(["tornasole", *words]) + "\t").encode())
            last = time.monotonic() + 100
            while "END" not in self.answered() and time.monotonic() < last:
                if select.select([terminal], [], [], 0.05)[0]:
                    os.read(terminal, 65536)  # what it draws; a full terminal would stop it
        finally:
            os.kill(child, 9)
            os.waitpid(child, 0)
            os.close(terminal)

    def test_what_is_offered(self):
        self.check_all()
        self.assertEqual(self.offers("show", "gone", ""), set())


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
