"""The hook for Keras: what is captured, under which name, and when.

======================  =================================================  ==========================================
tensor                  name                                               captured
======================  =================================================  ==========================================
loss, metrics           the keys of the logs, and ``batch``                after the batch; at the end of an epoch too
weight, bias            ``<layer>/weights/<variable>``                     after the batch: behind the update
gradient                ``gradients/<variable>Grad``                       as the tape of the training step gives it
layer input, output     ``<layer>/inputs``, ``<layer>/outputs``            when the layer is called
model input             ``inputs``                                         as the step gets it
labels, predictions     ``labels``, ``predictions``                        as the step gets and makes them
optimizer variable      the name of the variable                           after the batch
======================  =================================================  ==========================================

Several tensors in one place are numbered: ``inputs_0``, ``inputs_1``. A step is a batch of ``fit``, ``evaluate`` or
``predict``, or what a wrapped tape records.
"""

import re
from typing import Any, Callable, Dict, List, Optional

import tensorflow as tf

from tornasole.core.collection import CollectionKeys
from tornasole.core.guard import guard, guarded
from tornasole.modes import ModeKeys
from tornasole.tensorflow.batch_logs import is_debug_key, named_log_values
from tornasole.tensorflow.gradient_tapes import TapeCapture
from tornasole.tensorflow.keras_description import describe
from tornasole.tensorflow.keras_names import named_layers, variable_name, weight_names
from tornasole.tensorflow.optimizer_wraps import OptimizerWraps, is_built, optimizer_variables
from tornasole.tensorflow.step_functions import ModeFunctions
from tornasole.tensorflow.step_tap import NotTapped
from tornasole.tensorflow.tf_base_hook import LOSS_KEYS, TensorflowBaseHook
from tornasole.tensorflow.tf_values import is_symbolic
from tornasole.tensorflow.tf_workers import unsupported_strategy

_KINDS = {ModeKeys.TRAIN: "train", ModeKeys.EVAL: "test", ModeKeys.PREDICT: "predict"}
_INSIDE = (CollectionKeys.LAYERS, CollectionKeys.GRADIENTS, CollectionKeys.INPUTS, CollectionKeys.OUTPUTS)


