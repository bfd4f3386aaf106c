"""Whether a training is profiled: never. ``SMPROFILER_CONFIG_PATH`` is not read."""

from __future__ import annotations

from enum import Enum
from typing import Any


class MetricsCategory(Enum):
    """What the platform's profiler can measure."""

    DETAILED_PROFILING = 1
    DATALOADER_PROFILING = 2
    PYTHON_PROFILING = 3
    SMDATAPARALLEL_PROFILING = 4


class ProfilerConfigParser:
    """Answers what a profiler's configuration would: nothing is measured."""

    def __init__(self, framework: Any = None) -> None:
        self.framework = framework
        self.config = None
        self.profiling_enabled = False
        self.python_profiler = None

    def load_config(self) -> None:
        """Nothing: no file is read."""

    def should_save_metrics(
        self, metrics_category: Any, current_step: Any, metrics_name: Any = None, current_time: Any = None
    ) -> bool:
        """Whether such metrics are to be kept at this step: never."""
        return False

    def is_python_profiling_enabled(self) -> bool:
        """Whether Python is profiled: never."""
        return False


_parser: ProfilerConfigParser | None = None


def get_profiler_config_parser(framework: Any) -> ProfilerConfigParser:
    """The one of the process, made at the first call."""
    global _parser
    if _parser is None:
        _parser = ProfilerConfigParser(framework)
    return _parser


def reset_profiler_config_parser() -> None:
    """The next call of :func:`get_profiler_config_parser` makes a new one."""
    global _parser
    _parser = None
