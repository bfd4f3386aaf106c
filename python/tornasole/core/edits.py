"""One counter of all changes to configuration objects, so that a hook sees with one comparison that nothing changed."""

from __future__ import annotations

from tornasole import _engine

# Whoever changes what a hook goes by, or hands it out to somebody who may, calls ``note()``; hooks compare ``count``.
edits = _engine.Edits()
