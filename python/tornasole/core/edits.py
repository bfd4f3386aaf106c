"""One counter of all changes to configuration objects, so that a hook sees with one comparison that nothing changed."""

from __future__ import annotations


class Edits:
    """The counter. Whoever changes what a hook goes by calls :meth:`note`; hooks compare :attr:`count` at each step."""

    __slots__ = ("count",)

    def __init__(self) -> None:
        self.count = 0

    def note(self) -> None:
        """Something was changed, or handed out to somebody who may change it."""
        self.count += 1


edits = Edits()
