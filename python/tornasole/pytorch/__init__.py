"""Capture of PyTorch trainings.

>>> import tornasole.pytorch as smd
>>> hook = smd.Hook(out_dir="runs/mnist", save_config=smd.SaveConfig(save_interval=100))  # doctest: +SKIP
>>> hook.register_module(model)  # doctest: +SKIP
"""

from typing import TYPE_CHECKING

from tornasole import ReductionConfig, SaveConfig, SaveConfigMode, modes
from tornasole.core.collection import CollectionKeys
from tornasole.core.pending_collections import FrameworkCollections
from tornasole.pytorch.singleton_utils import del_hook, get_hook, set_hook
from tornasole.pytorch.torch_collection import Collection
from tornasole.pytorch.torch_hook import Hook, TornasoleHook

if TYPE_CHECKING:
    from tornasole.trials import create_trial

_collections = FrameworkCollections(Hook)
get_collection = _collections.get_collection
get_collections = _collections.get_collections
add_to_collection = _collections.add_to_collection
add_to_default_collection = _collections.add_to_default_collection
reset_collections = _collections.reset_collections

__all__ = [
    "Collection",
    "CollectionKeys",
    "Hook",
    "ReductionConfig",
    "SaveConfig",
    "SaveConfigMode",
    "TornasoleHook",
    "add_to_collection",
    "add_to_default_collection",
    "create_trial",
    "del_hook",
    "get_collection",
    "get_collections",
    "get_hook",
    "modes",
    "reset_collections",
    "set_hook",
]


def __getattr__(name: str):
    # A training needs no reader: it is imported when somebody asks for it.
    if name == "create_trial":
        from tornasole.trials import create_trial

        return create_trial
    raise AttributeError(f"module {__name__!r} has no attribute {name!r}")
