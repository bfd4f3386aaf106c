"""Tornasole: the debugger for machine-learning training."""

from tornasole._engine import __version__, stats
from tornasole.checks import check
from tornasole.core.collection import CollectionKeys
from tornasole.core.reduction_config import ReductionConfig
from tornasole.core.save_config import SaveConfig, SaveConfigMode
from tornasole.modes import ModeKeys as modes

__all__ = [
    "CollectionKeys",
    "ReductionConfig",
    "SaveConfig",
    "SaveConfigMode",
    "__version__",
    "check",
    "modes",
    "stats",
]
