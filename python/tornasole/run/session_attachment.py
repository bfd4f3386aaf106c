"""Attaches a hook to a program of ``tf.compat.v1`` that has none: monitored sessions, and estimators, which open such.

Every ``MonitoredSession`` and ``SingularMonitoredSession`` gets one more hook, before all others. The sessions of an
estimator have the mode of the call that opened them: training, evaluation or prediction; others have none. What the
optimizers of ``tf.compat.v1.train`` are told to minimize, their gradients and their variables are noted with the graph.
A hook that the script builds itself is used instead.
"""

import contextlib
import functools
import inspect
import sys
import threading
from collections.abc import Iterator
from typing import Any, Callable, List, Optional

import tensorflow as tf

from tornasole.modes import ModeKeys
from tornasole.run.automatic_hook import is_to_be_found, make_automatic_hook, tell_nothing_is_captured
from tornasole.run.fixed_presets import make_preset_hook

_v1 = tf.compat.v1
_MODES = {"train": ModeKeys.TRAIN, "evaluate": ModeKeys.EVAL, "predict": ModeKeys.PREDICT}  # methods of estimators


class SessionPart(_v1.train.SessionRunHook):
    """The hook of the process in one session, in the mode of that session."""

    def __init__(self, hook: Any, mode: Optional[ModeKeys]):
        self._hook, self._mode = hook, mode

    def _in_mode(self) -> Any:
        if self._mode is not None and self._hook.mode is not self._mode:
            self._hook.set_mode(self._mode)
        return self._hook

    def begin(self) -> None:
        self._in_mode().begin()

    def before_run(self, run_context):
        return self._in_mode().before_run(run_context)

    def after_run(self, run_context, run_values) -> None:
        self._hook.after_run(run_context, run_values)

    def end(self, session) -> None:
        self._hook.end(session)


class Attachment:
    """The state of one attached process."""

    def __init__(self) -> None:
        self._hook: Any = None
        self._is_off = False
        self._inside = threading.local()  # .mode: of the estimator's method that runs

    def hooks_of(self, hooks: Any) -> Optional[List[Any]]:
        """The hooks of a session and ours before them; None if nothing is to be changed."""
        from tornasole.core.singleton_utils import current_hook
        from tornasole.tensorflow.session_hook import SessionHook

        given = list(hooks or ())
        if self._is_off or any(isinstance(hook, (SessionHook, SessionPart)) for hook in given):
            return None
        if is_to_be_found(self._hook):
            made_by_script = current_hook()
            if made_by_script is not None and not isinstance(made_by_script, SessionHook):
                self._is_off = True
                return None
            self._hook = made_by_script or make_automatic_hook(
                SessionHook, lambda preset, out: make_preset_hook(SessionHook, preset, out)
            )
        # Ours is the first: what another does after a run may be an evaluation, with steps of its own.
        return [SessionPart(self._hook, getattr(self._inside, "mode", None)), *given]

    @contextlib.contextmanager
    def in_mode(self, mode: ModeKeys) -> Iterator[None]:
        """Sessions that this thread opens are in the mode."""
        outer = getattr(self._inside, "mode", None)
        self._inside.mode = mode
        try:
            yield
        finally:
            self._inside.mode = outer

    def give_up(self, error: Exception) -> None:
        """Nothing is captured from now on, and it is said why."""
        self._is_off = True
        tell_nothing_is_captured(error, self._hook is not None)


def _captured(attachment: Attachment, construct: Callable) -> Callable:
    """The constructor of a class of sessions, with one more hook."""
    place = list(inspect.signature(construct).parameters).index("hooks")

    @functools.wraps(construct)
    def construct_session(*arguments, **options):
        hooks = None
        is_positional = place < len(arguments)
        try:
            hooks = attachment.hooks_of(arguments[place] if is_positional else options.get("hooks"))
        except Exception as error:
            attachment.give_up(error)
        if hooks is not None and is_positional:
            arguments = (*arguments[:place], hooks, *arguments[place + 1 :])
        elif hooks is not None:
            options["hooks"] = hooks
        return construct(*arguments, **options)

    return construct_session


def _noted(attachment: Attachment, method: Callable, note: Callable[[Any, Any], None]) -> Callable:
    """A method of all optimizers; ``note(optimizer, first argument)`` is called after it."""
    name = list(inspect.signature(method).parameters)[1]

    @functools.wraps(method)
    def method_of_optimizer(optimizer, *arguments, **options):
        first = arguments[0] if arguments else options.get(name)
        if isinstance(first, Iterator):  # it can be read but once
            first = list(first)
            arguments, options = ((first, *arguments[1:]), options) if arguments else ((), {**options, name: first})
        result = method(optimizer, *arguments, **options)
        try:
            note(optimizer, first)
        except Exception as error:
            attachment.give_up(error)
        return result

    return method_of_optimizer


def _note_loss(_: Any, loss: Any) -> None:
    from tornasole.tensorflow.graph_tensors import GraphFacts

    if tf.is_tensor(loss) and not tf.executing_eagerly():
        GraphFacts.add(GraphFacts.of(loss.graph).minimized, [loss])


def _note_gradients(optimizer: Any, pairs: Any) -> None:
    from tornasole.tensorflow.graph_tensors import GraphFacts

    if tf.executing_eagerly():
        return
    facts = GraphFacts.of(_v1.get_default_graph())
    GraphFacts.add(facts.gradients, [gradient for gradient, _ in pairs])
    GraphFacts.add(facts.optimizer_variables, optimizer.variables())


def _in_mode(attachment: Attachment, name: str, method: Callable) -> Callable:
    """A method of estimators, whose sessions have its mode."""
    if not inspect.isgeneratorfunction(inspect.unwrap(method)):

        @functools.wraps(method)
        def method_of_estimator(*arguments, **options):
            with attachment.in_mode(_MODES[name]):
                return method(*arguments, **options)

        return method_of_estimator

    @functools.wraps(method)
    def generator_of_estimator(*arguments, **options):
        results = method(*arguments, **options)
        while True:
            with attachment.in_mode(_MODES[name]):
                try:
                    result = next(results)
                except StopIteration:
                    return
            yield result

    return generator_of_estimator


_attachment: Optional[Attachment] = None


def attach() -> Attachment:
    """Attaches to the sessions and optimizers of ``tf.compat.v1``, once."""
    global _attachment
    if _attachment is None:
        _attachment = Attachment()
        for kind in (_v1.train.MonitoredSession, _v1.train.SingularMonitoredSession):
            kind.__init__ = _captured(_attachment, kind.__init__)
        optimizer = _v1.train.Optimizer
        optimizer.compute_gradients = _noted(_attachment, optimizer.compute_gradients, _note_loss)
        optimizer.apply_gradients = _noted(_attachment, optimizer.apply_gradients, _note_gradients)
    return _attachment


def attach_estimators(module: str) -> None:
    """Attaches to the estimators of a module."""
    attachment = attach()
    estimator = sys.modules[module].Estimator
    for name in _MODES:
        setattr(estimator, name, _in_mode(attachment, name, getattr(estimator, name)))
