"""Optimizers: which there are, what they hold, how many steps they took, the gradients they see."""

import weakref
from typing import Any, Dict, Iterable, Iterator, List, Optional, Tuple

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


def held_optimizers(model: Any, has_others: bool = False) -> List[Any]:
    """The optimizers that are attributes of a model, or in a list, tuple or dict that is one; its own comes last.

    A model whose step is the program's own, as one with an optimizer for each of its parts, has them under any names,
    and an own one beside them that ``compile`` made and nobody uses: that is left out until it was used. So it is with
    ``has_others``: it is known that steps of the model use optimizers that it does not hold.
    """
    own = getattr(model, "optimizer", None)
    found: List[Any] = []
    for value in list(vars(model).values()) if hasattr(model, "__dict__") else ():
        several = value.values() if isinstance(value, dict) else value if isinstance(value, (list, tuple)) else (value,)
        found += [one for one in several if is_optimizer(one) and not any(one is known for known in (own, *found))]
    if is_optimizer(own) and (not (found or has_others) or _has_steps(own)):
        found.append(own)
    return found


def _has_steps(optimizer: Any) -> bool:
    counter = step_counter(optimizer)
    return counter is not None and (not hasattr(counter, "numpy") or int(counter.numpy()) > 0)


def all_variables(model: Any) -> List[Any]:
    """Every variable that a step of the model may change: weights, states of random numbers, metrics, optimizers."""
    found = list(model.variables) + [v for metric in model.metrics for v in metric.variables]
    for optimizer in {id(one): one for one in (getattr(model, "optimizer", None), *held_optimizers(model))}.values():
        for one in (optimizer, getattr(optimizer, "inner_optimizer", None)):
            if one is not None:
                variables = one.variables
                found += variables() if callable(variables) else variables
    return found


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
        self._has_others = False  # at work, that neither the script gave nor the model holds
        self._counting_of: Any = None  # model, how many were wrapped, which one of its optimizers tells its steps
        self._iterations: Any = None  # optimizer, its steps, the step of the training then, whether to count on

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
        """Those that were given or were seen at work, and the model's."""
        held = held_optimizers(model, self._has_others)
        return self._wrapped + [one for one in held if not any(known is one for known in self._wrapped)]

    def at_work(self, optimizers: Iterable) -> None:
        """Optimizers that a step used; of a model's own there is no need to know more."""
        own = held_optimizers(self._hook().model)
        for optimizer in optimizers:
            if not any(optimizer is one or optimizer is getattr(one, "inner_optimizer", None) for one in own):
                self._has_others = True
                self.wrap(optimizer)

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

    def facts(self, model: Any, training_step: int) -> Dict[str, Any]:
        """How many steps the model's optimizer took, and the factor of the loss if it is scaled."""
        optimizer = self._counting(model)
        facts: Dict[str, Any] = {}
        try:
            scale = getattr(optimizer, "dynamic_scale", None)  # of Keras 3, once it is built
            for name in ("initial_scale", "loss_scale"):
                scale = getattr(optimizer, name, None) if scale is None else scale
            if scale is not None:
                facts["grad_scale"] = float(scale.numpy() if hasattr(scale, "numpy") else scale)
            counter = step_counter(optimizer)
            if optimizer is not None and (counter is not None or hasattr(type(optimizer), "iterations")):
                facts["optimizer_step"] = count = 0 if counter is None else int(counter.numpy())
                known = self._iterations
                is_known = known is not None and known[0] is optimizer
                # A step may be several of the optimizer, or none.
                is_one = not is_known or count - known[1] == training_step - known[2]
                self._iterations = (optimizer, count, training_step, is_one and scale is None)
        except Exception as error:
            guard.handle(error, "the optimizer")
        return facts

    def counted(self, model: Any, training_step: int) -> Optional[int]:
        """How many steps the optimizer took, if nothing else is to be told of it; None if that is not known.

        Reading a variable takes longer than saving a loss, so the steps of the training since the last reading are
        counted instead.
        """
        known = self._iterations
        if known is None or not known[3] or known[0] is not self._counting(model):
            return None
        return known[1] + training_step - known[2]

    def _counting(self, model: Any) -> Any:
        """The one whose steps are told of: the model's own, if that is used."""
        if self._counting_of is None or self._counting_of[0] is not model or self._counting_of[1] != len(self._wrapped):
            own = held_optimizers(model, self._has_others) or self._wrapped
            self._counting_of = model, len(self._wrapped), own[-1] if own else None
        return self._counting_of[2]

    def look_again(self) -> None:
        """The model may have other optimizers from here on."""
        self._counting_of = None

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
