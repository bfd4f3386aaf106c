"""The questions of a trial under the names they had in the first releases, beside ``TornasoleHook`` of the hooks."""

from __future__ import annotations

from collections.abc import Iterable
from typing import Any

from tornasole.modes import ModeKeys


class OlderQueries:
    """Each asks what it stands for, and gives the same answer."""

    def tensors(
        self,
        step: int | None = None,
        mode: ModeKeys = ModeKeys.GLOBAL,
        regex: str | Iterable | None = None,
        collection: Any = None,
    ) -> list[str]:
        """:meth:`~tornasole.trials.Trial.tensor_names`."""
        return self.tensor_names(step=step, mode=mode, regex=regex, collection=collection)

    def tensors_in_collection(self, coll_name: Any) -> list[str]:
        """``tensor_names(collection=coll_name)``."""
        return self.tensor_names(collection=coll_name)

    def tensors_matching_regex(self, regex_list: str | Iterable) -> list[str]:
        """``tensor_names(regex=regex_list)``."""
        return self.tensor_names(regex=regex_list)

    def available_steps(self, mode: ModeKeys = ModeKeys.GLOBAL) -> list[int]:
        """``steps(mode)``."""
        return self.steps(mode)
