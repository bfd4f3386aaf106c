"""A second place where the steps of a model begin: a part that methods of the root other than ``forward`` call."""

import weakref
from typing import Any, Callable

import torch

from tornasole.pytorch.attached_callbacks import Callback
from tornasole.pytorch.unseen_callbacks import after_forward, before_forward


class OtherEntry:
    """A part of a root that begins its steps, too.

    A step begins with the first call after a backward pass, with gradients, while the root itself is not running.
    ``passes`` counts the backward passes.
    """

    def __init__(self, capture: Any, root: torch.nn.Module, part: torch.nn.Module, passes: Callable[[], int]):
        self._capture, self._root, self._passes = weakref.ref(capture), weakref.ref(root), passes
        self._depth = 0  # of calls of the root
        self._begun_after = -1
        self._handles = [
            before_forward(root, Callback(self._enter)),
            after_forward(root, Callback(self._leave), even_on_error=True),
            before_forward(part, Callback(self._begin)),
        ]

    def close(self) -> None:
        for handle in self._handles:
            handle.remove()

    def _enter(self, *_) -> None:
        self._depth += 1

    def _leave(self, *_) -> None:
        self._depth -= 1

    def _begin(self, *_) -> None:
        passes = self._passes()
        if self._depth > 0 or passes == self._begun_after or not torch.is_grad_enabled():
            return
        self._begun_after = passes
        capture, root = self._capture(), self._root()
        if capture is not None and root is not None:
            capture.before_forward(root)
            capture._pass()  # nothing tells where such a pass ends: a step is whole without
