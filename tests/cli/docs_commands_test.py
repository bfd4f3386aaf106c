#!/usr/bin/env python3
"""Every ```console block of docs/commands.md, rule-command.md and tensorboard.md shows what the program prints.

Each line that begins with "$ " is run by a shell where `runs` is; what follows it must be its output, standard error
included. A line `<!-- file: NAME -->` before another block puts it into that file. Set TORNASOLE_UPDATE_GOLDEN=1 to
write the outputs anew, then read the difference.
"""

import os
import re
import shutil
import subprocess
import tempfile
import time

from cli_program import FIXTURES, PROGRAM, TESTS, WRITER, ProgramTest, environment, main

DOCS = os.path.join(os.path.dirname(TESTS), "docs")
PAGE = os.path.join(DOCS, "commands.md")
# Page -> the fewest blocks it has.
PAGES = {PAGE: 13, os.path.join(DOCS, "rule-command.md"): 6, os.path.join(DOCS, "tensorboard.md"): 2}
FILE = re.compile(r"<!-- file: (\S+) -->\n+```\w*\n(.*?)```", re.DOTALL)
BLOCK = re.compile(r"```console\n(.*?)```", re.DOTALL)
RUNS = {"mlp": "pytorch_mlp", "reduced": "pytorch_reductions", "interrupted": "interrupted"}


class Examples(ProgramTest):
    def setUp(self):
        directory = tempfile.TemporaryDirectory()
        self.addCleanup(directory.cleanup)
        self.directory = directory.name
        for name, fixture in RUNS.items():
            self.copy(os.path.join(FIXTURES, fixture, "trial"), os.path.join(self.directory, "runs", name))

    def copy(self, source, target):
        shutil.copytree(source, target)
        for root, directories, files in os.walk(target):  # nothing happened there for an hour
            for name in directories + files:
                os.utime(os.path.join(root, name), (time.time() - 3600,) * 2)

    def output_of(self, command):
        # `ls runs` shows bytes, which differ between runs of our own writer: those are there only when named.
        for kind in ("sick", "healthy"):
            run = os.path.join(self.directory, "runs", kind)
            if f"runs/{kind}" in command:
                if not os.path.exists(run):
                    subprocess.run([WRITER, kind, run], check=True, env=environment(), timeout=300)
            elif os.path.exists(run):
                shutil.rmtree(run)
        path = os.path.dirname(PROGRAM) + os.pathsep + os.environ["PATH"]
        result = subprocess.run(
            ["sh", "-c", command],
            stdout=subprocess.PIPE,
            stderr=subprocess.STDOUT,
            text=True,
            encoding="utf-8",
            cwd=self.directory,
            env=environment({"PATH": path}),
            timeout=300,
            check=False,
        )
        return result.stdout.replace(self.directory + os.sep, "")

    def block(self, text):
        commands = re.findall(r"(?m)^\$ (.*)$", text)
        self.assertTrue(commands)
        return "\n".join(f"$ {command}\n{self.output_of(command)}" for command in commands)

    def check_page(self, path, fewest):
        with open(path, encoding="utf-8") as file:
            page = file.read()
        for name, content in FILE.findall(page):
            with open(os.path.join(self.directory, name), "w", encoding="utf-8") as file:
                file.write(content)
        self.assertGreaterEqual(len(BLOCK.findall(page)), fewest)
        actual = BLOCK.sub(lambda match: f"```console\n{self.block(match.group(1))}```", page)
        if os.environ.get("TORNASOLE_UPDATE_GOLDEN"):
            with open(path, "w", encoding="utf-8") as file:
                file.write(actual)
        else:
            self.assertEqual(actual, page)

    def test_every_block_shows_what_is_printed(self):
        for path, fewest in PAGES.items():
            with self.subTest(path):
                self.check_page(path, fewest)

    def test_every_command_and_exit_code_is_documented(self):
        with open(PAGE, encoding="utf-8") as file:
            page = file.read()
        commands = self.run_program("--help").stdout.split("Commands:")[1].split("Example:")[0]
        for name in re.findall(r"(?m)^  ([a-z][a-z-]+)", commands):
            self.assertRegex(page, rf"(?m)^## {name}( check)?$")


if __name__ == "__main__":
    main()
