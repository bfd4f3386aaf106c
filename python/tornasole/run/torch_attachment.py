"""Attaches a hook to a PyTorch program that has none.

1. The first call of an outermost module with something to train makes the hook and registers that module. Until then
   PyTorch calls us before each module; afterwards it does not.
2. Losses: modules of ``torch.nn`` are registered at their first call; functions of ``torch.nn.functional`` are recorded
   under their names; the value ``backward()`` is called on is ``backward_loss_output_0`` if neither gave it, at further
   places of the program ``backward_loss_2_output_0`` and so on,
   or if it is not finite.
3. The mode of a step is that of the root module: training or not. It is training, too, where the optimizer stepped by
   what went back through the pass before, as where frozen layers keep their statistics.
4. Training may go on without a call of that module: programs call other methods of it, such as ``model.loss(batch)``.
   After a few backward passes of which no step knows, the parts that are called first begin steps too.
5. A model may be wrapped anew for each call: the first wrapper is registered, and gone after it. From then on steps begin
   with the outermost of its parts that lives on, or, if none does, with the next model that is called.
6. Other models may be trained along with it, as a decoder with its encoder: see models_along.
7. An optimizer that is made once the model was trained, for parameters of none of its parts, is another training: the
   model it trains has a hook and a trial of its own, and the first hook is closed.

A hook that the script builds itself is used instead, and gets the losses.
"""

import atexit
import functools
import sys
import weakref
from types import FrameType
from typing import Any, Dict, Optional, Set, Tuple

import torch

from tornasole import _engine
from tornasole.core.guard import guard
from tornasole.pytorch.host_tensors import is_in_transform
from tornasole.run import keras_attachment
from tornasole.run.automatic_hook import MOST_TRAININGS, end_training, make_automatic_hook, tell_nothing_is_captured
from tornasole.run.models_along import ModelsAlong
from tornasole.run.module_calls import ModuleCalls, outermost
from tornasole.run.program_stderr import tell
from tornasole.run.stand_ins import stand_in

# Functions of torch.nn.functional whose value is a loss.
LOSS_FUNCTIONS = (
    "binary_cross_entropy",
    "binary_cross_entropy_with_logits",
    "cosine_embedding_loss",
    "cross_entropy",
    "ctc_loss",
    "gaussian_nll_loss",
    "hinge_embedding_loss",
    "huber_loss",
    "kl_div",
    "l1_loss",
    "margin_ranking_loss",
    "mse_loss",
    "multi_margin_loss",
    "multilabel_margin_loss",
    "multilabel_soft_margin_loss",
    "nll_loss",
    "poisson_nll_loss",
    "smooth_l1_loss",
    "soft_margin_loss",
    "triplet_margin_loss",
    "triplet_margin_with_distance_loss",
)
_UNKNOWN_PASSES = 3
_MOST_PASSES = 200  # in which parts that begin steps are looked for
_ENTRY_PASSES = 8  # after the first part that begins steps was found, in which others are looked for
_MOST_PLACES = 9  # of a program that call backward(): further ones have the name of the last
_LOSS_DEPTH = 4  # a loss may be divided, scaled or added up before backward() is called on it
_GROW_WITH_INPUTS = ("AddBackward", "MeanBackward", "SumBackward", "SqueezeBackward", "ViewBackward", "ToCopyBackward")


