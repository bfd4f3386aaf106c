"""The hook of the process, for MXNet."""

from typing import Optional

from tornasole.core import singleton_utils as _singleton
from tornasole.core.guard import guarded
from tornasole.core.singleton_utils import del_hook, set_hook

__all__ = ["del_hook", "get_hook", "set_hook"]


@guarded()
def get_hook(json_config_path: Optional[str] = None):
    """The hook of the process; else one made from a configuration file, if there is one; else None.

    The file is ``json_config_path``, or what the environment names. None, too, when ``USE_SMDEBUG`` is false.
    """
    from tornasole.mxnet.gluon_hook import Hook

    return _singleton.get_hook(json_config_path=json_config_path, hook_class=Hook, create_if_not_exists=True)
