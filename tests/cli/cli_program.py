"""Runs the program under test: its path is the first argument of the test script, that of cli_trial_writer the second."""

import fcntl
import json
import os
import pty
import struct
import subprocess
import sys
import tempfile
import termios
import threading
import unittest

TESTS = os.path.dirname(os.path.dirname(os.path.abspath(__file__)))
FIXTURES = os.path.join(TESTS, "golden", "smdebug")
GOLDEN = os.path.join(TESTS, "cli", "golden")
PROGRAM = os.path.abspath(sys.argv.pop(1)) if len(sys.argv) > 1 else "tornasole"
WRITER = os.path.abspath(sys.argv.pop(1)) if len(sys.argv) > 1 and "writer" in sys.argv[1] else None


def environment(variables=None):
    """The same everywhere: nothing of the machine's variables but what a sanitizer needs."""
    result = {"HOME": "/home/nobody", "LANG": "C.UTF-8"}
    result.update({k: v for k, v in os.environ.items() if k.endswith("SAN_OPTIONS")})
    result.update(variables or {})
    return result


def refuse_constant(name):
    raise ValueError(f"{name} is no JSON")


def strict_json(text):
    """Refuses NaN and Infinity, which Python would take."""
    return json.loads(text, parse_constant=refuse_constant)


class ProgramTest(unittest.TestCase):
    maxDiff = None

    def run_program(self, *arguments, variables=None, text=None, cwd=None, timeout=180):
        return subprocess.run(
            [PROGRAM, *arguments],
            input=text,
            capture_output=True,
            text=True,
            encoding="utf-8",
            env=environment(variables),
            cwd=cwd,
            timeout=timeout,
            check=False,
        )

    def run_bytes(self, *arguments, data):
        return subprocess.run(
            [PROGRAM, *arguments], input=data, capture_output=True, env=environment(), timeout=180, check=False
        )

    def on_terminal(self, *arguments, variables=None, columns=100, cwd=None, timeout=180):
        """(exit code, what a terminal that is standard output and standard error was sent)."""
        leader, follower = pty.openpty()
        fcntl.ioctl(follower, termios.TIOCSWINSZ, struct.pack("HHHH", 40, columns, 0, 0))
        settings = termios.tcgetattr(follower)
        settings[1] &= ~termios.OPOST  # the bytes as they were written
        termios.tcsetattr(follower, termios.TCSANOW, settings)
        process = subprocess.Popen(
            [PROGRAM, *arguments],
            stdin=subprocess.DEVNULL,
            stdout=follower,
            stderr=follower,
            cwd=cwd,
            env=environment({"TERM": "xterm", **(variables or {})}),
        )
        os.close(follower)
        alarm = threading.Timer(timeout, process.kill)
        alarm.start()
        output = b""
        while True:
            try:
                piece = os.read(leader, 65536)
            except OSError:  # Linux says so when the last writer has gone
                break
            if not piece:
                break
            output += piece
        os.close(leader)
        code = process.wait()
        alarm.cancel()
        return code, output

    def written(self, kind, name="trial"):
        """A trial made by cli_trial_writer, removed after the test."""
        directory = tempfile.TemporaryDirectory()
        self.addCleanup(directory.cleanup)
        path = os.path.join(directory.name, name)
        subprocess.run([WRITER, kind, path], check=True, env=environment(), timeout=300)
        return path

    def equals_golden(self, name, text):
        """TORNASOLE_UPDATE_GOLDEN=1 writes the file anew; then read the difference."""
        path = os.path.join(GOLDEN, name)
        if os.environ.get("TORNASOLE_UPDATE_GOLDEN"):
            with open(path, "w", encoding="utf-8") as file:
                file.write(text)
        with open(path, encoding="utf-8") as file:
            self.assertEqual(text, file.read(), name)


def main():
    unittest.main(verbosity=1)
