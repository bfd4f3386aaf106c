"""The hook for graphs of TensorFlow 1: ``MonitoredSession`` and ``Estimator``.

=================  ==========================  ===================================================
tensor             name                        belongs to
=================  ==========================  ===================================================
weight, bias       the variable's, ``w:0``     ``weights``, ``biases``: every trainable variable
loss               the tensor's, ``loss:0``    ``losses``: those of ``tf.losses``, and what is added
gradient           the tensor's                ``gradients``: those of a wrapped optimizer
optimizer's        the variable's              ``optimizer_variables``: of a wrapped optimizer
any other          the tensor's                collections with a pattern for it
=================  ==========================  ===================================================

Each run of the session is a step. The wanted tensors are fetched in the run itself.
"""

import weakref
from typing import Any, List, Optional

import tensorflow as tf

from tornasole.core.collection import CollectionKeys
from tornasole.core.guard import guarded
from tornasole.core.older_names import make_tornasole_hook
from tornasole.tensorflow.graph_tensors import GraphFacts, GraphTensor, GraphTensors
from tornasole.tensorflow.tf_base_hook import TensorflowBaseHook
from tornasole.tensorflow.tf_workers import unsupported_strategy

_v1 = tf.compat.v1
_WRITE_WAIT_S = 1.0


