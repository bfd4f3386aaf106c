"""Batches of which nothing is due: the callbacks that Keras calls for them are the engine's, not Python's.

A gate is open while the hook has nothing under way. Then the engine counts a batch and returns; one that is due closes
the gate and goes on in the hook, and so does the batch after it, which opens the gate again if nothing is due in it.
"""

from typing import Any, Optional

from tornasole import _engine
from tornasole.core.edits import edits
from tornasole.core.guard import guard, guarded
from tornasole.tensorflow.single_batches import KINDS


def make_gate(hook: Any, own_class: type) -> Optional[Any]:
    """The gate of a hook, whose callbacks it gets; those that a subclass of ``own_class`` replaces stay."""
    if hook._engine_hook is None:
        return None
    gate = _engine.BatchGate(hook._engine_hook, edits, guard)
    for mode, kind in KINDS.items():
        begin, end = f"on_{kind}_batch_begin", f"on_{kind}_batch_end"
        if _is_own(hook, own_class, begin) and _is_own(hook, own_class, end):
            hook.__dict__[begin] = _engine.BatchBegin(gate, mode.value, _going_on(hook, mode), getattr(hook, begin))
            hook.__dict__[end] = _engine.BatchEnd(gate, getattr(hook, end))
    return gate


def _is_own(hook: Any, own_class: type, name: str) -> bool:
    return getattr(type(hook), name) is getattr(own_class, name)


def _going_on(hook: Any, mode: Any) -> Any:
    @guarded()
    def due_batch_begins(batch, logs=None) -> None:
        hook._due_batch_begins(batch, mode)

    return due_batch_begins
