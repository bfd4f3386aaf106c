"""Attaches a hook to a program that trains with Keras and has none.

``fit``, ``evaluate`` and ``predict`` of all models get one more callback, made at the first of these calls. A hook that
the script builds itself is used instead. With eager execution off, the optimizer of the model is made known to it.

Another model that is fitted, of a preset's run, is another training: it has a hook and a trial of its own, and the hook
before is closed. One that was fitted before is not: models may be fitted in turns.

A model on which ``train_on_batch`` is called is registered. Of several that are trained in turns, as those of a GAN, it
is the first: their losses have one name. Another one is once the first was left alone for a while.
"""

import contextlib
import functools
import inspect
import os
import sys
import threading
import weakref
from typing import Any, Callable, List, Optional

from tornasole.run import PRESET_VARIABLE
from tornasole.run.automatic_hook import end_training, is_to_be_found, make_automatic_hook, tell_nothing_is_captured


_IN_TURNS = 50  # calls of other models between two of one, at the most, if they are trained in turns
_depth = threading.local()  # .count: of the methods of models that run in this thread


def is_training() -> bool:
    """Whether ``fit``, ``evaluate``, ``predict`` or a method for one batch of a model runs in this thread."""
    return getattr(_depth, "count", 0) > 0


@contextlib.contextmanager
def _inside_model():
    _depth.count = getattr(_depth, "count", 0) + 1
    try:
        yield
    finally:
        _depth.count -= 1


def _hook_class() -> type:
    try:
        from tornasole.tensorflow.keras_hook import KerasHook
    except ModuleNotFoundError as error:
        raise ImportError("the hook for Keras needs TensorFlow to be installed, on every backend") from error
    return KerasHook


def find_hook(training: int = 1) -> Any:
    """The hook of the script, or one that is made for its n-th training; None if the script has one of another kind."""
    from tornasole.core.singleton_utils import current_hook

    made_by_script = current_hook()
    if made_by_script is not None and not isinstance(made_by_script, _hook_class()):
        return None
    return made_by_script or make_automatic_hook(_hook_class(), _preset_hook, training)


class Attachment:
    """The state of one attached process."""

    def __init__(self) -> None:
        self._hook: Any = None
        self._is_off = False
        self._calls_of_others = 0  # since the registered model was trained
        self._fitted: List["weakref.ref[Any]"] = []  # models
        self._trainings = 1  # that have a hook made for them, or will have

    def fits(self, model: Any) -> None:
        """A model is about to be fitted."""
        if any(known() is model for known in self._fitted):
            return
        is_first = not self._fitted
        self._fitted = [known for known in self._fitted if known() is not None] + [weakref.ref(model)]
        hook = self._hook
        if not is_first and hook is not None and hook._is_automatic and os.environ.get(PRESET_VARIABLE):
            self._hook = None
            self._trainings += 1
            end_training(hook)

    def callbacks_with_hook(self, model: Any, callbacks: Any) -> Optional[List[Any]]:
        """The callbacks of a call, and the hook; None if nothing is to be changed."""
        if hasattr(callbacks, "callbacks"):
            return None  # the list of an outer call, which has the hook
        given = [] if callbacks is None else list(callbacks) if isinstance(callbacks, (list, tuple)) else [callbacks]
        if self._is_off or any(isinstance(callback, _hook_class()) for callback in given):
            return None
        if not self._has_hook():
            return None
        if self._hook._graph.is_on() and getattr(model, "optimizer", None) is not None:
            # Of tf.compat.v1.train, in the cover of Keras; gradients are known if they are not made yet.
            self._hook.wrap_optimizer(getattr(model.optimizer, "optimizer", model.optimizer))
        return [*given, self._hook]

    def _has_hook(self) -> bool:
        if is_to_be_found(self._hook):
            self._hook = find_hook(self._trainings)
            self._is_off = self._hook is None
        return not self._is_off

    def registers(self, model: Any) -> bool:
        """Whether a model that is about to be trained on one batch has just been made known to the hook."""
        if self._is_off or not self._has_hook() or self._hook._graph.is_on():
            return False
        batches = self._hook._single_batches
        self._calls_of_others = 0 if batches.is_on(model) else self._calls_of_others + 1
        if batches.is_on(model) or (self._hook.has_registered_model and self._calls_of_others <= _IN_TURNS):
            return False
        self._calls_of_others = 0
        self._hook.register_model(model)
        return batches.is_on(model)

    def give_up(self, error: Exception) -> None:
        """Nothing is captured from now on, and it is said why."""
        self._is_off = True
        tell_nothing_is_captured(error, self._hook is not None)


def _preset_hook(name: str, out_dir: Optional[str]) -> Any:
    from tornasole.run.keras_presets import make_preset_hook

    return make_preset_hook(_hook_class(), name, out_dir)


def _captured(attachment: Attachment, function: Callable) -> Callable:
    names = list(inspect.signature(function).parameters)
    place = names.index("callbacks")

    @functools.wraps(function)
    def training_function(*arguments, **options):
        is_positional = place < len(arguments)
        callbacks = None
        try:
            if function.__name__ == "fit" and not is_training():
                attachment.fits(arguments[0])
            given = arguments[place] if is_positional else options.get("callbacks")
            callbacks = attachment.callbacks_with_hook(arguments[0], given)
        except Exception as error:
            attachment.give_up(error)
        if callbacks is not None and is_positional:
            arguments = (*arguments[:place], callbacks, *arguments[place + 1 :])
        elif callbacks is not None:
            options["callbacks"] = callbacks
        with _inside_model():
            return function(*arguments, **options)

    return training_function


def _captured_batch(attachment: Attachment, name: str, function: Callable) -> Callable:
    @functools.wraps(function)
    def method_of_batch(model, *arguments, **options):
        method = functools.partial(function, model)
        try:
            if name == "train_on_batch" and not is_training() and attachment.registers(model):
                method = getattr(model, name)  # the hook's, which comes back here
        except Exception as error:
            attachment.give_up(error)
        with _inside_model():
            return method(*arguments, **options)

    return method_of_batch


_attachments: dict = {}


def attach(package: str = "keras") -> Attachment:
    """Attaches to the models of a package, ``keras`` or ``tf_keras``, once."""
    if package not in _attachments:
        _attachments[package] = attachment = Attachment()
        keras = sys.modules[package]
        if keras.backend.backend() not in ("tensorflow", "torch"):
            return attachment  # the hook is for these
        # Models of Keras 2 that are built while eager execution is off are of a class of their own.
        graphs = [sys.modules.get(f"{package}.{where}.training_v1") for where in ("src.engine", "engine")]
        for model in [keras.Model, *(module.Model for module in graphs if module is not None)]:
            for name in ("fit", "evaluate", "predict"):
                setattr(model, name, _captured(attachment, getattr(model, name)))
            for name in ("train_on_batch", "test_on_batch", "predict_on_batch"):
                setattr(model, name, _captured_batch(attachment, name, getattr(model, name)))
    return _attachments[package]