class Attachment:
    """The state of one attached process."""

    def __init__(self):
        self.hook = None
        self.losses = _engine.LossCalls(self, guard)
        self._calls = ModuleCalls(self.failed, lambda: self.losses.passes)
        self._trained: Dict[int, "weakref.ref[torch.nn.Parameter]"] = {}  # what optimizers were given, by id
        self._known_pass = (-1, -1)  # step and optimizer's step at the last backward pass
        self._unknown_passes = 0  # backward passes of which no step knows, more than others
        self._last_look = 0  # for parts that begin steps, before this backward pass
        self._places: Dict[Tuple[str, int], int] = {}  # file and line that call backward() on losses of no name -> number
        self._replacements = 0  # of models that were gone
        self._next: Set[int] = set()  # parameters of another training, by id
        self._given_after = -1  # backward passes, when this training was given its last optimizer
        self._along = ModelsAlong(
            self._calls, lambda: self._trained, lambda: self.losses.passes, self._begin_another, self.failed
        )
        self._trainings = 0  # that have a hook made for them

    # ---- finding the model

    def _look_for_model(self, module: torch.nn.Module) -> None:
        if not any(parameter.requires_grad for parameter in self._calls.weights_of(module)):
            return
        root = outermost(module)
        if root is not None and self._may_be_trained(root):
            self._calls.stop()
            self.take(root, module)

    def _look_for_next_model(self, module: torch.nn.Module) -> None:
        if any(id(parameter) in self._next for parameter in self._calls.weights_of(module)):
            self._begin_another(module)  # also without gradients: it may be evaluated before it is trained

    def _begin_another(self, module: torch.nn.Module) -> None:
        """The training of the hook is over: the one of this module has its own."""
        end_training(self.hook)
        self._next, self._known_pass, self._unknown_passes = set(), (-1, -1), 0
        self._look_for_model(module)

    def optimizer_given(self, group: Any) -> None:
        """Parameters that an optimizer will train."""
        given: Set[int] = set()
        parameters = group.get("params", ()) if isinstance(group, dict) else ()
        for parameter in [parameters] if isinstance(parameters, torch.Tensor) else parameters:
            if isinstance(parameter, torch.Tensor):
                self._trained[id(parameter)] = weakref.ref(parameter)
                given.add(id(parameter))
        hook = self.hook
        if hook is None or self.losses.is_off or not hook._is_automatic:
            return
        if not hook._optimizers.steps or self._is_of_last_pass(given):
            self._given_after = self.losses.passes
            self._along.search()
            return
        if not any(id(known) in given for capture in hook._live_captures() for _, known in capture.parameters()):
            self._next |= given
            self._calls.search(self._look_for_next_model)

    def _is_of_last_pass(self, given: Set[int]) -> bool:
        """Whether parameters have gradients of the backward pass after which the optimizer before was made: programs may
        make an optimizer for each parameter once it has a gradient."""
        if self._given_after != self.losses.passes:
            return False
        return any(getattr(self._trained[key](), "grad", None) is not None for key in given)

    def _may_be_trained(self, root: torch.nn.Module) -> bool:
        """Not a target network or a teacher: those are called without gradients, and no optimizer has a part of them."""
        self._trained = {key: known for key, known in self._trained.items() if known() is not None}
        if torch.is_grad_enabled() or not self._trained:
            return True
        return any(id(parameter) in self._trained for parameter in root.parameters())

    def take(self, root: torch.nn.Module, called: torch.nn.Module) -> None:
        """Registers the model, with the script's hook if it has one, else with one made for it."""
        from tornasole.core.singleton_utils import current_hook
        from tornasole.pytorch.torch_hook import Hook

        hook = current_hook()
        if hook is not None and not isinstance(hook, Hook):
            self.losses.stop()
            return
        if hook is None:
            self._trainings += 1
            hook = make_hook(self._trainings)
            if hook is None:
                self.losses.stop()
                return
        self.hook, self._places = hook, {}
        self.losses.set_hook(hook, hook._state)
        if not hook.prepared_collections:
            # Most functions have names that say nothing of a loss.
            hook.get_collection("losses").include(f"^({'|'.join(LOSS_FUNCTIONS)})_output_")
        if hook.has_registered_module:
            return
        hook._mode_follows_training = hook._is_automatic
        if hook._watcher is None:
            hook._state.untold_steps = sys.maxsize  # there is nobody to be told
        hook.register_module(root, _entry=called)
        self._along.begin(hook, root)

    # ---- models that are gone while their training goes on

    def _is_model_gone(self) -> bool:
        return self.hook._is_automatic and not any(capture.begins_steps for capture in self.hook._live_captures())

    def _look_for_successor(self, module: torch.nn.Module) -> None:
        if not torch.is_grad_enabled() or not any(parameter.requires_grad for parameter in module.parameters()):
            return
        left = self.hook.module_set
        if any(not isinstance(part, torch.nn.modules.loss._Loss) for part in left):
            root = outermost(module, left) if module in left else None
        else:
            root = outermost(module)
        if root is None:
            return
        self._calls.stop()
        self._replacements += 1
        if self._replacements > MOST_TRAININGS:
            raise RuntimeError(f"the program has called {MOST_TRAININGS} models and let go of each")
        left.difference_update(set(root.modules()))
        self.hook.register_module(root, _entry=module)

    def failed(self, error: Exception) -> None:
        """Nothing is captured from now on; the program is told why, and goes on."""
        self.losses.stop()
        self._calls.stop()
        tell_nothing_is_captured(error, self.hook is not None)

    # ---- steps that begin elsewhere

    def _look_for_other_entry(self) -> None:
        """Counts backward passes after an optimizer's step without a call of the model, with gradients, in between."""
        if self._unknown_passes > _UNKNOWN_PASSES:
            return
        step, taken = self.hook.step, self.hook._optimizers.steps
        is_called = step != self._known_pass[0] and self.hook._has_pass_gradients
        has_stepped = taken != self._known_pass[1]  # not by an optimizer of something else, such as a temperature
        self._known_pass = step, taken
        if is_called:
            self._unknown_passes = max(self._unknown_passes - 1, 0)  # that of an actor, where its critic has two
        else:
            self._unknown_passes += has_stepped
        if self._unknown_passes == _UNKNOWN_PASSES and has_stepped:
            self._unknown_passes += 1  # looked for once
            self._last_look = self.losses.passes + _MOST_PASSES
            self._calls.search(self._look_for_part)

    def _look_for_part(self, module: torch.nn.Module) -> None:
        if self.losses.passes > self._last_look:
            self._calls.stop()
        if self.losses.passes > self._last_look or not torch.is_grad_enabled():
            return
        for capture in self.hook._live_captures():
            root = capture.root()
            if not capture.begins_steps or root is module:
                continue
            if not any(parameter.requires_grad for parameter in module.parameters()):
                continue
            if any(part is module for part in root.modules()):
                self._last_look = min(self._last_look, self.losses.passes + _ENTRY_PASSES)
                capture.begin_at(module, lambda: self.losses.passes)

    # ---- losses

    def register_loss(self, loss: torch.nn.Module) -> None:
        """A loss of ``torch.nn`` is about to be called, and it is not the one that was called last."""
        if loss not in self.hook.module_set or self._is_part_without_name(loss):
            self.hook.register_loss(loss)

    def _is_part_without_name(self, loss: torch.nn.Module) -> bool:
        """Whether it is a part of the model, called something, such as ``criterion``, that says nothing of a loss."""
        if not self.hook._is_automatic:
            return False
        parts = [known for capture in self.hook._live_captures() for known in capture.modules()]
        return any(part is loss and "loss" not in name.lower() for name, part in parts)

    def begin_loss_function(self, name: str, arguments: tuple) -> bool:
        """A loss of ``torch.nn.functional`` is about to be computed. Whether its value is to be recorded."""
        if any(isinstance(value, torch.Tensor) and is_in_transform(value) for value in arguments[:2]):
            return False  # inside torch.func tensors have no values
        hook = self.hook
        is_new = name not in hook._loss_functions
        hook._loss_function_called(name, arguments[:2])
        if is_new and hook._is_automatic:  # else it may be of a class that records in a way of its own
            self.losses.know_function(name, _engine.LossFunction(hook._engine_hook, name, hook._watcher is not None))
        return True

    def end_loss_function(self, name: str, value: Any) -> None:
        self._record(name, value)

    def note_loss(self, value: Any) -> None:
        """The value of a loss, which is not one finite number in memory."""
        if isinstance(value, torch.Tensor) and not is_in_transform(value):
            self.hook._loss_seen(value)
            if value.numel() == 1:  # of many, one for each sample, what the program makes is the loss
                self.losses.known.add(value.grad_fn)

    def is_in_keras(self) -> bool:
        return keras_attachment.is_training()

    def begin_backward(self, value: torch.Tensor) -> None:
        """A backward pass starts from this value, and not from the last loss after a step as usual."""
        known = self.losses.known
        if value.numel() == 1 and not is_in_transform(value) and not known.is_last(value):
            is_scaled = self.hook._optimizers.scaler is not None  # then the product may well be infinite
            is_broken = not is_scaled and self.hook._loss_seen(value)
            signs = self._signs_of_known_losses(value)
            if is_broken or not signs:
                self._record(self._name_of_loss(sys._getframe(2)), value)
            elif signs == {-1} and self.hook._is_step_due():
                self.hook._engine_hook.save_scalar("loss_sign", -1.0)
        known.clear()
        self.hook._backward_begins()
        if not self._is_model_gone():
            self._look_for_other_entry()
        elif self._along.is_free():
            self._calls.search(self._look_for_successor)

    def _name_of_loss(self, caller: FrameType) -> str:
        """Different places call ``backward()`` on different losses, as a policy's and a critic's."""
        place = (caller.f_code.co_filename, caller.f_lineno)
        if len(self._places) < _MOST_PLACES:
            self._places.setdefault(place, len(self._places) + 1)
        number = self._places.get(place, _MOST_PLACES)
        return "backward_loss" if number == 1 else f"backward_loss_{number}"

    def _record(self, name: str, value: Any) -> None:
        if not isinstance(value, torch.Tensor) or is_in_transform(value) or not self.hook._is_step_due():
            return
        if self.hook._state.is_left():
            return
        self.hook.record_tensor_value(name, value)

    def _signs_of_known_losses(self, value: torch.Tensor) -> Set[int]:
        """Of the known losses a value is computed from: 1 where it grows with them, -1 where it falls as they grow, 0
        where nobody knows. Of the nearest ones."""
        level = [(value.grad_fn, 1)]
        for _ in range(_LOSS_DEPTH):
            known = {sign for node, sign in level if self.losses.known.has(node)}
            if known:
                return known
            level = [
                (parent, sign * factor)
                for node, sign in level
                if node is not None
                for (parent, _), factor in zip(node.next_functions, _signs_of_inputs(node))
            ]
        return set()


