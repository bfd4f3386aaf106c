"""What the package of every framework has to offer; each is looked at where its framework is."""

import importlib

from tornasole.core.hook import BaseHook
from tornasole.core.singleton_utils import current_hook

_OF_ALL = ("SaveConfig", "SaveConfigMode", "ReductionConfig", "CollectionKeys", "modes", "Collection", "create_trial")
_CALLS = ("get_hook", "set_hook", "del_hook", "get_collection", "get_collections", "add_to_collection")
_OLDER = ("TornasoleHook", "add_to_default_collection", "reset_collections")


def check_names(framework, hook_classes):
    """``import smdebug.<framework> as smd`` works, and is the package of ours with all its names."""
    smd = importlib.import_module(f"smdebug.{framework}")
    ours = importlib.import_module(f"tornasole.{framework}")
    for name in (*_OF_ALL, *_CALLS, *_OLDER, *hook_classes):
        assert getattr(smd, name) is getattr(ours, name), name
    assert importlib.import_module(f"smdebug.{framework}.hook").TornasoleHook is smd.TornasoleHook
    others = {"Hook", "KerasHook", "SessionHook", "EstimatorHook"} - set(hook_classes)
    assert not others & set(vars(smd)), "the hooks of other frameworks are not here"


def check_hook_classes(framework, hook_classes, directory):
    """Each makes a hook that writes where it is told, and that is then the one of the process."""
    smd = importlib.import_module(f"smdebug.{framework}")
    for name in hook_classes:
        hook = getattr(smd, name)(out_dir=str(directory / name), save_config=smd.SaveConfig(save_interval=7))
        assert isinstance(hook, BaseHook) and current_hook() is hook is smd.get_hook(), name
        assert hook.out_dir == str(directory / name) and hook.save_config.save_interval == 7, name
        hook.close()
