"""Custom loops: a gradient tape whose recording is a step.

Entering a wrapped tape begins the step. ``tape.gradient(loss, variables)`` saves the gradients, the variables as they
are before the update, the loss, what the optimizers hold and what passed through the layers of a registered model. The
step stays open until the next tape is entered. Inside a function of TensorFlow a tape has no values: there each call of
the function is a step.
"""

import weakref
from typing import Any, Dict, List, Optional, Tuple

import tensorflow as tf

from tornasole.core.collection import CollectionKeys
from tornasole.core.guard import guard
from tornasole.modes import ModeKeys
from tornasole.tensorflow import function_steps, step_recorder
from tornasole.tensorflow.function_steps import LOSS, Given
from tornasole.tensorflow.keras_names import gradient_name, is_weight, variable_name
from tornasole.tensorflow.step_recorder import Tap
from tornasole.tensorflow.tf_values import is_symbolic

_captures: "weakref.WeakKeyDictionary[Any, Any]" = weakref.WeakKeyDictionary()  # tape -> capture
_watched_classes: Dict[type, type] = {}


def _watched_class(of: type) -> type:
    """A subclass of a class of tapes, whose instances tell of what they do. It holds nothing of them."""

    class WatchedTape(of):
        def __enter__(self):
            result = super().__enter__()
            capture = _captures.get(self)
            if capture is not None:
                capture.entered(self)
            return result

        def __exit__(self, *error):
            capture = _captures.get(self)
            if capture is not None:
                capture.left(self)
            return super().__exit__(*error)

        @step_recorder.plain_call
        def gradient(self, target, sources, *arguments, **keywords):
            result = super().gradient(target, sources, *arguments, **keywords)
            capture = _captures.get(self)
            if capture is not None:
                capture.gradients(self, target, sources, result)
            return result

    WatchedTape.__name__, WatchedTape.__qualname__, WatchedTape.__module__ = of.__name__, of.__qualname__, of.__module__
    return WatchedTape