def _signs_of_inputs(node: Any) -> Tuple[int, ...]:
    """For each input of a step of the computation, whether its value grows or falls with that; 0 if it is not known."""
    count = len(node.next_functions)
    kind = node.name()
    if kind.startswith(_GROW_WITH_INPUTS):
        return (1,) * count
    if kind.startswith(("NegBackward", "RsubBackward")):
        return (-1,) * count
    if kind.startswith("SubBackward"):
        return (1, -1)[:count]
    if kind.startswith(("MulBackward", "DivBackward")) and count > 0 and node.next_functions[-1][0] is None:
        return (_sign_of_factor(node),) * count
    return (0,) * count


def _sign_of_factor(node: Any) -> int:
    try:
        factor = getattr(node, "_saved_other", None)  # that of a number
    except RuntimeError:  # what the graph kept is freed: this is a second pass
        return 0
    if not isinstance(factor, torch.Tensor) or not factor.is_cpu or factor.numel() != 1 or factor.is_complex():
        return 0
    number = factor.item()
    return (number > 0) - (number < 0)


def make_hook(training: int = 1):
    """A hook from the configuration or preset the environment names, for the n-th training of the program."""
    from tornasole.pytorch.torch_hook import Hook

    def of_preset(name: str, out: Optional[str]):
        from tornasole.run.presets import make_preset_hook

        return make_preset_hook(Hook, name, out)

    return make_automatic_hook(Hook, of_preset, training)


