"""What a hook for Keras saves once a batch is over: logs, weights, what optimizers hold; and the model in words."""

from typing import Any, Dict, List, Optional

import tensorflow as tf

from tornasole.core.collection import CollectionKeys
from tornasole.core.guard import guard
from tornasole.modes import ModeKeys
from tornasole.tensorflow.batch_logs import LogNames, is_debug_key, named_log_values
from tornasole.tensorflow.keras_description import describe
from tornasole.tensorflow.keras_names import weight_names
from tornasole.tensorflow.layer_graph import layer_graph
from tornasole.tensorflow.optimizer_wraps import OptimizerWraps, is_built, optimizer_variables
from tornasole.tensorflow.tf_base_hook import LOSS_KEYS, TensorflowBaseHook
from tornasole.tensorflow.tf_values import as_array, is_symbolic

_WRITE_WAIT_S = 1.0
_TRAIN = ModeKeys.TRAIN.value
_SCALARS = {CollectionKeys.LOSSES, CollectionKeys.METRICS, CollectionKeys.SM_METRICS}


class KerasValues(TensorflowBaseHook):
    """The part of the hook that reads values from a model; ``model`` is the one that is trained."""

    def __init__(self, *arguments, **options) -> None:
        super().__init__(*arguments, **options)
        self._is_only_scalars = False  # what is due in the open step
        self._known_logs = LogNames()
        self._described: Any = None
        self._graph_of: Any = None  # the model whose graph TensorBoard has
        self._weights: Dict[str, Any] = {}
        self._weights_of: Any = None
        self._loop_weights: Dict[str, Any] = {}  # of a custom loop, as its tapes name them
        self._kinds_of_weights: Dict[str, str] = {}
        self._call_order: List[str] = []
        self._optimizers = OptimizerWraps(self)
        self._is_of_preset = False  # which asks for rates, and runs nothing at every step
        self._watcher: Optional[Any] = None  # of a preset: told of steps and losses
        self.optimizer: Optional[Any] = None

    def _find_due(self) -> None:
        super()._find_due()
        self._is_only_scalars = self._due <= _SCALARS

    def _step_is_due(self, mode: ModeKeys) -> None:
        self._find_due()
        is_training = mode is ModeKeys.TRAIN
        step = self._engine_hook.mode_step(_TRAIN) + (not is_training)
        count = self._optimizers.counted(self.model, step) if self._is_only_scalars else None
        if count is not None:
            self._engine_hook.set_usual_facts(count, is_training, is_training)
        else:
            facts = {"training": is_training, "grad_enabled": is_training}
            self._engine_hook.set_facts({**facts, **self._optimizers.facts(self.model, step)})
        if self._wants_optimizers():
            self._optimizers.save_rates(self.model)

    def _publish(self) -> None:
        """Ends the last step of ``fit``, ``evaluate`` or ``predict``: scripts open the trial when these return."""
        self._end_step()
        self._wait_until_written(_WRITE_WAIT_S)

    def _wants_optimizers(self) -> bool:
        return self._is_of_preset or CollectionKeys.OPTIMIZER_GRADIENTS in self.include_collections

    def _look_for_stop(self) -> None:
        if self.stop_requested and self.model is not None and self._options.get("honour_stop", True):
            self.model.stop_training = True

    # ---- values

    def _save_logs(self, batch, logs: Dict[str, Any]) -> None:
        known = self._known_logs
        if known.are_those_of(self._due_set, logs):
            self._save_known_logs(batch, logs)
            return
        known.begin()
        for key, value in [*logs.items(), ("batch", batch)]:
            if key == "outputs" or is_debug_key(key):
                continue
            collection = CollectionKeys.LOSSES if key in LOSS_KEYS else CollectionKeys.METRICS
            if self._is_wanted(key, collection):
                self._save_as(key, value, collection)
                known.saved.append(key)
                if self._watcher is not None and key == "loss":
                    self._watcher.loss(value)
        known.end(self._engine_hook.due_set(), logs)

    def _save_known_logs(self, batch, logs: Dict[str, Any]) -> None:
        """The same once the collections have these names: the engine goes by them, and takes all in one call."""
        try:
            names = self._known_logs.saved
            values = [batch if name == "batch" else logs[name] for name in names]
            self._engine_hook.save_many(names, [as_array(value) for value in values])
        except Exception as error:
            self._known_logs.begin()
            guard.handle(error, "the logs of a batch")
        if self._watcher is not None and "loss" in self._known_logs.saved:
            self._watcher.loss(logs["loss"])

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
        if self._is_only_scalars:
            return
        for name, variable in self._model_weights().items():
            kind = self._kinds_of_weights.get(name)
            if kind is None:
                kind = self._weight_collection(name.split("/weights/", 1)[1])
                self._kinds_of_weights[name] = kind
            if self._is_wanted(name, kind):
                self._save_as(name, variable, kind)

    def _save_optimizers(self) -> None:
        if self._is_only_scalars or self.mode is not ModeKeys.TRAIN:
            return
        for name, variable in optimizer_variables(self._optimizers.known(self.model), self._optimizers.added()):
            if self._is_wanted(name, CollectionKeys.OPTIMIZER_VARIABLES):
                self._save_as(name, variable, CollectionKeys.OPTIMIZER_VARIABLES)

    def _save_graph_batch(self, fetched: List[Any], batch, logs) -> None:
        """What the run of a graph gave."""
        for name, value, collections in fetched:
            due = [collection for collection in collections if collection in self._due]
            self._save_as(name, value, *(due or collections))
        self._save_logs(batch, logs or {})
        if self._described != self._model_key():
            self._describe()
        self._look_for_stop()

    def _tensor_name_of(self, arg: object) -> Optional[str]:
        for name, variable in self._model_weights().items():
            if variable is arg or getattr(variable, "value", None) is arg:
                return name
        return None

    # ---- the model in words

    def _model_key(self) -> Any:
        return None if self.model is None else (id(self.model), bool(self._call_order))

    def _describe(self) -> None:
        self._described = self._model_key()
        self._describe_with(self._model_weights())

    def _describe_loop(self, weights: Dict[str, Any]) -> None:
        """Of a custom loop: these are the weights that its tapes know. An optimizer knows what it updates once it did."""
        if self.model is None or self._is_only_scalars:
            return
        used = [len(getattr(one, "_trainable_variables", None) or ()) for one in self._optimizers.known(self.model)]
        self._loop_weights.update(weights)
        key = (*self._model_key(), len(self._loop_weights), used)
        if self._described != key:
            self._described = key
            self._describe_with(self._loop_weights)

    def _describe_with(self, weights: Dict[str, Any]) -> None:
        if self.model is not None:
            optimizers = self._optimizers.known(self.model)
            self._engine_hook.describe_model(describe(self.model, weights, self._call_order, optimizers))
        if self.tensorboard_dir and self.model is not None and self._graph_of is not self.model:
            self._graph_of = self.model
            self._save_model_graph()

    def _save_model_graph(self) -> None:
        """The graph of the program if there is one, else that of the layers."""
        try:
            if tf.compat.v1.executing_eagerly_outside_functions():
                self._engine_hook.save_graph(layer_graph(self.model))
            else:
                graph = tf.compat.v1.keras.backend.get_session().graph
                self._engine_hook.save_graph(graph.as_graph_def(add_shapes=True).SerializeToString())
        except Exception as error:
            self._note_failure("the graph of the model", error)