class KerasHook(TensorflowBaseHook, tf.keras.callbacks.Callback):
    """Captures tensors of a Keras training into a trial: a callback of ``fit``, ``evaluate`` and ``predict``.

    >>> hook = KerasHook(out_dir="runs/mnist", save_config=SaveConfig(save_interval=100))  # doctest: +SKIP
    >>> model.fit(x, y, callbacks=[hook])                                                  # doctest: +SKIP

    The arguments are those of every hook. After construction no call raises into the training because of a fault of
    the disk, of a value or of this library: what was lost is counted and stands in ``report()``.
    """

    # Read by Keras: logs may come as tensors, and the end of a batch may come from another thread.
    _supports_tf_logs = True
    async_safe = True

    @guarded()
    def __init__(self, *arguments, **options) -> None:
        tf.keras.callbacks.Callback.__init__(self)
        super().__init__(*arguments, **options)
        self._supports_tf_logs = True
        self._functions: Dict[str, ModeFunctions] = {}
        self._functions_of: Optional[Any] = None  # the model they belong to
        self._replaced: Optional[ModeFunctions] = None  # whose function waits to be called
        self._open_batch: Optional[ModeKeys] = None  # begun by a callback, with no function to end it
        self._is_off = False
        self._checked_model: Optional[Any] = None
        self._described: Any = None
        self._excluded_optimizer: Optional[Any] = None
        self._batch_methods: Dict[str, Callable] = {}
        self._weights: Dict[str, Any] = {}
        self._weights_of: Any = None
        self._kinds_of_weights: Dict[str, str] = {}
        self._call_order: List[str] = []
        self._optimizers = OptimizerWraps(self)
        self._tapes = TapeCapture(self)
        self._is_asked_for_rates = False  # by a preset
        self._watcher: Optional[Any] = None
        self.has_registered_model = False
        self.optimizer: Optional[Any] = None

    # ---- what users call

    @guarded()
    def register_model(self, model: tf.keras.Model) -> None:
        """Captures the layers of this model in custom loops with :meth:`wrap_tape`, and its ``train_on_batch``,
        ``test_on_batch`` and ``predict_on_batch``. ``fit``, ``evaluate`` and ``predict`` need the hook as a callback only.
        """
        if self.has_registered_model and self.model is not model:
            self._unwrap_batch_methods()
        self.set_model(model)
        self.has_registered_model = True
        self._wrap_batch_methods(model)

    def wrap_optimizer(self, optimizer):
        """Makes an optimizer known, whose variables and gradients are captured; the same object.

        An optimizer of a model that is trained with ``fit`` is known by itself.
        """
        self.optimizer = optimizer
        return self._optimizers.wrap(optimizer)

    def wrap_tape(self, tape):
        """A tape whose recording is a step: weights, gradients and loss are saved at ``tape.gradient(loss, variables)``.

        The same object. The mode is ``TRAIN`` from here on unless it is set.
        """
        return self._tapes.wrap(tape)

    @guarded()
    def record_tensor_value(self, tensor_name: str, tensor_value) -> None:
        """Saves a value in ``metrics``, or in ``losses`` if it is called loss or val_loss. :meth:`save_tensor` can do more."""
        if is_symbolic(tensor_value) or self._engine_hook is None:
            return
        collection = CollectionKeys.LOSSES if tensor_name in LOSS_KEYS else CollectionKeys.METRICS
        self._find_due()
        if self._engine_hook.anything_due() and self._is_wanted(tensor_name, collection):
            self._save_as(tensor_name, tensor_value, collection)

    @guarded()
    def save_tape_logs(self, model_inputs=None, outputs=None) -> None:
        """Saves inputs and predictions of a custom loop."""
        self._save_debug_logs({"smdebug_x": model_inputs, "smdebug_y_pred": outputs})

    @guarded()
    def save_smdebug_logs(self, logs) -> None:
        """Saves what batch logs hold under the keys ``smdebug_x``, ``smdebug_y``, ``smdebug_y_pred``,
        ``smdebug_gradients`` and ``smdebug_layer_outputs``."""
        self._save_debug_logs(logs)

    @guarded()
    def set_gradients(self, gradients=None, gradients_and_variables=None) -> None:
        """Saves the gradients of a step that the script worked out itself: (gradient, variable) pairs."""
        self._optimizers.set_gradients(gradients, gradients_and_variables)

    @guarded()
    def set_optimizer_variables(self, optimizer_variables) -> None:
        """Variables to be captured as those of an optimizer."""
        self._optimizers.add_variables(optimizer_variables)

    # ---- callbacks of Keras

    @guarded()
    def on_train_begin(self, logs=None) -> None:
        """Called by Keras."""
        self._mode_begins(ModeKeys.TRAIN)

    @guarded()
    def on_test_begin(self, logs=None) -> None:
        """Called by Keras."""
        self._mode_begins(ModeKeys.EVAL)

    @guarded()
    def on_predict_begin(self, logs=None) -> None:
        """Called by Keras."""
        self._mode_begins(ModeKeys.PREDICT)

    @guarded()
    def on_train_batch_begin(self, batch, logs=None) -> None:
        """Called by Keras: a step of the training begins."""
        self._batch_begins(batch, ModeKeys.TRAIN)

    @guarded()
    def on_test_batch_begin(self, batch, logs=None) -> None:
        """Called by Keras: a step of an evaluation begins."""
        self._batch_begins(batch, ModeKeys.EVAL)

    @guarded()
    def on_predict_batch_begin(self, batch, logs=None) -> None:
        """Called by Keras: a step of a prediction begins."""
        self._batch_begins(batch, ModeKeys.PREDICT)

    @guarded()
    def on_train_batch_end(self, batch, logs=None) -> None:
        """Called by Keras."""
        self._batch_ends(batch, ModeKeys.TRAIN, logs)

    @guarded()
    def on_test_batch_end(self, batch, logs=None) -> None:
        """Called by Keras."""
        self._batch_ends(batch, ModeKeys.EVAL, logs)

    @guarded()
    def on_predict_batch_end(self, batch, logs=None) -> None:
        """Called by Keras."""
        self._batch_ends(batch, ModeKeys.PREDICT, logs)

    @guarded()
    def on_epoch_end(self, epoch, logs=None) -> None:
        """Called by Keras: losses and metrics of the epoch are saved in the step of its last batch."""
        engine = self._engine_hook
        if engine is None or self._is_off or not logs or not self.prepared_collections:
            return
        if engine.make_due([CollectionKeys.METRICS, CollectionKeys.LOSSES]):
            self._find_due()
            self._save_logs(epoch, logs)
        self._end_step()
        self._look_for_stop()

    # ---- steps

    def _mode_begins(self, mode: ModeKeys) -> None:
        if not self._is_unsupported():
            self.set_mode(mode)

    def _is_unsupported(self) -> bool:
        model = self.model
        if model is not None and model is not self._checked_model:
            self._checked_model = model
            name = unsupported_strategy(getattr(model, "distribute_strategy", None) or tf.distribute.get_strategy())
            if name is not None:
                self.logger.info("trainings with %s cannot be captured: the hook is off", name)
            self._is_off = name is not None
        if model is not None:
            self._keep_optimizer_out_of_biases(model)
        return self._is_off

    def _keep_optimizer_out_of_biases(self, model: Any) -> None:
        """The optimizer's variables have the names of weights in theirs, but are neither weights nor biases."""
        if (optimizer := getattr(model, "optimizer", None)) is self._excluded_optimizer:
            return
        self._excluded_optimizer = optimizer
        names = [getattr(one, "name", None) for one in (optimizer, getattr(optimizer, "inner_optimizer", None))]
        patterns = [f"^{re.escape(name)}/" for name in names if isinstance(name, str) and name]
        self.get_collection(CollectionKeys.BIASES).exclude(patterns)

    def _batch_begins(self, batch: int, mode: ModeKeys) -> None:
        if self._is_unsupported():
            return
        if self._replaced is not None:
            self._put_back()  # the last batch never ran
        if self._engine_hook is not None and self._engine_hook.stop_requested:
            self._look_for_stop()
        self._open_batch = None
        if self._watcher is not None:
            self._watcher.before_step(mode)
        if not self._begin_step(mode):
            return
        self._step_is_due(mode)
        model = self.model
        functions = self._functions_for(model, _KINDS[mode])
        if model is None or model.__dict__.get(functions.attribute) is None:
            self._open_batch = mode  # no function of Keras will end it
            return
        tapped = self._find_tapped(functions)
        self._replaced = functions
        original = model.__dict__[functions.attribute]

        def run_and_capture(*arguments):
            self._put_back()
            return self._run(functions, tapped, original, arguments, batch, mode)

        self._original_function = original
        model.__dict__[functions.attribute] = run_and_capture

    def _put_back(self) -> None:
        functions, self._replaced = self._replaced, None
        if functions is not None:
            functions.model.__dict__[functions.attribute] = self._original_function

    def _functions_for(self, model: Any, kind: str) -> ModeFunctions:
        if self._functions_of is not model:
            self._functions, self._functions_of = {}, model
        if kind not in self._functions:
            self._functions[kind] = ModeFunctions(model, kind)
        return self._functions[kind]

    def _find_tapped(self, functions: ModeFunctions) -> Any:
        """What gives the tensors inside the step, if any of them may be wanted."""
        try:
            due = self._due
            # Any other collection may have a pattern that takes in one of these tensors.
            if not due & set(_INSIDE) and not any(
                collection._include_regex
                for name, collection in self.collection_manager.collections.items()
                if name in due and name not in (CollectionKeys.BIASES, CollectionKeys.LOSSES)
            ):
                return None
            tapped = functions.find_tapped(lambda tap: self._is_wanted(tap.name, tap.collection, tap.asked))
            if tapped is None and functions.reason is not None:
                self._tell_missing(functions.reason)
            return tapped
        except Exception as error:
            guard.handle(error, "the tensors inside the step")
            return None

    def _tell_missing(self, reason: str) -> None:
        for name, kind in (("inputs", "inputs"), ("labels", "outputs"), ("predictions", "outputs")):
            if self._is_wanted(name, kind):
                self._cannot_capture(name, reason)
        for name, _, _ in named_layers(self.model):
            for side in ("inputs", "outputs"):
                if self._is_wanted(f"{name}/{side}", CollectionKeys.LAYERS):
                    self._cannot_capture(f"{name}/{side}", reason)
        for variable in self.model.trainable_variables if is_built(self.model) else ():
            name = variable_name(variable, self.model.name)
            if self._is_wanted(f"gradients/{name.split(':')[0]}Grad", CollectionKeys.GRADIENTS, name):
                self._cannot_capture(f"gradients/{name.split(':')[0]}Grad", reason)

    def _run(self, functions: ModeFunctions, tapped: Any, original, arguments, batch, mode):
        """Runs the batch, and saves what it gave."""
        taps: Dict[str, Any] = {}
        try:
            if tapped is None:
                logs = original(*arguments)
            else:
                try:
                    logs, taps = tapped(original, arguments)
                except NotTapped as error:
                    functions.give_up(str(error))
                    self._tell_missing(str(error))
                    tapped = None
                    logs = original(*arguments)
        except (StopIteration, tf.errors.OutOfRangeError):
            raise  # the data came to their end
        except BaseException:
            self._fail_step()
            raise
        self._save_batch(functions, tapped, taps, batch, mode, logs)
        return logs

    @guarded()
    def _fail_step(self) -> None:
        self._end_step(partial=True)

    @guarded()
    def _save_batch(self, functions: ModeFunctions, tapped: Any, taps: Dict[str, Any], batch, mode, logs) -> None:
        if tapped is not None:
            if tapped.failure is not None:
                functions.give_up(tapped.failure)
                self._tell_missing(tapped.failure)
            else:
                functions.settle(taps)
            step = tapped.step
            for name in step.out_of_reach:
                if self._is_wanted(name, CollectionKeys.LAYERS):
                    self._cannot_capture(name, "it is inside a loop or a function of TensorFlow")
            self._call_order = step.call_order or self._call_order
            for name, value in taps.items():
                tap = step.taps[name]
                if self._is_wanted(tap.name, tap.collection, tap.asked):
                    self._save_as(name, value, tap.collection)
        if mode is ModeKeys.PREDICT:
            logs = {"outputs": logs}
        self._save_after_batch(batch, mode, logs, "predictions" in taps)

    def _batch_ends(self, batch, mode: ModeKeys, logs) -> None:
        if self._open_batch is not mode or self._is_off:
            return
        self._open_batch = None
        self._save_after_batch(batch, mode, logs, False)

    def _save_after_batch(self, batch, mode: ModeKeys, logs, has_predictions: bool) -> None:
        """What can be read once a batch is over."""
        if isinstance(logs, dict):
            self._save_logs(batch, logs)
            self._save_debug_logs(logs)
            if mode is ModeKeys.PREDICT and not has_predictions:
                self._save_debug_logs({"smdebug_y_pred": logs.get("outputs")})
        self._save_weights()
        self._save_optimizers()
        if self._described != self._model_key():
            self._describe()
        self._look_for_stop()

    def _step_is_due(self, mode: ModeKeys) -> None:
        self._find_due()
        facts = {"training": mode is ModeKeys.TRAIN, "grad_enabled": mode is ModeKeys.TRAIN}
        facts.update(self._optimizers.facts(self.model))
        self._engine_hook.set_facts(facts)
        if self._wants_optimizers():
            self._optimizers.save_rates(self.model)

    def _wants_optimizers(self) -> bool:
        return self._is_asked_for_rates or CollectionKeys.OPTIMIZER_GRADIENTS in self.include_collections

    def _look_for_stop(self) -> None:
        if self.stop_requested and self.model is not None and self._options.get("honour_stop", True):
            self.model.stop_training = True

    # ---- values

    def _save_logs(self, batch, logs: Dict[str, Any]) -> None:
        for key, value in [*logs.items(), ("batch", batch)]:
            if key == "outputs" or is_debug_key(key):
                continue
            collection = CollectionKeys.LOSSES if key in LOSS_KEYS else CollectionKeys.METRICS
            if self._is_wanted(key, collection):
                self._save_as(key, value, collection)
                if self._watcher is not None and key == "loss":
                    self._watcher.loss(value)

    def _save_debug_logs(self, logs: Optional[Dict[str, Any]]) -> None:
        model = self.model
        for name, value, collection, asked in named_log_values(logs or {}, model):
            if not is_symbolic(value) and self._is_wanted(name, collection, asked):
                self._save_as(name, value, collection)

    def _model_weights(self) -> Dict[str, Any]:
        model = self.model
        if model is None:
            return {}
        count = len(model.weights) if is_built(model) else 0
        if self._weights_of is not model or len(self._weights) != count:
            self._weights, self._weights_of = (weight_names(model) if count else {}), model
        return self._weights

    def _save_weights(self) -> None:
        due = self._due
        if due <= {CollectionKeys.LOSSES, CollectionKeys.METRICS, CollectionKeys.SM_METRICS}:
            return
        for name, variable in self._model_weights().items():
            kind = self._kinds_of_weights.get(name)
            if kind is None:
                kind = self._weight_collection(name.split("/weights/", 1)[1])
                self._kinds_of_weights[name] = kind
            if self._is_wanted(name, kind):
                self._save_as(name, variable, kind)

    def _save_optimizers(self) -> None:
        if self.mode is not ModeKeys.TRAIN:
            return
        due = self._due
        if due <= {CollectionKeys.LOSSES, CollectionKeys.METRICS, CollectionKeys.SM_METRICS}:
            return
        for name, variable in optimizer_variables(self._optimizers.known(self.model), self._optimizers.added()):
            if self._is_wanted(name, CollectionKeys.OPTIMIZER_VARIABLES):
                self._save_as(name, variable, CollectionKeys.OPTIMIZER_VARIABLES)

    def _tensor_name_of(self, arg: object) -> Optional[str]:
        for name, variable in self._model_weights().items():
            if variable is arg or getattr(variable, "value", None) is arg:
                return name
        return None

    # ---- the model in words

    def _model_key(self) -> Any:
        return None if self.model is None else (id(self.model), len(self._model_weights()), bool(self._call_order))

    def _describe(self) -> None:
        self._described = self._model_key()
        if self.model is not None:
            optimizers = self._optimizers.known(self.model)
            self._engine_hook.describe_model(describe(self.model, self._model_weights(), self._call_order, optimizers))

    # ---- single batches

    def _wrap_batch_methods(self, model: Any) -> None:
        for mode, method in (
            (ModeKeys.TRAIN, "train_on_batch"),
            (ModeKeys.EVAL, "test_on_batch"),
            (ModeKeys.PREDICT, "predict_on_batch"),
        ):
            if method not in self._batch_methods and hasattr(model, method):
                self._batch_methods[method] = model.__dict__[method] = self._single_batch(model, mode, method)

    def _single_batch(self, model: Any, mode: ModeKeys, method: str) -> Callable:
        original = getattr(model, method)

        def run_single_batch(*arguments, **keywords):
            kind = _KINDS[mode]
            try:
                if model.__dict__.get(f"{kind}_function") is None:
                    getattr(model, f"make_{kind}_function")()
                self._begin_single(mode)
            except Exception as error:
                guard.handle(error, method)
            return original(*arguments, **keywords)

        return run_single_batch

    @guarded()
    def _begin_single(self, mode: ModeKeys) -> None:
        self._batch_begins(self._engine_hook.mode_step(mode.value) + 1, mode)

    def _unwrap_batch_methods(self) -> None:
        model = self.model
        for name, wrapper in self._batch_methods.items():
            if model is not None and model.__dict__.get(name) is wrapper:
                del model.__dict__[name]
        self._batch_methods = {}

    # ---- the end

    @guarded()
    def close(self) -> None:
        """Ends the run and takes everything off the model, the optimizers and the tapes.

        What is left is written, then the end marker. Later calls are ignored with one warning.
        """
        if getattr(self, "_tapes", None) is not None:
            self._put_back()
            self._unwrap_batch_methods()
            self._tapes.close()
            self._optimizers.close()
            self._functions, self._functions_of = {}, None
        super().close()

    def _cleanup(self) -> None:
        self.close()
