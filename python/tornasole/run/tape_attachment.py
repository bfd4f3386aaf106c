"""Attaches a hook to a program that trains with ``tf.GradientTape`` in a loop of its own, and has none.

The outermost tape that is entered outside ``fit``, ``evaluate`` and ``predict`` begins a step, as one that went through
``wrap_tape``; inside a function of TensorFlow each call of that does. The model is what such a step called to work out
its loss; an optimizer is known once it is used. Tapes of the frameworks' own, as of a layer that looks which variables
it uses, are none of the program's.
"""

import functools
import sys
import threading
from typing import Any, Callable, List, Optional

import tensorflow as tf

from tornasole.run import keras_attachment
from tornasole.run.automatic_hook import is_to_be_found, tell_nothing_is_captured

_FRAMEWORKS = ("keras.", "tf_keras.", "tensorflow.")


class Attachment:
    """The state of one attached process."""

    def __init__(self) -> None:
        self._hook: Any = None
        self._is_off = False
        self._entered = threading.local()  # .tapes: those of this thread, outer ones first

    def tapes(self) -> List[Any]:
        """The tapes that record in this thread."""
        if not hasattr(self._entered, "tapes"):
            self._entered.tapes = []
        return self._entered.tapes

    def entered(self, tape: Any, module: str) -> None:
        """A tape that a module has made records from now on."""
        tapes = self.tapes()
        tapes.append(tape)
        if self._is_off or len(tapes) > 1 or keras_attachment.is_training() or module.startswith(_FRAMEWORKS):
            return
        if is_to_be_found(self._hook):
            is_first = self._hook is None
            self._hook = keras_attachment.find_hook()
            if self._hook is None:
                self._is_off = True
                return
            if is_first:
                self._watch_optimizers()
        self._hook._tapes.wrap_entered(tape, finds_model=True)

    def left(self, tape: Any) -> None:
        """A tape does not record any more."""
        tapes = self.tapes()
        if tapes and tapes[0] is tape and self._hook is not None:
            self._hook._tapes.left(tape)
        if any(one is tape for one in tapes):
            del tapes[next(i for i, one in enumerate(tapes) if one is tape) :]

    def _watch_optimizers(self) -> None:
        """Optimizers of Keras are known from their first use on."""
        kinds = [tf.keras.optimizers.Optimizer]
        legacy = getattr(tf.keras.optimizers, "legacy", None)
        if not hasattr(kinds[0], "apply") and hasattr(getattr(legacy, "Optimizer", None), "apply_gradients"):
            kinds.append(legacy.Optimizer)
        for kind in kinds:
            name = "apply" if hasattr(kind, "apply") else "apply_gradients"
            setattr(kind, name, self._known(getattr(kind, name)))

    def _known(self, method: Callable) -> Callable:
        @functools.wraps(method)
        def method_of_optimizer(optimizer, *arguments, **options):
            result = method(optimizer, *arguments, **options)
            try:
                if not self._is_off and not keras_attachment.is_training():
                    self._hook._optimizers.wrap(optimizer)
            except Exception as error:
                self.give_up(error)
            return result

        method_of_optimizer.autograph_info__ = {}
        return method_of_optimizer

    def give_up(self, error: Exception) -> None:
        """Nothing is captured from now on, and it is said why."""
        self._is_off = True
        tell_nothing_is_captured(error, self._hook is not None)


_attachment: Optional[Attachment] = None


def attach() -> Attachment:
    """Attaches to all tapes, once."""
    global _attachment
    if _attachment is None:
        _attachment = attachment = Attachment()
        enter, leave = tf.GradientTape.__enter__, tf.GradientTape.__exit__

        @functools.wraps(enter)
        def enter_tape(tape):
            result = enter(tape)
            try:
                attachment.entered(tape, sys._getframe(1).f_globals.get("__name__") or "")
            except Exception as error:
                attachment.give_up(error)
            return result

        @functools.wraps(leave)
        def leave_tape(tape, *error):
            attachment.left(tape)
            return leave(tape, *error)

        # Called as they are inside functions of TensorFlow, whose source is read otherwise.
        enter_tape.autograph_info__ = leave_tape.autograph_info__ = {}
        tf.GradientTape.__enter__, tf.GradientTape.__exit__ = enter_tape, leave_tape
    return _attachment