_attachment: Optional[Attachment] = None


def attach() -> Attachment:
    """Attaches to PyTorch, once."""
    global _attachment
    if _attachment is not None:
        return _attachment
    _attachment = attachment = Attachment()
    functional, loss_type = torch.nn.functional, torch.nn.modules.loss._Loss

    losses = attachment.losses
    loss_type.__call__ = stand_in(torch.nn.Module.__call__, losses.enter_loss_module, losses.leave_loss_module)
    for name in LOSS_FUNCTIONS:
        function = getattr(functional, name, None)
        if function is not None:
            enter = functools.partial(losses.enter_loss_function, name)
            leave = functools.partial(losses.leave_loss_function, name)
            setattr(functional, name, stand_in(function, enter, leave))
    add_param_group = torch.optim.Optimizer.add_param_group

    @functools.wraps(add_param_group)
    def add_and_tell(self, param_group):
        result = add_param_group(self, param_group)
        try:
            attachment.optimizer_given(param_group)
        except Exception as error:
            attachment.failed(error)
        return result

    torch.optim.Optimizer.add_param_group = add_and_tell
    torch.Tensor.backward = stand_in(torch.Tensor.backward, losses.enter_backward, losses.leave_backward)
    atexit.register(_tell_what_is_missing, attachment)
    attachment._calls.search(attachment._look_for_model)
    return attachment


def _tell_what_is_missing(attachment: Attachment) -> None:
    """At the end of a program that trained something without a call of a module: there is no trial, and here is why."""
    passes = attachment.losses.passes
    if attachment.hook is None and passes and not attachment.losses.is_off:
        tell(
            f"tornasole: nothing was captured: backward() was called {passes} times, but no torch.nn.Module "
            "with something to train; models are found when they are called as model(...)"
        )

