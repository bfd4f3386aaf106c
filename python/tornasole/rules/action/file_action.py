"""Writes findings to a file."""

from __future__ import annotations

import json
import time

from tornasole.exceptions import SMDebugValueError


class FileAction:
    """Appends each finding to a file, as one line of JSON."""

    def __init__(self, rule_name: str, path: str) -> None:
        if not isinstance(path, str) or not path:
            raise SMDebugValueError(f"the path of a file is a text, and {path!r} is none")
        self._rule_name = rule_name
        self._path = path

    def invoke(self, message: str = "", step: int | None = None) -> None:
        """Appends the line."""
        finding = {"rule": self._rule_name, "step": step, "message": message, "time": time.time()}
        with open(self._path, "a", encoding="utf-8") as file:
            file.write(json.dumps(finding) + "\n")
