"""``train_on_batch``, ``test_on_batch`` and ``predict_on_batch`` of a registered model: each call is a step."""

import weakref
from typing import Any, Callable, Dict

from tornasole.core.guard import guard
from tornasole.modes import ModeKeys

KINDS = {ModeKeys.TRAIN: "train", ModeKeys.EVAL: "test", ModeKeys.PREDICT: "predict"}


class SingleBatches:
    """The methods of one model at a time, each with the beginning of a step before it."""

    def __init__(self, hook: Any):
        self._hook = weakref.ref(hook)
        self._model: Any = None
        self._methods: Dict[str, Callable] = {}

    def is_on(self, model: Any) -> bool:
        """Whether it is this model whose calls are steps."""
        return self._model is model

    def wrap(self, model: Any) -> None:
        if self.is_on(model):
            return
        self.unwrap()
        self._model = model
        for mode, kind in KINDS.items():
            name = f"{kind}_on_batch"
            self._methods[name] = model.__dict__[name] = self._wrapped(model, mode, kind, getattr(model, name))

    def _wrapped(self, model: Any, mode: ModeKeys, kind: str, method: Callable) -> Callable:
        known = self._hook

        def run_single_batch(*arguments, **keywords):
            hook = known()
            try:
                if hook is not None and hook._engine_hook is not None and not guard.disable_smdebug:
                    if hook.model is not model:
                        hook.set_model(model)  # another one was trained since
                    # The function that runs the batch is what the hook looks for.
                    if model.__dict__.get(f"{kind}_function") is None:
                        getattr(model, f"make_{kind}_function")()
                    hook._batch_begins(hook._engine_hook.mode_step(mode.value) + 1, mode)
            except Exception as error:
                guard.handle(error, f"{kind}_on_batch")
            return method(*arguments, **keywords)

        return run_single_batch

    def unwrap(self) -> None:
        """Takes the methods off the model."""
        for name, wrapper in self._methods.items():
            if self._model.__dict__.get(name) is wrapper:
                del self._model.__dict__[name]
        self._model, self._methods = None, {}