class TapeCapture:
    """The tapes of one hook."""

    def __init__(self, hook: Any):
        self._hook = weakref.ref(hook)
        self._tapes: "weakref.WeakSet[Any]" = weakref.WeakSet()
        self._has_patterns = False
        self._recorder: Optional[Any] = None
        self._is_due = False
        self._finds_model = False

    def wrap_entered(self, tape: Any, finds_model: bool) -> None:
        """Wraps a tape that has been entered just now; with ``finds_model``, the model is what the step calls."""
        self._finds_model = finds_model
        is_known = tape in _captures
        self.wrap(tape)
        if not is_known:
            self.entered(tape)

    def wrap(self, tape: Any) -> Any:
        hook = self._hook()
        try:
            if guard.disable_smdebug or hook._engine_hook is None:
                return tape
            hook.set_mode(ModeKeys.TRAIN)
            if not isinstance(tape, tf.GradientTape):
                hook.logger.warning("wrap_tape: %s is no tf.GradientTape; it is left alone", type(tape).__name__)
            elif tape not in _captures:
                kind = type(tape)
                if kind not in _watched_classes:
                    _watched_classes[kind] = _watched_class(kind)
                tape.__class__ = _watched_classes[kind]
                self._tapes.add(tape)
            if isinstance(tape, tf.GradientTape):
                _captures[tape] = self
        except Exception as error:
            guard.handle(error, "wrap_tape")
        return tape

    def entered(self, tape: Any) -> None:
        hook = self._hook()
        try:
            if hook is None or guard.disable_smdebug or hook._engine_hook is None or hook._is_unsupported():
                return
            self._stop_recording()
            if not tf.executing_eagerly() or self._begin_step(hook):
                self._start_recording(hook)
        except Exception as error:
            guard.handle(error, "the tape")

    def begin_call(self) -> Optional[Any]:
        """Begins a step that is a call of a function of TensorFlow; the hook, if anything is due in it."""
        hook = self._hook()
        try:
            if hook is not None and not guard.disable_smdebug and hook._engine_hook is not None:
                hook.set_mode(ModeKeys.TRAIN)
                if not hook._is_unsupported() and self._begin_step(hook):
                    return hook
        except Exception as error:
            guard.handle(error, "a step inside a function of TensorFlow")
        return None

    def _begin_step(self, hook: Any) -> bool:
        self._add_patterns(hook)
        if hook._watcher is not None:
            hook._watcher.before_step(hook.mode)
        self._is_due = hook._begin_step()
        if self._is_due:
            hook._step_is_due(hook.mode)
        return self._is_due

    def _start_recording(self, hook: Any) -> None:
        if hook.has_registered_model and hook.model is not None:
            self._recorder = step_recorder.Recorder(hook.model)
        elif self._finds_model:
            self._recorder = step_recorder.Calls()
        if self._recorder is not None:
            step_recorder.start(self._recorder)
            self._is_recording = True

    def _add_patterns(self, hook: Any) -> None:
        if self._has_patterns:
            return
        self._has_patterns = True
        hook._sync()
        hook._engine_hook.enter_tape()
        for name in (CollectionKeys.WEIGHTS, CollectionKeys.LOSSES, CollectionKeys.GRADIENTS):
            collection = hook.get_collection(name)
            collection._adopt(hook._engine_hook.collection_config(name))
            hook._pushed[name] = collection._plain()

    _is_recording = False

    def _stop_recording(self) -> None:
        if self._is_recording:
            self._is_recording = False
            step_recorder.stop()

    def left(self, tape: Any) -> None:
        self._stop_recording()

    def gradients(self, tape: Any, target: Any, sources: Any, result: Any) -> None:
        hook = self._hook()
        try:
            is_function = not tf.executing_eagerly()
            if hook is None or guard.disable_smdebug or hook._engine_hook is None or not (self._is_due or is_function):
                return
            if isinstance(self._recorder, step_recorder.Calls):
                self._find_model(hook, sources)
            given = self._given(hook, target, sources, result)
            if is_function:
                self._keep(hook, given)
            else:
                self._save(hook, given)
        except Exception as error:
            guard.handle(error, "the gradients of a tape")

    def _find_model(self, hook: Any, sources: Any) -> None:
        """The outermost model that was called in the step and has these variables is the one that is trained."""
        calls, self._recorder = self._recorder, None
        model = calls.model_with(tf.nest.flatten(sources))
        if model is not None:
            hook.register_model(model)
            self._recorder = calls.of_model(model)

    def _given(self, hook: Any, target: Any, sources: Any, result: Any) -> Given:
        root = getattr(hook.model, "name", "")
        weights: Dict[str, Any] = {}
        taps: List[Tuple[Tap, Any]] = []
        if isinstance(sources, (list, tuple)) and isinstance(result, (list, tuple)):
            for variable, gradient in zip(sources, result):
                if is_weight(variable):
                    name = variable_name(variable, root)
                    weights[f"weights/{name}"] = variable
                    if gradient is not None:
                        taps.append((Tap(gradient_name(name), CollectionKeys.GRADIENTS, name), gradient))
        self._stop_recording()
        recorder, self._recorder = self._recorder, None
        if recorder is None:
            return Given(target, weights, taps, [])
        taps += [(tap, value) for tap, value in recorder.taps() if tap.collection != CollectionKeys.GRADIENTS]
        hook._call_order = recorder.call_order or hook._call_order
        return Given(target, weights, taps, recorder.out_of_reach)

    @staticmethod
    def _save(hook: Any, given: Given) -> None:
        function_steps.save_weights(hook, given.weights)
        loss = [(LOSS, given.loss)] if tf.is_tensor(given.loss) and not is_symbolic(given.loss) else []
        for tap, value in [*loss, *given.taps]:
            if hook._is_wanted(*tap):
                function_steps.save_tap(hook, tap, value)
        function_steps.tell_out_of_reach(hook, given.out_of_reach)

    def _keep(self, hook: Any, given: Given) -> None:
        """What was given has no values yet. In ``fit`` the step is that of Keras."""
        if hook._is_fitting:
            return
        function_steps.note(self, given)
        if function_steps.is_nested():
            hook._cannot_capture("loss", "the tape is inside a loop or a function that a function of TensorFlow calls")

    def close(self) -> None:
        self._stop_recording()
        for tape in list(self._tapes):
            _captures.pop(tape, None)
            tape.__class__ = type(tape).__mro__[1]
        self._tapes.clear()