class SessionHook(TensorflowBaseHook, _v1.train.SessionRunHook):
    """Captures tensors of a session into a trial.

    >>> hook = SessionHook(out_dir="runs/mnist")                            # doctest: +SKIP
    >>> optimizer = hook.wrap_optimizer(optimizer)                          # doctest: +SKIP
    >>> session = tf.compat.v1.train.MonitoredSession(hooks=[hook])         # doctest: +SKIP

    The arguments are those of every hook. ``set_mode`` says what the runs to come are.
    """

    @guarded(even_when_off=True)  # a new hook ends a shut-down
    def __init__(self, *arguments, **options) -> None:
        super().__init__(*arguments, **options)
        self.graph: Optional[Any] = None
        self._tensors: Optional[GraphTensors] = None  # of the graph
        self._fetched: List[GraphTensor] = []
        self._wrapped: List[Any] = []
        self._is_off = False
        self._is_described = False
        self.optimizer: Optional[Any] = None

    # ---- what users call

    def wrap_optimizer(self, optimizer):
        """Makes the gradients and the variables of an optimizer of ``tf.compat.v1.train`` known; the same object."""
        self.optimizer = optimizer
        if not isinstance(optimizer, _v1.train.Optimizer):
            self.logger.warning(
                "wrap_optimizer: %s is no tf.compat.v1.train.Optimizer; name its tensors with set_gradients and "
                "set_optimizer_variables",
                type(optimizer).__name__,
            )
            return optimizer
        apply = optimizer.apply_gradients

        def apply_and_tell(grads_and_vars, *arguments, **keywords):
            pairs = list(grads_and_vars)
            result = apply(pairs, *arguments, **keywords)
            self.set_gradients(gradients_and_variables=pairs)
            self.set_optimizer_variables(optimizer.variables())
            return result

        optimizer.apply_gradients = apply_and_tell
        self._wrapped.append((optimizer, apply_and_tell))
        return optimizer

    @guarded()
    def set_gradients(self, gradients=None, gradients_and_variables=None) -> None:
        """The tensors that are gradients in this graph: alone, or with their variables as pairs."""
        if gradients_and_variables is not None:
            gradients = [gradient for gradient, _ in gradients_and_variables]
        GraphFacts.add(GraphFacts.of(_v1.get_default_graph()).gradients, gradients or [])

    @guarded()
    def set_optimizer_variables(self, optimizer_variables) -> None:
        """Variables to be captured as those of an optimizer."""
        known = GraphFacts.of(_v1.get_default_graph()).optimizer_variables
        GraphFacts.add(known, tf.nest.flatten(optimizer_variables))

    # ---- called by the session

    @guarded()
    def begin(self) -> None:
        """Called before the session is made: the tensors of the graph are collected."""
        name = unsupported_strategy(tf.distribute.get_strategy())
        self._is_off = name is not None
        if name is not None:
            self.logger.info("trainings with %s cannot be captured: the hook is off", name)
            return
        self.graph = _v1.get_default_graph()
        self.export_collections()
        self._tensors = self._collect()
        _tensors_by_hook(self.graph)[self] = self._tensors

    def _turn_to(self, graph: Any) -> None:
        """Several sessions may be open: an evaluation is, between two steps of a training."""
        if graph is not None and graph is not self.graph:
            self.graph, self._tensors = graph, _tensors_by_hook(graph).get(self)

    def _collect(self) -> GraphTensors:
        tensors = GraphTensors(self.graph)
        facts = GraphFacts.of(self.graph)
        for variable in _v1.trainable_variables():
            tensors.add_variable(variable, self._weight_collection(variable.name))
        for variable in facts.optimizer_variables:
            tensors.add_variable(variable, CollectionKeys.OPTIMIZER_VARIABLES)
        # A program that was not written for the hook may have written its loss by hand.
        for loss in _v1.losses.get_losses() or (facts.minimized if self._is_automatic else []):
            tensors.add_tensor(loss, CollectionKeys.LOSSES)
        for gradient in facts.gradients:
            tensors.add_tensor(gradient, CollectionKeys.GRADIENTS)
        for collection in self.collection_manager.collections.values():
            for _, given in collection._objects():
                if getattr(given, "graph", None) is not self.graph:
                    continue
                if isinstance(given, tf.Variable):
                    tensors.add_variable(given, collection.name)
                else:
                    tensors.mark_given(given)
        if self.tensorboard_dir:
            for summary in _v1.get_collection(_v1.GraphKeys.SUMMARIES):
                tensors.add_tensor(summary, CollectionKeys.TENSORFLOW_SUMMARIES)
        tensors.add_all_others()
        return tensors

    @guarded()
    def before_run(self, run_context):
        """Called before each run, which is a step: asks for the tensors that are due."""
        self._fetched = []
        self._turn_to(getattr(getattr(run_context, "session", None), "graph", None))
        if self._is_off or self._tensors is None or not self._begin_step():
            return None
        self._find_due()
        wanted = [t for t in self._tensors.all() if self._is_wanted_tensor(t)]
        arguments = getattr(run_context, "original_args", None)
        if arguments is not None:
            wanted = self._tensors.that_run(wanted, arguments.fetches, arguments.feed_dict, CollectionKeys.LOSSES)
        self._fetched = wanted
        return _v1.train.SessionRunArgs([t.tensor for t in wanted]) if wanted else None

    def _is_wanted_tensor(self, entry: GraphTensor) -> bool:
        if entry.collection is not None and entry.collection in self._due:
            patterns = self.get_collection(entry.collection)._include_regex
            if entry.is_variable or not patterns or entry.collection == CollectionKeys.LOSSES:
                return True
        return self._engine_hook.wants(entry.name)

    @guarded()
    def after_run(self, run_context, run_values) -> None:
        """Called after each run: saves what it fetched."""
        if self._is_off or self._tensors is None:
            return
        for entry, value in zip(self._fetched, run_values.results or []):
            if entry.collection == CollectionKeys.TENSORFLOW_SUMMARIES:
                self._engine_hook.save_summary(bytes(value))
            elif entry.collection is not None:
                self._save_as(entry.name, value, entry.collection)
            else:
                self._engine_hook.save(entry.name, _as_plain(value))
        if self._fetched and not self._is_described:
            self._describe()
        self._fetched = []
        self._end_step()
        if self.stop_requested and self._options.get("honour_stop", True) and hasattr(run_context, "request_stop"):
            run_context.request_stop()

    @guarded()
    def end(self, session) -> None:
        """Called when the session ends: what it saved can be read. The run goes on until ``close``."""
        self._wait_until_written(_WRITE_WAIT_S)

    def _describe(self) -> None:
        self._is_described = True
        if self.tensorboard_dir:
            self._engine_hook.save_graph(self.graph.as_graph_def(add_shapes=True).SerializeToString())
        with self.graph.as_default():
            variables = _v1.trainable_variables()
            losses = _v1.losses.get_losses()
        self._engine_hook.describe_model(
            {
                "parameters": [
                    {
                        "name": variable.name,
                        "module": variable.name.rpartition("/")[0],
                        "shape": [int(size or 0) for size in variable.shape.as_list()],
                        "dtype": variable.dtype.base_dtype.name,
                    }
                    for variable in variables
                ],
                "losses": [{"name": loss.name, "type": loss.op.type} for loss in losses],
                "optimizers": [
                    {"type": type(optimizer).__name__, "groups": [[variable.name for variable in variables]]}
                    for optimizer, _ in self._wrapped
                ],
                "versions": {"tensorflow": tf.__version__},
            }
        )

    @guarded(even_when_off=True)
    def close(self) -> None:
        """Ends the run and takes everything off the optimizers. Later calls are ignored with one warning."""
        for optimizer, wrapper in getattr(self, "_wrapped", []):
            if optimizer.__dict__.get("apply_gradients") is wrapper:
                del optimizer.apply_gradients
        self._wrapped, self._tensors, self.graph = [], None, None
        super().close()


def _tensors_by_hook(graph: Any) -> Any:
    """What hooks collected of a graph, kept with it so that it ends with it."""
    if getattr(graph, "_tornasole_tensors", None) is None:
        graph._tornasole_tensors = weakref.WeakKeyDictionary()
    return graph._tornasole_tensors


def _as_plain(value: Any) -> Any:
    import numpy

    return numpy.asarray(value)


EstimatorHook = SessionHook
TornasoleHook = make_tornasole_hook(SessionHook)
