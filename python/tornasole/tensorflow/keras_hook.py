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

from typing import Any, Dict, Optional

import tensorflow as tf

from tornasole.core.collection import CollectionKeys
from tornasole.core.guard import guard, guarded
from tornasole.modes import ModeKeys
from tornasole.tensorflow.batch_gates import make_gate
from tornasole.tensorflow.batch_logs import is_debug_key
from tornasole.tensorflow.evaluation_function import EvaluationFunction
from tornasole.tensorflow.gradient_tapes import TapeCapture
from tornasole.tensorflow.keras_graph import GraphBatches
from tornasole.tensorflow.keras_names import gradient_name, named_layers, variable_name
from tornasole.tensorflow.keras_values import KerasValues
from tornasole.tensorflow.optimizer_wraps import is_built
from tornasole.tensorflow.profiler_calls import ProfilerCalls
from tornasole.tensorflow.single_batches import KINDS, SingleBatches
from tornasole.tensorflow.step_functions import ModeFunctions
from tornasole.tensorflow.step_tap import NotTapped
from tornasole.tensorflow.tf_base_hook import LOSS_KEYS
from tornasole.tensorflow.tf_values import is_symbolic
from tornasole.tensorflow.tf_workers import unsupported_strategy

# What an enumeration is asked takes long.
_TRAIN, _EVAL, _PREDICT = ModeKeys.TRAIN, ModeKeys.EVAL, ModeKeys.PREDICT
_INSIDE = (CollectionKeys.LAYERS, CollectionKeys.GRADIENTS, CollectionKeys.INPUTS, CollectionKeys.OUTPUTS)


