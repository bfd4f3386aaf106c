#!/usr/bin/env python3
"""Every ```json block of docs/configuration.md passes `tornasole config check`.

A line `<!-- framework: NAME -->` before a block names the framework it is for.
"""

import os
import re
import unittest

from cli_program import TESTS, ProgramTest, main

PAGE = os.path.join(os.path.dirname(TESTS), "docs", "configuration.md")
BLOCK = re.compile(r"(?:<!-- framework: (\w+) -->\n+)?```json\n(.*?)\n```", re.DOTALL)


class Snippets(ProgramTest):
    def setUp(self):
        with open(PAGE, encoding="utf-8") as file:
            self.page = file.read()

    def test_every_block_is_sound_and_without_warnings(self):
        blocks = BLOCK.findall(self.page)
        self.assertEqual(len(blocks), self.page.count("```json"))
        self.assertGreater(len(blocks), 8)
        for framework, text in blocks:
            with self.subTest(text):
                result = self.run_program("config", "check", "-", "--framework", framework or "pytorch", text=text)
                self.assertEqual((result.returncode, result.stderr), (0, ""))
                self.assertNotIn("warning:", result.stdout)

    def test_every_option_of_the_program_is_documented(self):
        result = self.run_program("config", "check", "-", text="{}")
        table = result.stdout.split("\n\n")[1].splitlines()[1:]
        names = [line.split("  ")[0] for line in table]
        self.assertGreater(len(names), 30)
        for name in names:
            with self.subTest(name):
                self.assertTrue((f"`{name}`" if " " not in name else name) in self.page, name)


if __name__ == "__main__":
    main()
