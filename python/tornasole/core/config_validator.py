"""Whether capture can work in this training, asked before a hook is made automatically."""

from __future__ import annotations

import os

from tornasole.core.logger import get_logger
from tornasole.core.singleton_utils import is_capture_enabled
from tornasole.core.utils import FRAMEWORK, is_framework_version_supported

_config_validator: ConfigValidator | None = None


class ConfigValidator:
    """Asks whether a hook may be made for a framework in this process."""

    def __init__(self, framework_type: FRAMEWORK) -> None:
        self._framework_type = framework_type
        self._create_hook: bool = is_capture_enabled()

    def validate_training_job(self) -> bool:
        """True if a hook may be made. An unsupported framework sets ``USE_SMDEBUG`` to False."""
        if self._create_hook and not is_framework_version_supported(self._framework_type):
            self._create_hook = False
            get_logger().warning("%s: not supported in this version; USE_SMDEBUG is set to False", self._framework_type)
            os.environ["USE_SMDEBUG"] = "False"
        return self._create_hook


def get_config_validator(framework: FRAMEWORK) -> ConfigValidator:
    """The validator of the process, made at the first call."""
    global _config_validator
    if _config_validator is None:
        _config_validator = ConfigValidator(framework)
    return _config_validator


def reset_config_validator() -> None:
    """The next call of :func:`get_config_validator` makes a new one, which reads ``USE_SMDEBUG`` again."""
    global _config_validator
    _config_validator = None
    is_capture_enabled.cache_clear()
