"""Runs a program."""

from __future__ import annotations

import json
import subprocess

from tornasole.exceptions import SMDebugValueError

_SECONDS = 600


class ExecAction:
    """Runs a program, without a shell, with the finding as JSON on its input."""

    def __init__(self, rule_name: str, command: list[str]) -> None:
        if not isinstance(command, list) or not command or not all(isinstance(part, str) for part in command):
            raise SMDebugValueError(f"a command is a list of texts, the program first; not {command!r}")
        self._rule_name = rule_name
        self._command = command

    def invoke(self, message: str = "", step: int | None = None) -> None:
        """Runs it, and waits until it ends."""
        finding = {"rule": self._rule_name, "step": step, "message": message}
        subprocess.run(self._command, input=json.dumps(finding).encode(), check=True, timeout=_SECONDS)
