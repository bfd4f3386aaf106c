"""Scopes in which trials do or do not look for new data, and readers of arguments that come as text."""

from __future__ import annotations

import re
from collections.abc import Iterator
from contextlib import AbstractContextManager, contextmanager
from typing import Any

from tornasole.core.truth_values import parse_bool
from tornasole.exceptions import SMDebugTypeError

__all__ = ["no_refresh", "parse_bool", "parse_list_from_str", "refresh"]


@contextmanager
def _dynamic_refresh(trials: Any, is_on: bool) -> Iterator[Any]:
    each = list(trials) if isinstance(trials, (list, tuple, set)) else [trials]
    before = [trial.dynamic_refresh for trial in each]
    try:
        for trial in each:
            trial.dynamic_refresh = is_on
        yield trials
    finally:
        for trial, was_on in zip(each, before):
            trial.dynamic_refresh = was_on


def no_refresh(trials: Any) -> AbstractContextManager[Any]:
    """A scope in which one trial, or a list of them, shows only what it has loaded so far.

    On leaving it, however it is left, each trial does again what it did before.
    """
    return _dynamic_refresh(trials, False)


def refresh(trials: Any) -> AbstractContextManager[Any]:
    """A scope in which one trial, or a list of them, looks for new data; the opposite of :func:`no_refresh`."""
    return _dynamic_refresh(trials, True)


def parse_list_from_str(arg, delimiter: str = ",") -> list[str]:
    """The items of a text, trimmed and without empty ones; a list as it is; none for None."""
    if arg is None:
        return []
    if isinstance(arg, str):
        return [item for item in (part.strip() for part in arg.split(delimiter)) if item]
    if isinstance(arg, (list, tuple)):
        return list(arg)
    raise SMDebugTypeError(f"a list, or its items as text with '{delimiter}' between them, is wanted; not {arg!r}")


def _tensor_name_sorter(t_name: str) -> int:
    """The number after the last underscore of a name; 0 if there is none."""
    found = re.search(r"_(\d+)$", t_name)
    return int(found.group(1)) if found else 0
