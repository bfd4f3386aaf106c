"""The hook of the process, for TensorFlow."""

from typing import Optional

from tornasole.core import singleton_utils as _singleton
from tornasole.core.config_validator import get_config_validator
from tornasole.core.guard import guarded
from tornasole.core.singleton_utils import del_hook, set_hook
from tornasole.core.utils import FRAMEWORK
from tornasole.exceptions import SMDebugValueError

__all__ = ["del_hook", "get_hook", "set_hook"]


@guarded()
def get_hook(
    hook_type: Optional[str] = None, json_config_path: Optional[str] = None, create_if_not_exists: bool = False
):
    """The hook of the process; else, if asked for, one of this type made from a configuration file; else None.

    ``hook_type`` is ``session``, ``estimator`` or ``keras``; a hook of another type is dropped. The file is
    ``json_config_path``, or what the environment names. None, too, when ``USE_SMDEBUG`` is false or the version of
    TensorFlow is not supported.
    """
    if not get_config_validator(FRAMEWORK.TENSORFLOW).validate_training_job():
        return None
    if hook_type is None:
        if create_if_not_exists:
            raise SMDebugValueError("a hook cannot be made without hook_type; allowed: session, estimator, keras")
        return _singleton.get_hook()
    if hook_type not in ("session", "estimator", "keras"):
        raise SMDebugValueError(f"hook_type: {hook_type!r} is not allowed; allowed: session, estimator, keras")
    if hook_type == "keras":
        from tornasole.tensorflow.keras_hook import KerasHook as hook_class
    else:
        from tornasole.tensorflow.session_hook import SessionHook as hook_class
    return _singleton.get_hook(
        json_config_path=json_config_path, hook_class=hook_class, create_if_not_exists=create_if_not_exists
    )
