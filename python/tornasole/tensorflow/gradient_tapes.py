"""Custom loops: a gradient tape whose recording is a step.

Entering a wrapped tape begins the step. ``tape.gradient(loss, variables)`` saves the gradients, the variables as they
are before the update, the loss, what the optimizers hold and what passed through the layers of a registered model. The
step stays open until the next tape is entered.
"""

import weakref
from typing import Any, Dict, Optional

import tensorflow as tf

from tornasole.core.collection import CollectionKeys
from tornasole.core.guard import guard
from tornasole.modes import ModeKeys
from tornasole.tensorflow import step_recorder
from tornasole.tensorflow.keras_names import gradient_name, variable_name
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
            if not tf.executing_eagerly():
                hook._cannot_capture("loss", "the tape is inside a function of TensorFlow, where nothing has a value")
                return
            self._add_patterns(hook)
            self._stop_recording()
            if hook._watcher is not None:
                hook._watcher.before_step(hook.mode)
            self._is_due = hook._begin_step()
            if not self._is_due:
                return
            hook._step_is_due(hook.mode)
            if hook.has_registered_model and hook.model is not None:
                self._recorder = step_recorder.Recorder(hook.model)
            elif self._finds_model:
                self._recorder = step_recorder.Calls()
            if self._recorder is not None:
                step_recorder.start(self._recorder)
                self._is_recording = True
        except Exception as error:
            guard.handle(error, "the tape")

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
            if hook is None or not self._is_due or guard.disable_smdebug or not tf.executing_eagerly():
                return
            if isinstance(self._recorder, step_recorder.Calls):
                self._find_model(hook, sources)
            if isinstance(sources, (list, tuple)) and isinstance(result, (list, tuple)):
                self._save_variables(hook, sources, result)
            hook._save_optimizers()
            if tf.is_tensor(target) and not is_symbolic(target) and hook._is_wanted("loss", CollectionKeys.LOSSES):
                hook._save_as("loss", target, CollectionKeys.LOSSES)
                if hook._watcher is not None:
                    hook._watcher.loss(target)
            self._save_layers(hook)
        except Exception as error:
            guard.handle(error, "the gradients of a tape")

    def _find_model(self, hook: Any, sources: Any) -> None:
        """The outermost model that was called in the step and has these variables is the one that is trained."""
        calls, self._recorder = self._recorder, None
        model = calls.model_with(tf.nest.flatten(sources))
        if model is not None:
            hook.register_model(model)
            self._recorder = calls.of_model(model)

    @staticmethod
    def _save_variables(hook: Any, sources: Any, gradients: Any) -> None:
        root = getattr(hook.model, "name", "")
        for variable, gradient in zip(sources, gradients):
            if not (hasattr(variable, "path") or isinstance(variable, tf.Variable)):
                continue
            name = variable_name(variable, root)
            if gradient is not None and hook._is_wanted(gradient_name(name), CollectionKeys.GRADIENTS, name):
                dense = tf.convert_to_tensor(gradient) if isinstance(gradient, tf.IndexedSlices) else gradient
                hook._save_as(gradient_name(name), dense, CollectionKeys.GRADIENTS)
            kind = hook._weight_collection(f"weights/{name}")
            if hook._is_wanted(f"weights/{name}", kind):
                hook._save_as(f"weights/{name}", variable, kind)

    def _save_layers(self, hook: Any) -> None:
        recorder, self._recorder = self._recorder, None
        if recorder is None:
            return
        for tap, value in recorder.taps():
            if tap.collection != CollectionKeys.GRADIENTS and hook._is_wanted(tap.name, tap.collection):
                hook._save_as(tap.name, value, tap.collection)
        for tap in recorder.out_of_reach:
            if hook._is_wanted(tap.name, tap.collection, tap.asked):
                hook._cannot_capture(tap.name, "it is inside a function of TensorFlow")

    def close(self) -> None:
        self._stop_recording()
        for tape in list(self._tapes):
            _captures.pop(tape, None)
            tape.__class__ = type(tape).__mro__[1]
        self._tapes.clear()
