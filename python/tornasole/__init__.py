"""Tornasole: the debugger for machine-learning training."""

from tornasole._engine import __version__, stats

__all__ = ["__version__", "stats"]
