"""Capture of trainings with JAX.

>>> import tornasole.jax as ts
>>> hook = ts.Hook(out_dir="runs/jax", include_collections=["gradients"])  # doctest: +SKIP
"""

from tornasole import ReductionConfig, SaveConfig, SaveConfigMode, modes
from tornasole.core.collection import Collection, CollectionKeys
from tornasole.core.singleton_utils import del_hook, set_hook
from tornasole.jax.jax_hook import Hook

__all__ = [
    "Collection",
    "CollectionKeys",
    "Hook",
    "ReductionConfig",
    "SaveConfig",
    "SaveConfigMode",
    "create_trial",
    "del_hook",
    "modes",
    "set_hook",
]


def __getattr__(name: str):
    # A training needs no reader: it is imported when somebody asks for it.
    if name == "create_trial":
        from tornasole.trials import create_trial

        return create_trial
    raise AttributeError(f"module {__name__!r} has no attribute {name!r}")
