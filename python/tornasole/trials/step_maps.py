"""Which steps are known, as mappings: rules written for smdebug look steps up in them."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from typing import Any

from tornasole.modes import ModeKeys


class GlobalToMode(Mapping):
    """Global step: its mode, and its number within that. Asks the engine, so that it is never out of date."""

    def __init__(self, engine: Any) -> None:
        self._engine = engine

    def __getitem__(self, global_step: int) -> tuple[ModeKeys, int]:
        found = self._engine.mode_step(global_step)
        if found is None:
            raise KeyError(global_step)
        return ModeKeys(found[0]), found[1]

    def __iter__(self) -> Iterator[int]:
        return iter(self._engine.steps(ModeKeys.GLOBAL.value, True))

    def __len__(self) -> int:
        return len(self._engine.steps(ModeKeys.GLOBAL.value, True))


class ModeToGlobal(Mapping):
    """Mode: number of a step within it: global step, of the modes that have any."""

    def __init__(self, engine: Any) -> None:
        self._engine = engine

    def __getitem__(self, mode: ModeKeys) -> dict[int, int]:
        steps = self._engine.steps(mode.value, True) if mode in list(self) else []
        if not steps:
            raise KeyError(mode)
        return {step: self._engine.global_step(mode.value, step) for step in steps}

    def __iter__(self) -> Iterator[ModeKeys]:
        return (ModeKeys(number) for number in self._engine.modes())

    def __len__(self) -> int:
        return len(self._engine.modes())
