"""Need: which tensors a rule looks at, and what of each."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass, fields
from typing import Any

from tornasole.exceptions import SMDebugTypeError


@dataclass(frozen=True)
class Need:
    """Which tensors a rule looks at, and what of each, said before the run so that one pass reads it for all rules.

    Which: those in any of ``collections``, with any of the patterns ``regex`` in their name, or among ``names``; with
    none of the three every tensor. ``or_everything`` means every tensor, where the trial has none of them. Never those
    with any of ``exclude_regex`` in their name, and only those for which ``choose(name)``, if given, is true.

    What: ``stats`` by name ("abs_mean", "l2", "nan"): the stored reduction, else computed from the value. ``value``: the
    value itself. ``reductions_without_value``: every stored reduction of tensors whose value was not saved.
    ``derived``: statistics such as "counts" or "unit_activity", stored or computed.

    >>> Need(collections="gradients", stats=["abs_mean"]).stats
    ('abs_mean',)
    """

    collections: Sequence[str] = ()
    regex: Sequence[str] = ()
    names: Sequence[str] = ()
    or_everything: bool = False
    exclude_regex: Sequence[str] = ()
    choose: Callable[[str], bool] | None = None
    stats: Sequence[str] = ()
    value: bool = False
    reductions_without_value: bool = False
    derived: Sequence[str] = ()

    def __post_init__(self) -> None:
        for field in fields(self):
            if field.default != ():
                continue
            given = getattr(self, field.name)
            texts = (given,) if isinstance(given, str) else tuple(given)
            if not all(isinstance(text, str) for text in texts):
                raise SMDebugTypeError(f"{field.name} of a need is a list of texts, not {given!r}")
            object.__setattr__(self, field.name, texts)
        if self.choose is not None and not callable(self.choose):
            raise SMDebugTypeError(f"choose of a need is a function of a name, not {self.choose!r}")

    def _plain(self) -> dict[str, Any]:
        plain = {field.name: getattr(self, field.name) for field in fields(self)}
        return {name: list(value) if isinstance(value, tuple) else value for name, value in plain.items()}