class KerasHook(ProfilerCalls, KerasValues, tf.keras.callbacks.Callback):
    """Captures tensors of a Keras training into a trial: a callback of ``fit``, ``evaluate`` and ``predict``.

    >>> hook = KerasHook(out_dir="runs/mnist", save_config=SaveConfig(save_interval=100))  # doctest: +SKIP
    >>> model.fit(x, y, callbacks=[hook])                                                  # doctest: +SKIP

    The arguments are those of every hook. After construction no call raises into the training because of a fault of
    the disk, of a value or of this library: what was lost is counted and stands in ``report()``.
    """

    # Read by Keras: logs may come as tensors, and the end of a batch may come from another thread.
    _supports_tf_logs = True
    async_safe = True
    # That of Keras 3 asks each time which backend there is.
    model: Optional[Any] = None
    _gate: Optional[Any] = None  # open while nothing is under way

    @guarded(even_when_off=True)  # a new hook ends a shut-down
    def __init__(self, *arguments, **options) -> None:
        tf.keras.callbacks.Callback.__init__(self)
        super().__init__(*arguments, **options)
        self._supports_tf_logs = True
        self._functions: Dict[str, ModeFunctions] = {}
        self._functions_of: Optional[Any] = None  # the model they belong to
        self._replaced: Optional[ModeFunctions] = None  # whose function waits to be called
        self._open_batch: Optional[ModeKeys] = None  # begun by a callback, with no function to end it
        self._outside_only = 0  # a set of what is due in which nothing from inside a step is
        self._is_off = False
        self._checked_model: Optional[Any] = None
        self._single_batches = SingleBatches(self)
        self._tapes = TapeCapture(self)
        self._evaluation = EvaluationFunction()
        self._graph = GraphBatches(self)
        self._is_graph = self._graph.is_on()  # the model's batches are runs of a graph
        self._is_fitting = False
        self._gate = make_gate(self, KerasHook)
        self.has_registered_model = False
        # Patterns on these choose among layers and among gradients; a variable that has the layer's name is neither.
        for pattern in (r"^(?!.*/(inputs|outputs)/).*:\d+$", "^gradients/"):
            self.get_collection(CollectionKeys.LAYERS).exclude(pattern)
        self.get_collection(CollectionKeys.GRADIENTS).exclude("^(?!(.*/)?gradients(_[0-9]+)?/)")

    # ---- what users call

    @guarded()
    def register_model(self, model: tf.keras.Model) -> None:
        """Captures the layers of this model in custom loops with :meth:`wrap_tape`, and its ``train_on_batch``,
        ``test_on_batch`` and ``predict_on_batch``.

        ``fit``, ``evaluate`` and ``predict`` need the hook as a callback only.
        """
        self.set_model(model)
        self.has_registered_model = True
        self._single_batches.wrap(model)

    def wrap_optimizer(self, optimizer):
        """Makes an optimizer known, whose variables and gradients are captured; the same object.

        An optimizer of a model that is trained with ``fit`` is known by itself.
        """
        self.optimizer = optimizer
        self._graph.watch(optimizer)
        return self._optimizers.wrap(optimizer)

    def wrap_tape(self, tape):
        """A tape whose recording is a step: ``tape.gradient(loss, variables)`` saves weights, gradients and loss.

        The same object. The mode is ``TRAIN`` from here on unless it is set.
        """
        return self._tapes.wrap(tape)

    @guarded()
    def record_tensor_value(self, tensor_name: str, tensor_value) -> None:
        """Saves a value in ``metrics``, or in ``losses`` if it is called loss or val_loss.

        :meth:`save_tensor` can do more.
        """
        if is_symbolic(tensor_value) or self._engine_hook is None:
            return
        collection = CollectionKeys.LOSSES if tensor_name in LOSS_KEYS else CollectionKeys.METRICS
        self._find_due()
        if self._engine_hook.anything_due() and self._is_wanted(tensor_name, collection):
            self._save_as(tensor_name, tensor_value, collection)

    @guarded()
    def save_tensor(self, tensor_name: str, tensor_value, collections_to_write="default") -> None:
        """Saves a value in the open step, or the next one, if one of these collections is due then.

        With eager execution off a tensor or variable of the graph is fetched in the next batch of a step that is due.
        """
        is_of_graph = tf.is_tensor(tensor_value) or isinstance(tensor_value, tf.Variable)
        if self._engine_hook is None or not is_of_graph or not self._graph.is_on() or hasattr(tensor_value, "_numpy"):
            super().save_tensor(tensor_name, tensor_value, collections_to_write)
        else:
            self._graph.keep(tensor_name, tensor_value, self._name_in_collections(collections_to_write, tensor_name))

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

    def set_model(self, model) -> None:
        """Called by Keras."""
        tf.keras.callbacks.Callback.set_model(self, model)
        self.model = model
        self._close_gate()
        try:
            if self._engine_hook is not None and not guard.disable_smdebug and not self._graph.is_on():
                self._evaluation.install(model)
        except Exception as error:
            self._note_failure("the evaluation", error)

    @guarded()
    def on_train_begin(self, logs=None) -> None:
        """Called by Keras."""
        self._is_fitting = True
        self._mode_begins(ModeKeys.TRAIN)

    @guarded()
    def on_train_end(self, logs=None) -> None:
        """Called by Keras."""
        self._is_fitting = False
        self._evaluation.remove()
        self._publish()

    @guarded()
    def on_test_end(self, logs=None) -> None:
        """Called by Keras."""
        if not self._is_fitting:
            self._evaluation.remove()
            self._publish()

    @guarded()
    def on_predict_end(self, logs=None) -> None:
        """Called by Keras."""
        if not self._is_fitting:
            self._publish()

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
        self._batch_begins(batch, _TRAIN)

    @guarded()
    def on_test_batch_begin(self, batch, logs=None) -> None:
        """Called by Keras: a step of an evaluation begins."""
        self._batch_begins(batch, _EVAL)

    @guarded()
    def on_predict_batch_begin(self, batch, logs=None) -> None:
        """Called by Keras: a step of a prediction begins."""
        self._batch_begins(batch, _PREDICT)

    @guarded()
    def on_train_batch_end(self, batch, logs=None) -> None:
        """Called by Keras."""
        if self._open_batch is not None:
            self._batch_ends(batch, _TRAIN, logs)

    @guarded()
    def on_test_batch_end(self, batch, logs=None) -> None:
        """Called by Keras."""
        if self._open_batch is not None:
            self._batch_ends(batch, _EVAL, logs)

    @guarded()
    def on_predict_batch_end(self, batch, logs=None) -> None:
        """Called by Keras."""
        if self._open_batch is not None:
            self._batch_ends(batch, _PREDICT, logs)

    @guarded()
    def on_epoch_end(self, epoch, logs=None) -> None:
        """Called by Keras: losses and metrics of the epoch are saved in the step of its last batch."""
        engine = self._engine_hook
        if engine is None or self._is_off or not logs or not self.prepared_collections:
            return
        if self._watcher is not None:
            self._watcher.epoch_ends()
        if engine.make_due([CollectionKeys.METRICS, CollectionKeys.LOSSES]):
            self._find_due()
            self._save_logs(epoch, logs)
        self._end_step()
        self._look_for_stop()

    # ---- steps

    def _mode_begins(self, mode: ModeKeys) -> None:
        self._optimizers.look_again()
        if not self._is_unsupported():
            self.set_mode(mode)

    def _is_unsupported(self) -> bool:
        model = self.model
        if model is not None and model is not self._checked_model:
            self._checked_model = model
            self._is_graph = self._graph.is_on()
            backend = tf.keras.backend.backend()
            name = unsupported_strategy(getattr(model, "distribute_strategy", None) or tf.distribute.get_strategy())
            if backend not in ("tensorflow", "torch"):
                name = f"the backend {backend}"
            if name is not None:
                self.logger.info("trainings with %s cannot be captured: the hook is off", name)
            self._is_off = name is not None
        return self._is_off

    def _batch_begins(self, batch: int, mode: ModeKeys) -> None:
        if self._is_unsupported():
            return
        if self._replaced is not None or self._evaluation.pending is not None:
            self._put_back()  # the last batch never ran
        if self._engine_hook is not None and self._engine_hook.stop_requested:
            self._look_for_stop()
        self._open_batch = None
        if self._watcher is not None:
            self._watcher.before_step(mode)
        if self._begin_step(mode):
            self._due_batch_begins(batch, mode)
        elif self._gate is not None and self._watcher is None:
            self._gate.open()

    def _due_batch_begins(self, batch: int, mode: ModeKeys) -> None:
        """Something is to be saved in the step that has begun."""
        self._close_gate()
        if self._is_graph:
            self._open_batch = mode
            self._find_due()
            self._graph.begin(mode)
            return
        self._step_is_due(mode)
        model = self.model
        functions = self._functions_for(model, KINDS[mode])
        if model is None or model.__dict__.get(functions.attribute) is None:
            self._open_batch = mode  # no function of Keras will end it
            return
        tapped = self._find_tapped(functions)
        function = model.__dict__[functions.attribute]
        original = self._evaluation.own_of(function) or function

        def run_and_capture(*arguments):
            self._put_back()
            return self._run(functions, tapped, original, arguments, batch, mode)

        if original is not function:
            self._evaluation.pending = run_and_capture
            return
        self._replaced, self._original_function = functions, original
        model.__dict__[functions.attribute] = run_and_capture

    def _close_gate(self) -> None:
        if self._gate is not None:
            self._gate.close()

    def _put_back(self) -> None:
        self._evaluation.pending = None
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
            if self._outside_only == self._due_set:
                return None
            due = self._due
            # Any other collection may have a pattern that takes in one of these tensors.
            if not due & set(_INSIDE) and not any(
                collection._include_regex
                for name, collection in self.collection_manager.collections.items()
                if name in due and name not in (CollectionKeys.BIASES, CollectionKeys.LOSSES)
            ):
                self._outside_only = self._due_set
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
            if self._is_wanted(gradient_name(name), CollectionKeys.GRADIENTS, name):
                self._cannot_capture(gradient_name(name), reason)

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
            for tap in step.out_of_reach:
                if self._is_wanted(tap.name, tap.collection, tap.asked):
                    self._cannot_capture(tap.name, "it is inside a loop or a function of TensorFlow")
            self._call_order = step.call_order or self._call_order
            self._optimizers.at_work(step.optimizers)
            for name, value in taps.items():
                tap = step.taps[name]
                if self._is_wanted(tap.name, tap.collection, tap.asked):
                    self._save_as(name, value, tap.collection)
        if mode is _PREDICT:
            logs = {"outputs": logs}
        self._save_after_batch(batch, mode, logs, "predictions" in taps)

    def _batch_ends(self, batch, mode: ModeKeys, logs) -> None:
        if self._open_batch is not mode or self._is_off:
            return
        self._open_batch = None
        if self._graph.is_on():
            self._save_graph_batch(self._graph.end(), batch, logs)
        else:
            self._save_after_batch(batch, mode, logs, False)

    def _save_after_batch(self, batch, mode: ModeKeys, logs, has_predictions: bool) -> None:
        """What can be read once a batch is over."""
        if isinstance(logs, dict):
            self._save_logs(batch, logs)
            if any(map(is_debug_key, logs)):
                self._save_debug_logs(logs)
            if mode is _PREDICT and not has_predictions:
                self._save_debug_logs({"smdebug_y_pred": logs.get("outputs")})
        self._save_weights()
        self._save_optimizers()
        if self._described != self._model_key():
            self._describe()
        self._look_for_stop()

    # ---- the end

    @guarded(even_when_off=True)
    def close(self) -> None:
        """Ends the run and takes everything off the model, the optimizers and the tapes.

        What is left is written, then the end marker. Later calls are ignored with one warning.
        """
        if getattr(self, "_tapes", None) is not None:
            self._close_gate()
            self._put_back()
            self._graph.end()
            self._evaluation.remove()
            self._single_batches.unwrap()
            self._tapes.close()
            self._optimizers.close()
            self._functions, self._functions_of = {}, None
        super().close()

    def _cleanup(self) -> None:
        self.close()
