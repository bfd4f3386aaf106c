"""A trial in a directory of this machine."""

from __future__ import annotations

from tornasole.trials.trial import Trial


class LocalTrial(Trial):
    """A trial in a directory; see :class:`Trial` for the parameters. ``~`` at the start of ``dirname`` is the home."""

    def __init__(
        self, name, dirname, range_steps=None, parallel=True, check=False, index_mode=True, cache=False, **options
    ) -> None:
        super().__init__(name, dirname, range_steps, parallel, check, index_mode, cache, **options)
