"""Optimizers: how many steps they took, the gradients they see, their state and their learning rates.

Optimizers are found by themselves: PyTorch calls ``before_step`` and a ``StepCounter`` around every step of every
optimizer of the process, and one that holds a parameter of a registered model is ours. Before PyTorch 2.0 only those
given to ``register_optimizer`` are known, and their ``step`` is wrapped.
"""

import functools
import weakref
from typing import Any, Callable, Dict, Iterable, Iterator, List, Optional, Tuple

import torch

from tornasole import _engine
from tornasole.pytorch.host_tensors import local_part
from tornasole.pytorch.torch_listeners import listen, stop_listening

try:
    from torch.optim.optimizer import register_optimizer_step_post_hook, register_optimizer_step_pre_hook
except ImportError:  # before PyTorch 2.0
    register_optimizer_step_post_hook = register_optimizer_step_pre_hook = None

GRADIENT_PREFIX = "optimizer_gradient/"
STATE_PREFIX = "optimizer_state/"
LEARNING_RATE_PREFIX = "learning_rate/"


def _asks(capture: "OptimizerCapture") -> Callable[[torch.optim.Optimizer], bool]:
    # Hangs on the process, and must not keep what it asks.
    this = weakref.ref(capture)

    def is_ours(optimizer: torch.optim.Optimizer) -> bool:
        asked = this()
        return asked is not None and asked._is_new_one_ours(optimizer)

    return is_ours


