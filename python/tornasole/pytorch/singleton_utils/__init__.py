"""The hook of the process, for PyTorch."""

from typing import TYPE_CHECKING, Optional

from tornasole.core import singleton_utils as _singleton
from tornasole.core.config_validator import get_config_validator
from tornasole.core.guard import guarded
from tornasole.core.singleton_utils import del_hook, set_hook
from tornasole.core.utils import FRAMEWORK

if TYPE_CHECKING:
    from tornasole.pytorch.torch_hook import Hook

__all__ = ["del_hook", "get_hook", "set_hook"]


@guarded()
def get_hook(json_config_path: Optional[str] = None, create_if_not_exists: bool = False) -> "Optional[Hook]":
    """The hook of the process; else, if asked for, one made from a configuration file; else None.

    The file is ``json_config_path``, or what the environment names. None, too, when ``USE_SMDEBUG`` is false or the
    version of PyTorch is not supported.
    """
    if not get_config_validator(FRAMEWORK.PYTORCH).validate_training_job():
        return None
    from tornasole.pytorch.torch_hook import Hook

    return _singleton.get_hook(
        json_config_path=json_config_path, hook_class=Hook, create_if_not_exists=create_if_not_exists
    )
