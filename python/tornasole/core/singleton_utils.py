"""The hook of the process: the one built last."""

from __future__ import annotations

import atexit
import functools
import multiprocessing.process
import multiprocessing.util
import os
import sys
import weakref
from typing import Any

from tornasole import _engine
from tornasole.core.guard import guard, guarded
from tornasole.core.logger import get_logger
from tornasole.exceptions import SMDebugTypeError, SMDebugValueError

_LOADERS = "torch.utils.data."

_current: Any = None
_open_hooks: weakref.WeakSet = weakref.WeakSet()
_closed_by_finalizer = 0  # the process, made by multiprocessing, that closes them so


def current_hook() -> Any:
    """The hook of the process, or None: one whose failure switched capture off is none once that is on again."""
    global _current
    if _current is not None and _current._has_failed and not guard.disable_smdebug:
        _current = None
    return _current


@functools.cache
def is_capture_enabled() -> bool:
    """False if ``USE_SMDEBUG`` says so: no hook is made automatically. Read once."""
    is_enabled, warning = _engine.is_capture_enabled()
    if warning:
        get_logger().warning("%s", warning)
    return is_enabled


@guarded()
def get_hook(*, json_config_path: str | None = None, hook_class=None, create_if_not_exists: bool = False):
    """The hook of the process; else one made from a configuration file, if asked for and there is a file; else None.

    A hook that is not a ``hook_class`` is dropped. None, too, when ``USE_SMDEBUG`` is false.
    """
    global _current
    if not is_capture_enabled():
        return None
    if hook_class is None:
        if create_if_not_exists:
            raise SMDebugValueError("a hook cannot be made without hook_class")
        return current_hook()
    if current_hook() is not None and not isinstance(_current, hook_class):
        get_logger().info("the current hook is no %s and is dropped", hook_class.__name__)
        _current = None
    if _current is None and create_if_not_exists:
        _create_hook(json_config_path, hook_class)
    return _current


def _create_hook(json_config_path: str | None, hook_class) -> None:
    from tornasole.core.hook import BaseHook

    if not issubclass(hook_class, BaseHook):
        raise SMDebugTypeError(f"hook_class: {hook_class!r} is not allowed; allowed: a class of hooks")
    try:
        hook_class.create_from_json_file(json_file_path=json_config_path)
    except FileNotFoundError:
        pass
    except Exception as error:
        error.passes_guards = False  # type: ignore[attr-defined]  # nobody built it: it is told, not raised
        raise


def set_hook(custom_hook) -> None:
    """Makes a hook the one of the process."""
    global _current
    from tornasole.core.hook import BaseHook

    if not isinstance(custom_hook, BaseHook):
        raise SMDebugTypeError(f"{custom_hook!r} is not allowed; allowed: a hook")
    _current = custom_hook
    if not _open_hooks:
        atexit.register(_close_open_hooks)
        multiprocessing.util.register_after_fork(_open_hooks, _enter_child)
    _open_hooks.add(custom_hook)
    _close_at_end_of_child()


def del_hook() -> None:
    """There is no hook of the process any more; the one there was stays open."""
    global _current
    _current = None


def wait_until_written(directory: str, seconds: float) -> None:
    """Whoever opens a run that this process writes sees the steps it has ended, unless the disk is slow."""
    for hook in list(_open_hooks):
        if os.path.abspath(directory) == os.path.abspath(hook.out_dir or ""):
            hook._wait_until_written(seconds)


def _enter_child(hooks: weakref.WeakSet) -> None:
    """In a process that ``multiprocessing`` made by a fork: hooks that have written nothing go on there.

    Processes that load data never train, and are left out.
    """
    target = getattr(multiprocessing.process.current_process(), "_target", None)
    if (getattr(target, "__module__", None) or "").startswith(_LOADERS):
        return
    if any([hook._go_on_in_child() for hook in list(hooks)]):
        _close_at_end_of_child()


def _close_at_end_of_child() -> None:
    """A process that ``multiprocessing`` made by a fork ends without the handlers of an exit."""
    global _closed_by_finalizer
    if multiprocessing.process.parent_process() is not None and _closed_by_finalizer != os.getpid():
        _closed_by_finalizer = os.getpid()
        multiprocessing.util.Finalize(None, _close_open_hooks, exitpriority=0)


def _close_open_hooks() -> None:
    """At exit: every hook that is still open is closed, as failed if an exception ended the program."""
    error = None if hasattr(sys, "ps1") or "IPython" in sys.modules else getattr(sys, "last_value", None)
    if error is None and isinstance(sys.exc_info()[1], Exception):  # that ends a process of multiprocessing
        error = sys.exc_info()[1]
    for hook in list(_open_hooks):
        if error is not None and hook._engine_hook is not None:
            hook._engine_hook.fail(f"{type(error).__name__}: {error}")
        else:
            hook._cleanup()