class OptimizerCapture:
    """The optimizers of one hook's models."""

    def __init__(self, hook):
        self._hook = weakref.ref(hook)
        self._handles: List = []
        self._before: Any = None  # the handle of ``before_step``, while somebody may want gradients
        self.is_wanted = False  # at this step
        self._names: Dict[int, str] = {}
        self._unwanted: Dict[int, Tuple] = {}  # by id of an optimizer: when its state was found to interest nobody
        self._unwanted_gradients: Dict[int, Tuple] = {}
        self._state = hook._state
        self._state.counts_steps = register_optimizer_step_pre_hook is not None
        self._counter = _engine.StepCounter(self._state, _asks(self))
        self.scaler: Optional[weakref.ref] = None
        self._wrapped: List[Any] = []

    @property
    def steps(self) -> int:
        """Taken so far."""
        return self._state.optimizer_steps

    # ---- which

    def watch(self) -> None:
        """From now on every optimizer of the process is looked at when it steps."""
        listen(self)
        if self._handles or register_optimizer_step_pre_hook is None:
            return
        self._handles = [register_optimizer_step_post_hook(self._counter)]

    @property
    def is_watching(self) -> bool:
        """Whether a step of an optimizer would be seen."""
        return bool(self._handles or self._wrapped)

    def watch_gradients(self) -> None:
        """From now on the gradients are looked at when an optimizer is about to step."""
        if self._before is None and self._handles:
            self._before = register_optimizer_step_pre_hook(self.before_step)

    def _stop_watching_gradients(self) -> None:
        if self._before is not None:
            self._before.remove()
            self._before = None

    def add(self, optimizer: torch.optim.Optimizer) -> None:
        if self._counter.is_ours(optimizer):
            return
        self._counter.add(optimizer, True)
        if register_optimizer_step_pre_hook is None:
            self._wrap(optimizer)
        else:
            self.watch()
        hook = self._hook()
        if hook is not None:
            hook._model_changed()

    def known(self) -> List[torch.optim.Optimizer]:
        return self._counter.all(True)

    def others(self) -> List[torch.optim.Optimizer]:
        """Those that were seen to step and have no parameter of a registered model."""
        return self._counter.all(False)

    def model_changed(self, captures: Iterable) -> None:
        self._names = {id(p): name for capture in captures for name, p in capture.parameters()}
        self._counter.forget_others()

    def _belongs(self, optimizer: torch.optim.Optimizer) -> bool:
        known = self._counter.is_ours(optimizer)
        if known is not None:
            return known
        is_ours = any(id(p) in self._names for group in optimizer.param_groups for p in group["params"])
        if is_ours:
            self.add(optimizer)
        else:
            self._counter.add(optimizer, False)
            hook = self._hook()
            if hook is not None:
                hook._describe_again()  # that another one trains along is a fact about the program
        return is_ours

    # ---- what

    def scale_facts(self) -> Dict[str, Any]:
        """The factor of the loss, while a scaler is active."""
        scaler = None if self.scaler is None else self.scaler()
        return {} if scaler is None else {"grad_scale": float(scaler.get_scale())}

    def step_is_due(self, is_wanted: bool) -> None:
        """State and learning rates, as they are before this step, if anybody wants what optimizers know."""
        self.is_wanted = is_wanted
        hook = self._hook() if is_wanted else None
        if hook is None:
            return
        self.watch_gradients()
        optimizers = self.known()
        self._save_rates(hook, optimizers)
        for optimizer in optimizers:
            kind = (len(optimizer.state), hook._engine_hook.due_set(), hook._state.changes)
            if self._unwanted.get(id(optimizer)) != kind and not self._save_state(hook, optimizer):
                self._unwanted[id(optimizer)] = kind

    def step_is_calm(self, hook) -> None:
        """The same at a step that wants what the last one did: what nobody wanted then is not looked at."""
        optimizers = self.known()
        for optimizer in optimizers:
            unwanted = self._unwanted.get(id(optimizer))
            if unwanted is None or unwanted[0] != len(optimizer.state):
                self.step_is_due(True)
                return
        self._save_rates(hook, optimizers)
        if self._before is not None:
            kind = (hook._engine_hook.due_set(), hook._state.changes)
            if all(self._unwanted_gradients.get(id(optimizer)) == kind for optimizer in optimizers):
                self._stop_watching_gradients()

    def rate_tap(self) -> Optional[_engine.RateTap]:
        """What saves all that is wanted of optimizers at calm steps, as ``step_is_calm`` does; None if nothing is."""
        hook = self._hook() if self.is_wanted else None
        if hook is None:
            return None
        tap = _engine.RateTap(hook._engine_hook, self._state)
        if self._before is None and hook._is_asked_for_rates:
            for optimizer in self.known():
                unwanted = self._unwanted.get(id(optimizer))
                if unwanted is not None:
                    tap.add(optimizer, unwanted[0])
        return tap

    def _save_rates(self, hook, optimizers: Iterable[torch.optim.Optimizer]) -> None:
        """Once for a step of optimizers, however often the model is called for it: there may be nothing else to save."""
        rates = [group.get("lr") for optimizer in optimizers for group in optimizer.param_groups]
        rates = [None if rate is None else float(rate) for rate in rates]
        if hook._is_training() and self.is_watching and not self._state.tell_rates(rates):
            return
        for group_number, rate in enumerate(rates):
            if rate is not None:
                hook._engine_hook.save_scalar(f"{LEARNING_RATE_PREFIX}{group_number}", rate)

    def _save_state(self, hook, optimizer: torch.optim.Optimizer) -> bool:
        """Saves the tensors an optimizer keeps for its parameters; False if nobody wants any."""
        is_any_wanted = False
        for parameter, state in list(optimizer.state.items()):
            name = self._names.get(id(parameter))
            if name is None or not isinstance(state, dict):
                continue
            for key, value in state.items():
                if isinstance(value, torch.Tensor) and hook._engine_hook.wants(f"{STATE_PREFIX}{key}/{name}"):
                    is_any_wanted = True
                    hook._save_or_rescue(f"{STATE_PREFIX}{key}/{name}", value)
        return is_any_wanted

    def before_step(self, optimizer: torch.optim.Optimizer, *_) -> None:
        """The gradients as the optimizer sees them: accumulated, clipped, the scale of a loss scaler removed."""
        hook = self._hook() if self.is_wanted else None
        if hook is None:
            return
        try:
            if hook._is_passive() or not hook._is_step_due() or not self._belongs(optimizer):
                return
            kind = (hook._engine_hook.due_set(), hook._state.changes)
            if self._unwanted_gradients.get(id(optimizer)) != kind and not self._save_gradients(hook, optimizer):
                self._unwanted_gradients[id(optimizer)] = kind
            if hook._watcher is not None:
                hook._watcher.before_optimizer_step(self._gradients(optimizer))
        except Exception as error:
            hook._note_failure("the optimizer's step", error)

    def _save_gradients(self, hook, optimizer: torch.optim.Optimizer) -> bool:
        """Saves the gradients of an optimizer's parameters; False if there are some and nobody wants any."""
        is_any_wanted = are_there_any = False
        scale = getattr(optimizer, "grad_scale", None)  # of a fused step, which removes it itself
        for name, gradient in self._gradients(optimizer):
            are_there_any = True
            name = GRADIENT_PREFIX + name
            if not hook._engine_hook.wants(name):
                continue
            is_any_wanted = True
            if scale is not None:
                gradient = gradient.detach() / scale
            hook._save_or_rescue(name, gradient)
        return is_any_wanted or not are_there_any

    def _gradients(self, optimizer: torch.optim.Optimizer) -> Iterator[Tuple[str, torch.Tensor]]:
        for group in optimizer.param_groups:
            for parameter in group["params"]:
                name = self._names.get(id(parameter))
                if name is not None and parameter.grad is not None:
                    yield name, local_part(parameter.grad)

    def _is_new_one_ours(self, optimizer: torch.optim.Optimizer) -> bool:
        """Asked after the first step of an optimizer."""
        hook = self._hook()
        try:
            return hook is not None and self._belongs(optimizer)
        except Exception as error:
            hook._note_failure("the optimizer's step", error)
            return False

    def module_compiled(self, module: torch.nn.Module, result: Optional[torch.nn.Module]) -> None:
        """A module was compiled after it had been registered."""
        hook = self._hook()
        for capture in [] if hook is None else hook._live_captures():
            if capture.root() is module:
                capture.become_compiled(result)

    def loss_scaled(self, scaler) -> None:
        """A loss was multiplied by the factor of a scaler, and so will its gradients be."""
        hook = self._hook()
        try:
            if hook is None or not scaler.is_enabled():
                return
            is_new = self.scaler is None or self.scaler() is not scaler
            self.scaler = weakref.ref(scaler)
            hook._state.changes += is_new
            if is_new and not hook._is_passive() and hook._is_step_due():
                hook._add_facts({"grad_scale": float(scaler.get_scale())})
        except Exception as error:
            hook._note_failure("the scaler of the loss", error)

    def gradients_clipped(self, norm) -> None:
        """The norm of the gradients before they were clipped."""
        hook = self._hook()
        try:
            if hook is not None and not hook._is_passive() and hook._is_step_due() and hook._wants_optimizers():
                hook._use_number(norm, functools.partial(hook._engine_hook.save_scalar, "grad_norm"))
        except Exception as error:
            hook._note_failure("the norm of the gradients", error)

    # ---- before PyTorch 2.0

    def _wrap(self, optimizer: torch.optim.Optimizer) -> None:
        step = optimizer.step
        this = weakref.ref(self)

        @functools.wraps(step)
        def step_and_tell(*arguments, **keywords):
            capture = this()
            if capture is not None:
                capture.before_step(optimizer)
            result = step(*arguments, **keywords)
            if capture is not None:
                capture._counter(optimizer)
            return result

        optimizer.step = step_and_tell
        self._state.counts_steps = True
        self._wrapped.append((weakref.ref(optimizer), step_and_tell))

    def close(self) -> None:
        self._stop_watching_gradients()
        for handle in self._handles:
            handle.remove()
        self._handles = []
        stop_listening(self)
        for known, wrapper in self._wrapped:
            optimizer = known()
            if optimizer is not None and optimizer.__dict__.get("step") is wrapper:
                del optimizer.step
        self._wrapped = []
