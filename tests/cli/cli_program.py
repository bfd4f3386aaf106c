"""Runs the program under test: its path is the first argument of the test script."""

import os
import subprocess
import sys
import unittest

TESTS = os.path.dirname(os.path.dirname(os.path.abspath(__file__)))
PROGRAM = os.path.abspath(sys.argv.pop(1)) if len(sys.argv) > 1 else "tornasole"


class ProgramTest(unittest.TestCase):
    """One environment for all: nothing of the machine's variables but what a sanitizer needs."""

    maxDiff = None

    def run_program(self, *arguments, variables=None, text=None, cwd=None):
        environment = {"HOME": "/home/nobody"}
        environment.update({k: v for k, v in os.environ.items() if k.endswith("SAN_OPTIONS")})
        environment.update(variables or {})
        return subprocess.run(
            [PROGRAM, *arguments],
            input=text,
            capture_output=True,
            text=True,
            encoding="utf-8",
            env=environment,
            cwd=cwd,
            timeout=60,
            check=False,
        )

    def run_bytes(self, *arguments, data):
        return subprocess.run(
            [PROGRAM, *arguments], input=data, capture_output=True, env={"HOME": "/h"}, timeout=60, check=False
        )


def main():
    unittest.main(verbosity=1)
