"""The log of the package: one logger, set up at its first use from the variables ``SMDEBUG_LOG_*``.

``SMDEBUG_LOG_LEVEL`` (debug, info, warning, error, critical, off; info), ``SMDEBUG_LOG_PATH`` (also to this file),
``SMDEBUG_LOG_CONTEXT`` (text in each line; host and process), ``SMDEBUG_LOG_ALL_TO_STDOUT`` (false: errors go to the
standard error). Each may be spelt ``TORNASOLE_LOG_*`` too, which wins. A text that comes more than three times is left
out from then on.
"""

from __future__ import annotations

import logging
import os
import sys
from collections import Counter

_LEVELS = {
    "debug": logging.DEBUG,
    "info": logging.INFO,
    "warning": logging.WARNING,
    "error": logging.ERROR,
    "critical": logging.CRITICAL,
}
_ENGINE_LEVELS = (logging.DEBUG, logging.INFO, logging.WARNING, logging.ERROR)
_MAX_REPEATS = 3
_MAX_TEXTS = 10_000
_NAME = "tornasole"

_is_set_up = False


class DuplicateLogFilter(logging.Filter):
    """Leaves out a text that came more than three times."""

    def __init__(self) -> None:
        super().__init__()
        self.msgs: Counter[str] = Counter()
        self.repeat_threshold = _MAX_REPEATS

    def filter(self, record: logging.LogRecord) -> bool:
        """Whether the record is let through."""
        text = record.getMessage()
        if len(self.msgs) < _MAX_TEXTS or text in self.msgs:
            self.msgs[text] += 1
        return self.msgs[text] <= self.repeat_threshold


class MaxLevelFilter(logging.Filter):
    """Lets records below a level through."""

    def __init__(self, level: int) -> None:
        super().__init__()
        self.level = level

    def filter(self, record: logging.LogRecord) -> bool:
        """Whether the record is let through."""
        return record.levelno < self.level


class _Stream(logging.StreamHandler):
    """Writes to what the standard stream is now, not to what it was when the logger was set up."""

    def __init__(self, stream_name: str) -> None:
        logging.Handler.__init__(self)
        self._stream_name = stream_name

    @property
    def stream(self):
        """The standard stream."""
        return getattr(sys, self._stream_name)


def _variable(suffix: str) -> str | None:
    return os.environ.get(f"TORNASOLE_LOG_{suffix}") or os.environ.get(f"SMDEBUG_LOG_{suffix}")


def _set_up(logger: logging.Logger) -> None:
    context = _variable("CONTEXT")
    if context is None:
        import socket

        context = f"{socket.gethostname()}:{os.getpid()}"
    formatter = logging.Formatter(
        f"[%(asctime)s.%(msecs)03d {context.replace('%', '%%')} %(levelname)s %(filename)s:%(lineno)d] %(message)s",
        datefmt="%Y-%m-%d %H:%M:%S",
    )
    handlers: list[logging.Handler] = [_Stream("stdout")]
    if (_variable("ALL_TO_STDOUT") or "true").lower() == "false":
        handlers[0].addFilter(MaxLevelFilter(logging.ERROR))
        handlers.append(_Stream("stderr"))
        handlers[1].setLevel(logging.ERROR)
    if path := _variable("PATH"):
        handlers.append(logging.FileHandler(path))
    for handler in handlers:
        handler.setFormatter(formatter)
        logger.addHandler(handler)
    logger.addFilter(DuplicateLogFilter())
    level = (_variable("LEVEL") or "info").lower()
    logger.setLevel(_LEVELS.get(level, logging.INFO))
    logger.disabled = level == "off"
    logger.propagate = False


def get_logger(name: str = _NAME) -> logging.Logger:
    """The logger of the package, set up at the first call."""
    global _is_set_up
    if not _is_set_up:
        _is_set_up = True
        _set_up(logging.getLogger(_NAME))
    return logging.getLogger(_NAME if name == "smdebug" else name)


def log_from_engine(level: int, message: str) -> None:
    """A message of the engine; called by its bindings, on the thread of whoever called the engine."""
    get_logger().log(_ENGINE_LEVELS[level], "%s", message)
