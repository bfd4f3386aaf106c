"""Configurations as text."""

from __future__ import annotations

import json
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from typing_extensions import Self


class JsonText:
    """For classes that have ``to_json_dict`` and ``from_dict``: the same as text."""

    def to_json(self) -> str:
        """:meth:`to_json_dict` as text."""
        return json.dumps(self.to_json_dict())  # type: ignore[attr-defined]

    @classmethod
    def from_json(cls, json_str: str) -> Self:
        """From the text of :meth:`to_json`."""
        return cls.from_dict(json.loads(json_str))  # type: ignore[attr-defined]
