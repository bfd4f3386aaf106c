"""Optimizers: which there are, what they hold, how many steps they took, the gradients they see."""

import contextlib
import weakref
from typing import Any, Callable, Dict, Iterable, Iterator, List, Tuple

import tensorflow as tf

from tornasole.core.guard import guard
from tornasole.tensorflow.keras_names import variable_name
from tornasole.tensorflow.tf_values import is_symbolic

GraphOptimizer = tf.compat.v1.train.Optimizer


def is_optimizer(value: Any) -> bool:
    """Whether it is an optimizer of Keras or of ``tf.compat.v1.train``."""
    return isinstance(value, (GraphOptimizer, tf.keras.optimizers.Optimizer)) or (
        hasattr(value, "apply_gradients") and hasattr(type(value), "iterations")
    )


def _of_the_older_kind(optimizer: Any) -> Any:
    """The optimizer, or the one inside it that scales no loss, if it is of the older kind of Keras; else None.

    Such an optimizer makes its variables when it is first used, or asked, under a name of where that happens. Whoever
    only looks must not be the one: they would be called ``iter:0`` and not ``Adam/iter:0``.
    """
    for one in (optimizer, getattr(optimizer, "inner_optimizer", None)):
        if isinstance(getattr(one, "_hyper", None), dict):
            return one
    return None


def step_counter(optimizer: Any) -> Any:
    """The variable in which an optimizer counts its steps; None if there is none yet."""
    older = _of_the_older_kind(optimizer)
    return getattr(optimizer, "iterations", None) if older is None else getattr(older, "_iterations", None)


def held_variables(optimizer: Any) -> List[Any]:
    """The variables of an optimizer; of one of the older kind of Keras, the counter and the hyperparameters."""
    older = _of_the_older_kind(optimizer)
    if older is not None:
        values = (step_counter(optimizer), *older._hyper.values())
        return [value for value in values if isinstance(value, tf.Variable)]
    variables = optimizer.variables
    return list(variables() if callable(variables) else variables)


def is_built(model: Any) -> bool:
    """Whether a model has its weights; some are built by their first step."""
    try:
        return bool(model.weights)
    except ValueError:  # of Keras 2: they have not been created
        return False


def all_variables(model: Any) -> List[Any]:
    """Every variable that a step of the model may change: weights, states of random numbers, metrics, optimizer."""
    optimizer = getattr(model, "optimizer", None)
    found = list(model.variables) + [v for metric in model.metrics for v in metric.variables]
    for one in (optimizer, getattr(optimizer, "inner_optimizer", None)):
        if one is not None:
            variables = one.variables
            found += variables() if callable(variables) else variables
    return found


@contextlib.contextmanager
def told_of_updates(model: Any, tell: Callable[[List[Any], List[Any]], None]):
    """``tell(gradients, variables)`` is called with what an optimizer of the model is about to use: unscaled, clipped."""
    optimizer = getattr(model, "optimizer", None)
    replaced = []
    for one in (optimizer, getattr(optimizer, "inner_optimizer", None)):
        for name in ("_backend_update_step", "_internal_apply_gradients"):  # of Keras 3, of Keras 2
            if hasattr(one, name):
                one.__dict__[name] = _telling(getattr(one, name), tell, is_pairs=name == "_internal_apply_gradients")
                replaced.append((one, name))
    try:
        yield
    finally:
        for one, name in replaced:
            one.__dict__.pop(name, None)


def _telling(update: Callable, tell: Callable, is_pairs: bool) -> Callable:
    def update_and_tell(first, *rest):
        if is_pairs:
            first = list(first)
            tell([gradient for gradient, _ in first], [variable for _, variable in first])
        else:
            tell(first, rest[0])
        return update(first, *rest)

    update_and_tell.autograph_info__ = {}  # called as it is
    return update_and_tell


def optimizer_variables(optimizers: Iterable, added: Iterable) -> Iterator[Tuple[str, Any]]:
    """(name, variable) of everything optimizers hold, each once."""
    seen = set()
    for variable in [v for optimizer in optimizers for v in held_variables(optimizer)] + list(added):
        if id(variable) not in seen:
            seen.add(id(variable))
            yield variable_name(variable), variable


