"""The guard around everything a framework calls: a failure of ours must not end a training.

With the framework's default configuration, a failure switches capture off for the rest of the process. With a
configuration the user wrote, an error in it is raised, while one met in running costs the tensor and is told once; a
hook that was made automatically never raises. What a function of the user's own raises, one that replaces a callback of
the hook, is raised unless the configuration is the default. ``TORNASOLE_STRICT=1`` raises everything.
"""

from __future__ import annotations

import functools
from typing import Any, Callable, TypeVar

from tornasole import _engine
from tornasole.core.edits import edits
from tornasole.core.logger import get_logger

BASE_ERROR_MESSAGE = "Capture failed and is switched off for the rest of this process; training goes on. The cause:"

_Function = TypeVar("_Function", bound=Callable[..., Any])


def configuration_error(error: Exception) -> Exception:
    """Marks an error as one in what the user configured, to be raised to whoever did."""
    error.is_configuration_error = True  # type: ignore[attr-defined]
    return error


def let_through(error: Exception) -> Exception:
    """Marks an error that passes every guard: of whoever builds a hook, of the user's own code, or of the framework."""
    error.passes_guards = True  # type: ignore[attr-defined]
    return error


class Guard:
    """The state that all guarded functions share: whether capture is off, and the hook it is about."""

    def __init__(self) -> None:
        self.disable_smdebug = False
        self.hook: Any = None
        self._told: set[str] = set()

    def set_hook(self, hook: Any) -> None:
        """The hook whose configuration decides what becomes of a failure. Setting one ends an earlier shut-down."""
        self.hook = hook
        self.disable_smdebug = False
        self._told.clear()

    def catch_smdebug_errors(self, default_return_val: Any = None) -> Callable[[_Function], _Function]:
        """Decorates a function of the user's that a framework calls, as a callback of a subclass of the hook is.

        ``default_return_val`` is returned while capture is off and after a failure; if it can be called it is, with the
        arguments of the function, and its result is returned.
        """
        return self.decorator(default_return_val, self.handle_users_own)

    def decorator(
        self, neutral: Any, handle: Callable[[Exception, str], None], even_when_off: bool = False
    ) -> Callable[[_Function], _Function]:
        """Decorates a function whose failures ``handle`` decides about."""

        def decorate(function: _Function) -> _Function:
            @functools.wraps(function)
            def guarded_function(*args: Any, **kwargs: Any) -> Any:
                if even_when_off or not self.disable_smdebug:
                    try:
                        return function(*args, **kwargs)
                    except Exception as error:
                        handle(error, function.__qualname__)
                return neutral(*args, **kwargs) if callable(neutral) else neutral

            return guarded_function  # type: ignore[return-value]

        return decorate

    def handle_users_own(self, error: Exception, where: str) -> None:
        """Decides what becomes of what the user's own function raised."""
        if not self._is_default():
            raise let_through(error)  # past the guards of ours that called it, too
        self.handle(error, where)

    def handle(self, error: Exception, where: str) -> None:
        """Decides what becomes of a failure of ours: raised again, or told and survived."""
        if _engine.is_strict() or getattr(error, "passes_guards", False):
            raise error
        is_default = self._is_default()
        if getattr(error, "is_configuration_error", False):
            if not is_default and not self.hook._is_automatic:
                raise error
            self._shut_down(error)
        elif is_default:
            self._shut_down(error)
        elif (text := f"{where}: {error}") not in self._told:
            self._told.add(text)
            get_logger().warning("%s: a tensor is left out: %s: %s", where, type(error).__name__, error)

    def _is_default(self) -> bool:
        return self.hook is None or self.hook._has_default_configuration()

    def _shut_down(self, error: Exception) -> None:
        logger = get_logger()
        logger.error(BASE_ERROR_MESSAGE)
        logger.error("%s", error, exc_info=error)
        self.disable_smdebug = True
        if self.hook is not None:
            self.hook._has_failed = True
        edits.note()  # hooks look up


guard = Guard()


def guarded(neutral: Any = None, even_when_off: bool = False) -> Callable[[_Function], _Function]:
    """``@guarded(neutral=False)``: a failure in the function does not reach the framework that called it.

    ``neutral`` is returned then; if it can be called, its result for the same arguments is. ``even_when_off``: the
    function runs while capture is off, too: it ends a run and gives back what was taken of the framework.
    """
    return guard.decorator(neutral, guard.handle, even_when_off)
