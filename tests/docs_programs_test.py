#!/usr/bin/env python3
"""Compiles and runs every whole program, C++ or C, in README.md, CONTRIBUTING.md and docs/: a block marked cpp or c
that has a main function. The programs of a page run one after the other in a directory of the page, and have to end
with 0. The commands of README.md, lines that begin with tornasole, are then run there too. Programs that use libtorch or
XGBoost are compiled and run by tests/adapters/adapters_test.py."""

import argparse
import os
import pathlib
import re
import shutil
import subprocess
import sys
import tempfile
import unittest

ROOT = pathlib.Path(__file__).resolve().parent.parent
OPTIONS = None
OF_ADAPTERS = re.compile(r'#include "tornasole/(libtorch|xgboost)\.h"')


def programs(text):
    """(line, language, code) of each whole program in a page."""
    for match in re.finditer(r"^```(cpp|c)\n(.*?)^```$", text, re.MULTILINE | re.DOTALL):
        if re.search(r"\bint main\(", match.group(2)):
            yield text.count("\n", 0, match.start()) + 1, match.group(1), match.group(2)


def commands(text):
    """The command lines in the blocks of a page, without their comments."""
    inside = False
    for line in text.splitlines():
        if line.startswith("```"):
            inside = not inside
        elif inside and line.startswith("tornasole "):
            yield line.split("#")[0].split()[1:]


def compile_and_run(language, code, place):
    """What went wrong; empty if nothing did."""
    library = pathlib.Path(OPTIONS.library).resolve()
    compiler, standard = (OPTIONS.cxx, "c++20") if language == "cpp" else (OPTIONS.cc, "c11")
    with tempfile.TemporaryDirectory(prefix="tornasole-docs-") as folder:
        source = pathlib.Path(folder, "snippet.cc" if language == "cpp" else "snippet.c")
        source.write_text(code)
        command = [compiler, f"-std={standard}", "-Wall", "-Wextra", "-Werror", "-I", ROOT / "include", source,
                   "-o", pathlib.Path(folder, "snippet"), library, f"-Wl,-rpath,{library.parent}"]
        built = subprocess.run(command, capture_output=True, text=True)
        if built.returncode:
            return built.stderr
        environment = {**os.environ, "TORNASOLE_STRICT": "1", "TORNASOLE_CLOSE_WAIT_S": "120"}
        ran = subprocess.run([pathlib.Path(folder, "snippet")], cwd=place, env=environment, capture_output=True,
                             text=True, timeout=600)
        return f"it ended with {ran.returncode}: {ran.stderr}" if ran.returncode else ""


class Documents(unittest.TestCase):
    def test_every_program_compiles_and_runs(self):
        pages = [ROOT / "README.md", ROOT / "CONTRIBUTING.md", *sorted((ROOT / "docs").rglob("*.md"))]
        count = 0
        for page in pages:
            with tempfile.TemporaryDirectory(prefix="tornasole-page-") as place:
                for line, language, code in programs(page.read_text()):
                    if OF_ADAPTERS.search(code):
                        continue
                    count += 1
                    with self.subTest(page=page.name, line=line):
                        problem = compile_and_run(language, code, place)
                        self.assertFalse(problem, f"{page.relative_to(ROOT)}:{line}\n{problem}")
        self.assertGreater(count, 0, "the documents show no program")

    def test_every_command_of_the_readme_runs(self):
        text = (ROOT / "README.md").read_text()
        with tempfile.TemporaryDirectory(prefix="tornasole-page-") as place:
            self.assertFalse(compile_and_run(*next(programs(text))[1:], place))
            shutil.copytree(pathlib.Path(place, "runs/line"), pathlib.Path(place, "runs/other"))
            # The command of the wheel has one more; tests/python/run/test_documented_runs.py has its lines.
            lines = [line for line in commands(text) if line[0] != "run"]
            self.assertGreater(len(lines), 3)
            for line in lines:
                with self.subTest(command=" ".join(line)):
                    done = subprocess.run([pathlib.Path(OPTIONS.cli).resolve(), *line], cwd=place, capture_output=True,
                                          text=True, timeout=600)
                    self.assertEqual(done.returncode, 0, done.stderr)
                    self.assertTrue(done.stdout)

    def test_a_program_that_does_not_compile_is_noticed(self):
        page = "text\n```cpp\nint main() { return nothing; }\n```\n```cpp\nfragment();\n```\n"
        (found,) = programs(page)
        self.assertEqual(found[:2], (2, "cpp"))
        self.assertIn("nothing", compile_and_run(*found[1:], "."))

    def test_a_program_that_fails_is_noticed(self):
        self.assertIn("ended with 3", compile_and_run("c", "int main(void) { return 3; }\n", "."))


if __name__ == "__main__":
    parser = argparse.ArgumentParser()
    for option in ("library", "cli", "cxx", "cc"):
        parser.add_argument(f"--{option}", required=True)
    OPTIONS, rest = parser.parse_known_args()
    unittest.main(argv=[sys.argv[0], *rest])