class OptimizerWraps:
    """The optimizers that one hook knows."""

    def __init__(self, hook: Any):
        self._hook = weakref.ref(hook)
        self._wrapped: List[Any] = []
        self._added: List[Any] = []
        self._iterations: Any = None  # optimizer, its steps, the step of the training then, whether these go together

    def wrap(self, optimizer: Any) -> Any:
        hook = self._hook()
        if not is_optimizer(optimizer):
            hook.logger.warning(
                "wrap_optimizer: %s is no optimizer of Keras or of tf.compat.v1.train; it is left alone",
                type(optimizer).__name__,
            )
        elif not any(known is optimizer for known in self._wrapped):
            self._wrapped.append(optimizer)
        return optimizer

    def known(self, model: Any) -> List[Any]:
        """Those that were given, and the model's own."""
        own = getattr(model, "optimizer", None)
        is_new = is_optimizer(own) and not any(known is own for known in self._wrapped)
        return self._wrapped + ([own] if is_new else [])

    def added(self) -> List[Any]:
        return self._added

    def add_variables(self, variables: Any) -> None:
        self._added += [v for v in tf.nest.flatten(variables) if not any(v is known for known in self._added)]

    def set_gradients(self, gradients: Any, gradients_and_variables: Any) -> None:
        """Gradients that have a value are saved in the open step; those of a graph are found by name."""
        hook = self._hook()
        pairs = [] if gradients_and_variables is None else list(gradients_and_variables)
        for gradient, variable in pairs:
            if gradient is not None and not is_symbolic(gradient):
                name = variable_name(variable, getattr(hook.model, "name", ""))
                hook._save_as(f"gradients/{name.split(':')[0]}Grad", gradient, "gradients")

    def facts(self, model: Any, training_step: int, may_count: bool) -> Dict[str, Any]:
        """How many steps the model's optimizer took, and the factor of the loss if it is scaled.

        Reading a variable takes longer than saving a loss: with ``may_count`` the steps of the training since the last
        reading are counted instead.
        """
        optimizer = getattr(model, "optimizer", None) or (self._wrapped[-1] if self._wrapped else None)
        facts: Dict[str, Any] = {}
        try:
            counter = step_counter(optimizer)
            if optimizer is not None and (counter is not None or hasattr(type(optimizer), "iterations")):
                known = self._iterations
                if known is None or known[0] is not optimizer or not may_count or known[3] != 1:
                    count = 0 if counter is None else int(counter.numpy())
                    # A step may be several of the optimizer, or none.
                    taken = 1 if known is None or known[0] is not optimizer else count - known[1]
                    passed = 1 if known is None or known[0] is not optimizer else training_step - known[2]
                    known = self._iterations = (optimizer, count, training_step, 1 if taken == passed else 0)
                facts["optimizer_step"] = known[1] + training_step - known[2]
            scale = getattr(optimizer, "dynamic_scale", None)  # of Keras 3, once it is built
            for name in ("initial_scale", "loss_scale"):
                scale = getattr(optimizer, name, None) if scale is None else scale
            if scale is not None:
                facts["grad_scale"] = float(scale.numpy() if hasattr(scale, "numpy") else scale)
        except Exception as error:
            guard.handle(error, "the optimizer")
        return facts

    def save_rates(self, model: Any) -> None:
        """The learning rates, as they are before this step."""
        hook = self._hook()
        for number, optimizer in enumerate(self.known(model)):
            older = _of_the_older_kind(optimizer)
            rate = getattr(optimizer, "learning_rate", None) if older is None else older._hyper.get("learning_rate")
            if callable(rate) and not hasattr(rate, "numpy"):
                counter = step_counter(optimizer)
                rate = rate(tf.constant(0, tf.int64) if counter is None else counter)
            if rate is not None:
                rate = float(rate.numpy()) if hasattr(rate, "numpy") else float(rate)
                hook._engine_hook.save_scalar(f"learning_rate/{number}", rate)

    def close(self) -> None:
        self._wrapped, self._added = [], []
