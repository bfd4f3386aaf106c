"""Attaches a hook to a program of MXNet Gluon that has none.

The first call of an outermost block with something to train makes the hook and registers that block; until then calls of
blocks are looked at, afterwards they are not. Losses of ``gluon.loss`` are registered at their first call. The mode of a
step is training or evaluation, as ``autograd`` says. A hook that the script builds itself is used instead. After
``del_hook()`` the next model makes another.
"""

import threading
from typing import Any, Optional

from mxnet.gluon import Block
from mxnet.gluon.loss import Loss
from mxnet.ndarray import NDArray

from tornasole.run.automatic_hook import is_to_be_found, make_automatic_hook, tell_nothing_is_captured
from tornasole.run.fixed_presets import make_preset_hook


class Attachment:
    """The state of one attached process."""

    def __init__(self) -> None:
        self.hook: Any = None
        self._is_off = False
        self._inside = threading.local()
        self._block_call = Block.__call__

    def search(self) -> None:
        """From now on every call of a block is looked at, until the model is found; losses always."""
        call = self._block_call

        def call_block(block, *arguments):
            if getattr(self._inside, "is_true", False) or isinstance(block, Loss):
                return call(block, *arguments)
            self._look_at(block, arguments)
            self._inside.is_true = True
            try:
                return call(block, *arguments)
            finally:
                self._inside.is_true = False

        def call_loss(block, *arguments):
            if self.hook is not None and not self._is_off:
                if self._is_given_up():  # the next call of a model finds another
                    self.hook, Block.__call__ = None, call_block
                elif block not in self.hook.registered_blocks:
                    self._guarded(self.hook.register_block, block)
            return call(block, *arguments)

        Block.__call__ = call_block
        Loss.__call__ = call_loss

    def _is_given_up(self) -> bool:
        """Whether the script gave up the hook, or built another one since."""
        from tornasole.core.singleton_utils import current_hook

        return is_to_be_found(self.hook) or current_hook() not in (None, self.hook)

    def _look_at(self, block: Block, arguments: tuple) -> None:
        if self.hook is None and not self._is_off and any(isinstance(one, NDArray) for one in arguments):
            self._guarded(self._take, block)

    def _take(self, block: Block) -> None:
        from tornasole.core.singleton_utils import current_hook
        from tornasole.mxnet.gluon_hook import Hook

        if not any(parameter.grad_req != "null" for parameter in block.collect_params().values()):
            return
        Block.__call__ = self._block_call
        hook = current_hook()
        if hook is not None and not isinstance(hook, Hook):
            self._is_off = True
            return
        if hook is None:
            hook = make_automatic_hook(Hook, lambda preset, out: make_preset_hook(Hook, preset, out))
            hook._mode_follows_training = True
        self.hook = hook
        if hook.model is None:
            hook.register_block(block)

    def _guarded(self, action, block: Block) -> None:
        try:
            action(block)
        except Exception as error:
            self._is_off = True
            Block.__call__ = self._block_call
            tell_nothing_is_captured(error, self.hook is not None)


_attachment: Optional[Attachment] = None


def attach() -> Attachment:
    """Attaches to Gluon, once."""
    global _attachment
    if _attachment is None:
        _attachment = Attachment()
        _attachment.search()
    return _attachment
