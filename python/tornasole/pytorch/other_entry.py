"""More places where the steps of a model begin: parts that methods of the root other than ``forward`` call."""

import weakref
from typing import Any, Callable

import torch

from tornasole.pytorch.attached_callbacks import Callback
from tornasole.pytorch.unseen_callbacks import after_forward, before_forward


class OtherEntry:
    """Parts of a root that begin its steps, too.

    A step begins with the first call of any of them after a backward pass, with gradients, while the root itself is not
    running. ``usual`` is where the steps of the root begin, itself or a part; ``passes`` counts the backward passes.
    """

    def __init__(
        self,
        capture: Any,
        root: torch.nn.Module,
        usual: torch.nn.Module,
        part: torch.nn.Module,
        passes: Callable[[], int],
    ):
        self._capture, self._root, self._passes = weakref.ref(capture), weakref.ref(root), passes
        self._depth = 0  # of calls of the root
        self._begun_after = -1
        self._handles = [
            before_forward(root, Callback(self._enter)),
            after_forward(root, Callback(self._leave), even_on_error=True),
            before_forward(part, Callback(self._begin)),
        ]
        if usual is not root:
            self._handles.append(before_forward(usual, Callback(self._has_begun)))
        self._parts = [weakref.ref(part)]

    def add(self, part: torch.nn.Module) -> None:
        """A part is about to be called: this begins a step, and its calls will, unless others have begun the step."""
        if self._is_begun() or any(known() is part for known in self._parts):
            return
        self._parts.append(weakref.ref(part))
        self._handles.append(before_forward(part, Callback(self._begin)))

    def close(self) -> None:
        for handle in self._handles:
            handle.remove()

    def _enter(self, *_) -> None:
        self._depth += 1

    def _leave(self, *_) -> None:
        self._depth -= 1

    def _is_begun(self) -> bool:
        return self._depth > 0 or self._passes() == self._begun_after or not torch.is_grad_enabled()

    def _has_begun(self, *_) -> None:
        if torch.is_grad_enabled():
            self._begun_after = self._passes()

    def _begin(self, *_) -> None:
        if self._is_begun():
            return
        self._begun_after = self._passes()
        capture, root = self._capture(), self._root()
        if capture is not None and root is not None:
            capture.before_forward(root)
            capture._pass()  # nothing tells where such a pass ends: a step is whole without
