"""The hook for PyTorch: what is captured, under which name, and when.

======================  =======================================================  =================================
tensor                  name                                                     captured
======================  =======================================================  =================================
parameter               ``<RootClass>_<path>``, ``Net_fc1.weight``               before the root's forward pass
gradient                ``gradient/<parameter>``                                 in the backward pass, as it comes
module input, output    ``<path>_input_<i>``, ``<path>_output_<i>``              after the module's forward pass
loss                    ``<LossClass>_output_0``                                 after the loss's forward pass
functional loss         ``<name>_output_0``                                      ``record_tensor_value``
======================  =======================================================  =================================

A step begins with each forward pass of a registered root module, and ends with the next one.
"""

import math
import weakref
from typing import Any, Callable, Dict, List, Optional, Tuple

import torch

from tornasole import _engine
from tornasole.core.collection import CollectionKeys
from tornasole.core.edits import edits
from tornasole.core.guard import configuration_error, guard, guarded
from tornasole.core.hook import BaseHook
from tornasole.core.older_names import make_tornasole_hook
from tornasole.exceptions import SMDebugError
from tornasole.modes import ModeKeys
from tornasole.pytorch.attached_callbacks import Attached
from tornasole.pytorch.callback_methods import CallbackMethods, ReplacedCallbacks
from tornasole.pytorch.host_copies import HostCopies
from tornasole.pytorch.host_tensors import is_in_transform
from tornasole.pytorch.model_capture import ModelCapture
from tornasole.pytorch.model_description import describe
from tornasole.pytorch.model_graph import graph_def_of
from tornasole.pytorch.module_names import ModuleNames
from tornasole.pytorch.optimizer_capture import OptimizerCapture
from tornasole.pytorch.torch_collection import Collection
from tornasole.pytorch.torch_workers import rank_and_size

_MODE_NUMBERS = {mode: mode.value for mode in ModeKeys}
_TRAIN_NUMBER = ModeKeys.TRAIN.value
_ON_REQUEST = (CollectionKeys.OPTIMIZER_VARIABLES, CollectionKeys.OPTIMIZER_GRADIENTS)


def _require(holds: bool, message: str) -> None:
    if not holds:
        raise configuration_error(AssertionError(message))


class Hook(CallbackMethods, BaseHook):
    """Captures tensors of a PyTorch training into a trial.

    >>> hook = Hook(out_dir="runs/mnist", save_config=SaveConfig(save_interval=100))  # doctest: +SKIP
    >>> hook.register_module(model); hook.register_loss(criterion)                    # doctest: +SKIP

    The arguments are those of every hook. After construction no call raises into the training because of a fault of
    the disk, of a value or of this library: what was lost is counted and stands in ``report()``.
    """

    _framework = "pytorch"
    _framework_version = torch.__version__
    _collection_class = Collection

    @guarded(even_when_off=True)  # a new hook ends a shut-down
    def __init__(self, *arguments, **options) -> None:
        super().__init__(*arguments, **options)
        self.module_set = weakref.WeakSet()
        self.has_registered_module = False
        self.has_registered_loss_module = False
        self._captures: List[weakref.ref] = []
        self._coming_gradients: List[Attached] = []  # taps of a model that is gone, for the step it was last called in
        self._losses: List[Tuple[str, "weakref.ref[torch.nn.Module]"]] = []
        self._loss_functions: List[str] = []  # of torch.nn.functional that gave a loss
        self._loss_taps: List[Attached] = []
        self._replaced_callbacks = ReplacedCallbacks(self._replaced_methods())
        self._are_losses_tapped = False
        self._state = _engine.StepState()
        self._optimizers = OptimizerCapture(self)
        self._rescue = self._make_rescue()
        self._facts: Optional[Dict[str, Any]] = None  # of the open step; none but the usual ones
        self._copies = HostCopies(self._state)
        self._has_pass_gradients = True  # of the open step
        self._last_module: Callable[[], Optional[torch.nn.Module]] = lambda: None  # of the last due step
        # By a preset, whatever the collections: learning rates and norms, and what is left of gradients.
        self._is_asked_for_rates = False
        self._mode_follows_training = False
        self._was_in_training = False
        # Step and optimizer's steps of the last pass in evaluation mode that something went back through.
        self._evaluation_pass: Optional[Tuple[int, int]] = None
        self._watcher: Optional[Any] = None  # of a preset: told of steps, losses and what optimizers see
        self._captures_functions = bool(self._options.get("capture_functional"))
        self._is_described = True
        self._uncaptured: List[str] = []
        self._is_open = True

    # ---- what users call

    @guarded()
    def register_module(self, module: torch.nn.Module, *, _entry: Optional[torch.nn.Module] = None) -> None:
        """Captures this module, as the root of a model: each of its forward passes is a step.

        Raises ``SMDebugError`` for what is no ``torch.nn.Module``, and an ``AssertionError`` for a module that is
        registered already, by itself or as a part of another.
        """
        if not isinstance(module, torch.nn.Module):
            raise configuration_error(
                SMDebugError(f"register_module takes a torch.nn.Module, not a value of type {type(module).__name__}")
            )
        for submodule in module.modules():
            _require(
                submodule not in self.module_set,
                f"the module {type(submodule).__name__} is registered already: each module belongs to one root",
            )
        self._expect_no_gradients()
        names = ModuleNames(module, stable=bool(self._options.get("stable_names")))
        capture = ModelCapture(self, module, names, _entry)
        for submodule in module.modules():
            self.module_set.add(submodule)
        self._captures.append(weakref.ref(capture))
        self._replaced_callbacks.hang_on_model(self, module, capture)
        self._optimizers.watch()
        self._model_changed()
        if self._watcher is not None:
            self._watcher.model_registered(names.root)
        self.has_registered_module = True

    def _register_along(self, module: torch.nn.Module) -> None:
        """Captures a module that is trained along with those that are registered, in their steps."""
        captures = self._live_captures()
        names = ModuleNames(module, bool(self._options.get("stable_names")), [known.names.root for known in captures])
        capture = ModelCapture(self, module, names, begins_steps=False)
        self.module_set.update(module.modules())
        self._captures.append(weakref.ref(capture))
        self._model_changed()
        if self._watcher is not None:
            self._watcher.weights_registered()

    def _register_instead(self, module: torch.nn.Module, entry: torch.nn.Module) -> None:
        """Captures a module in place of those that are registered, in the same trial."""
        for capture in self._live_captures():
            root = capture.root()
            self.module_set.difference_update(() if root is None else set(root.modules()))
            capture.close()
        self._captures = []
        self.register_module(module, _entry=entry)

    def register_hook(self, module: torch.nn.Module) -> None:
        """The same as :meth:`register_module`."""
        self.register_module(module)

    @guarded()
    def save_graph(self, module: torch.nn.Module, inputs: Any) -> None:
        """Shows the graph of a module in TensorBoard, as it runs for these inputs: one tensor, or a tuple of them.

        A copy of the module is traced, so that neither the module nor the state of the random numbers changes. Needs
        ``export_tensorboard`` and the package ``tensorboard``; without either, or if the module cannot be traced, a
        warning says so and there is no graph.
        """
        if not self.tensorboard_dir:
            self.logger.warning("save_graph: there is no TensorBoard output; give export_tensorboard=True")
        elif self._engine_hook is not None:
            try:
                self._engine_hook.save_graph(graph_def_of(module, inputs))
            except Exception as error:
                self.logger.warning("save_graph: no graph of %s: %s", type(module).__name__, error)

    @guarded()
    def register_loss(self, loss_module: torch.nn.Module) -> None:
        """Captures the inputs and the value of a loss such as ``torch.nn.CrossEntropyLoss()``, at due steps.

        An ``AssertionError`` for what is no loss of ``torch.nn``.
        """
        _require(
            isinstance(loss_module, torch.nn.modules.loss._Loss),
            f"register_loss takes a loss of torch.nn, an instance of a subclass of _Loss, not a "
            f"{type(loss_module).__name__}; a loss computed by a function is saved with record_tensor_value",
        )
        if any(known() is loss_module for _, known in self._losses):
            return
        self.module_set.add(loss_module)
        self._losses.append((loss_module._get_name(), weakref.ref(loss_module)))
        self._replaced_callbacks.hang_on_loss(self, loss_module._get_name(), loss_module)
        if self._are_losses_tapped:
            self._tap_loss(loss_module)
        self._model_changed()
        self.has_registered_loss_module = True

    @guarded()
    def register_optimizer(self, optimizer: torch.optim.Optimizer) -> None:
        """Names an optimizer whose state, learning rates and gradients may be asked for.

        Optimizers of a registered model are found by themselves at their first step; this makes one known before it.
        """
        if not isinstance(optimizer, torch.optim.Optimizer):
            raise configuration_error(
                SMDebugError(
                    f"register_optimizer takes a torch.optim.Optimizer, not a value of type {type(optimizer).__name__}"
                )
            )
        self._optimizers.add(optimizer)

    @guarded()
    def record_tensor_value(self, tensor_name: str, tensor_value: torch.Tensor) -> None:
        """Saves a value as the output of a module called ``tensor_name``: ``<tensor_name>_output_0``.

        For losses that are functions: ``hook.record_tensor_value("nll_loss", loss)``. It is saved if a collection that
        is due contains that name. An ``AssertionError`` for what is no tensor.
        """
        _require(
            isinstance(tensor_value, torch.Tensor),
            f"record_tensor_value takes a torch.Tensor, not a value of type {type(tensor_value).__name__}",
        )
        try:
            self._engine_hook.save_output(tensor_name, tensor_value)
        except Exception as error:
            self._rescue(self._engine_hook.save_output, tensor_name, tensor_value, error)

    def report(self) -> Dict[str, Any]:
        """What capture did so far; ``uncaptured`` names the modules whose tensors are wanted and cannot be had."""
        return {**super().report(), "uncaptured": list(self._uncaptured)}

    # ---- called by the captures

    def _cannot_capture(self, module_names: List[str], is_scripted: bool) -> None:
        new = [name for name in module_names if name not in self._uncaptured]
        if not new:
            return
        self._uncaptured += new
        self.logger.warning(
            "the inputs and outputs of '%s'%s cannot be captured: code made by %s hides them",
            new[0],
            "" if len(new) == 1 else f" and {len(new) - 1} more modules",
            "TorchScript" if is_scripted else "torch.compile",
        )

    def _usual_facts(self, module: torch.nn.Module) -> Dict[str, Any]:
        facts = {"training": module.training, "grad_enabled": torch.is_grad_enabled()}
        steps = self._state.known_steps
        return facts if steps is None else {"optimizer_step": steps, **facts}

    def _step_is_due(self, module: torch.nn.Module) -> None:
        self._last_module = weakref.ref(module)
        if not self._is_described:
            self._describe_model()
        if not self._are_losses_tapped:
            self._are_losses_tapped = True
            for attached in self._loss_taps:
                attached.attach()
            for _, known in self._losses[len(self._loss_taps) :]:
                loss = known()
                if loss is not None:
                    self._tap_loss(loss)
        optimizers = self._optimizers
        self._has_pass_gradients = torch.is_grad_enabled()
        if optimizers.scaler is None:
            self._facts = None
            self._engine_hook.set_usual_facts(self._state.known_steps, module.training, self._has_pass_gradients)
        else:
            self._facts = self._usual_facts(module)
            self._add_facts(optimizers.scale_facts())
        optimizers.step_is_due(self._wants_optimizers())

    def _needs_nothing_at_begin(self) -> bool:
        """Whether what ``_step_is_due`` did holds for the steps to come, but for the usual facts."""
        return self._optimizers.scaler is None

    def _is_training(self) -> bool:
        """Whether the model that was called last is being trained."""
        module = self._last_module()
        return module is not None and module.training

    def _step_is_calm(self, module: "weakref.ref[torch.nn.Module]") -> None:
        """A step like the last: the usual facts are set, and only what optimizers know is to be asked for again."""
        self._has_pass_gradients = torch.is_grad_enabled()
        self._last_module = module
        self._facts = None
        if self._optimizers.is_wanted:
            self._optimizers.step_is_calm(self)

    def _nothing_is_due(self) -> None:
        if self._are_losses_tapped:
            self._state.changes += 1
            self._are_losses_tapped = False
            for attached in self._loss_taps:
                attached.detach()

    def _tap_loss(self, loss: torch.nn.Module) -> None:
        if "forward_hook" in self._replaced_callbacks.methods:
            return
        state = self._state if self._is_automatic else None  # who registers a loss wants it whenever it is called
        tap = _engine.ForwardTap(self._engine_hook, loss._get_name(), self._rescue, state)
        self._loss_taps.append(Attached.to_module(loss, tap))

    def _model_changed(self) -> None:
        self._optimizers.model_changed(self._live_captures())
        self._describe_again()

    def _describe_again(self) -> None:
        """At the next due step, which is no calm one."""
        self._is_described = False
        self._state.changes += 1

    def _describe_model(self) -> None:
        """Once something is saved: before that the run has no directory and may not know its worker."""
        self._is_described = True
        described = [(name, type(loss).__name__) for name, loss in self._live_losses()]
        described += [(name, name) for name in self._loss_functions]
        optimizers = self._optimizers.known() + self._optimizers.others()
        self._engine_hook.describe_model(describe(self._live_captures(), described, optimizers))

    def _live_captures(self) -> List[ModelCapture]:
        captures = [capture for known in self._captures for capture in [known()] if capture is not None]
        self._captures = [weakref.ref(capture) for capture in captures]
        return captures

    def _trained_along(self) -> List[ModelCapture]:
        return [capture for capture in self._live_captures() if not capture.begins_steps]

    def _expect_no_gradients(self) -> None:
        for attached in self._coming_gradients:
            attached.remove()
        self._coming_gradients.clear()

    def _live_losses(self) -> List[Tuple[str, torch.nn.Module]]:
        return [(name, loss) for name, known in self._losses for loss in [known()] if loss is not None]

    def _make_rescue(self):
        # Not a method: the taps hang on modules and must not keep the hook alive.
        this = weakref.ref(self)

        def rescue(save, name: str, tensor: torch.Tensor, error: BaseException) -> None:
            """Saves what the engine could not take as it was; what cannot be saved at all is told once per name."""
            try:
                hook = this()
                if hook is None:
                    return
                if is_in_transform(tensor):
                    hook._note_failure("torch.func", ValueError("inside its transforms tensors have no values"))
                    return
                if isinstance(error, TypeError):
                    hook._copies.save(save, name, tensor)
                    return
            except Exception as second:
                error = second
            hook._note_failure(f"'{name}'", error)

        return rescue

    # ---- asked by the captures

    def _mode_of(self, module: torch.nn.Module) -> int:
        """The number of the mode of the step that begins, where it follows the model's own."""
        watcher = self._watcher
        self._was_in_training = self._was_in_training or module.training
        if watcher is not None and module.training and self._state.untold_steps > 0:
            self._state.untold_steps -= 1
            return _TRAIN_NUMBER
        mode = ModeKeys.TRAIN if module.training or self._is_trained_in_evaluation() else ModeKeys.EVAL
        if watcher is not None:
            watcher.before_step(mode)
        self._modes_seen.add(mode)
        return _MODE_NUMBERS[mode]

    def _is_trained_in_evaluation(self) -> bool:
        """Whether the model is trained while it is in evaluation mode: an optimizer stepped by what went back through
        the pass before, or would have, had it parameters of the model. Passes without gradients, which evaluate, may
        lie between."""
        known = self._evaluation_pass
        if known is None or self.step != known[0]:
            return False
        would_step = not self._was_in_training and self._optimizers.others()
        if self._optimizers.steps <= known[1] and not would_step:
            return False
        if torch.is_grad_enabled():
            return True
        self._evaluation_pass = known[0] + 1, known[1]  # the step of the pass that begins
        return False

    def _loss_seen(self, value: torch.Tensor) -> bool:
        """Tells the watcher the value of a loss. Whether it is known already that it is not finite."""
        watcher = self._watcher
        if watcher is None or value.numel() != 1 or value.is_meta:
            return False
        try:
            if value.is_cpu:
                number = value.item()
                if math.isfinite(number):
                    watcher.loss(number)
                    return False
                watcher.broken_loss(number, value)
                return True
            self._use_number(value, watcher.loss)
        except Exception as error:
            self._note_failure("the value of the loss", error)
        return False

    def _use_number(self, value: Any, use: Callable[[float], None]) -> None:
        """Calls ``use`` with a number: now, or once it has come if it is a tensor of another device. The training does
        not wait for it."""
        if isinstance(value, torch.Tensor) and not value.is_cpu:
            self._copies.save(lambda _, host: use(host.item()), "", value)
        else:
            use(value.item() if isinstance(value, torch.Tensor) else float(value))

    def _loss_function_called(self, name: str, inputs: Tuple[Any, ...]) -> None:
        """A loss that is a function is about to be computed. What it is given is saved for presets alone: neither
        ``all`` nor a pattern of the user's means it."""
        if name not in self._loss_functions:
            self._loss_functions.append(name)
            self._describe_again()
        if self._watcher is not None and self._is_step_due():
            for i, value in enumerate(inputs):
                if isinstance(value, torch.Tensor):
                    self._save_or_rescue(f"{name}_input_{i}", value.detach())

    def _backward_begins(self) -> None:
        self._state.backward_passes += 1
        # A pass without gradients, of a teacher or a target network, is not what goes back.
        if not self._has_pass_gradients:
            return
        last = self._last_module()
        if last is not None and last.training:
            return
        roots = [capture.root() for known in self._captures for capture in [known()] if capture is not None]
        if not roots or any(root is not None and root.training for root in roots):
            return
        self._evaluation_pass = self.step, self._optimizers.steps
        if self._engine_hook.anything_due() and any(root is not None for root in roots):
            self._add_facts({"backward_in_eval": True})

    def _add_facts(self, facts: Dict[str, Any]) -> None:
        """Facts about the step that is open."""
        self._state.forget_usual()
        if self._facts is None:
            module = self._last_module()
            self._facts = {} if module is None else self._usual_facts(module)
        self._facts.update(facts)
        self._engine_hook.set_facts(self._facts)

    def _is_passive(self) -> bool:
        return guard.disable_smdebug or not self._is_open

    def _save_or_rescue(self, name: str, tensor: torch.Tensor) -> None:
        try:
            self._engine_hook.save(name, tensor)
        except Exception as error:
            self._rescue(self._engine_hook.save, name, tensor, error)

    def _is_step_due(self) -> bool:
        return self._engine_hook.anything_due()

    def _wants_optimizers(self) -> bool:
        """Whether somebody asked for what optimizers know: neither ``all`` nor a framework's default does."""
        included = self.include_collections
        return self._is_asked_for_rates or _ON_REQUEST[0] in included or _ON_REQUEST[1] in included

    # ---- steps; what is still on its way from another device belongs to the step that ends

    def _prepare_step(self) -> None:
        """Before a step begins: what was changed since the last one, and what still belongs to that."""
        if self._copies.is_busy:
            self._flush_copies()
        if edits.count != self._seen_edits:
            self._state.changes += 1
            self._sync()

    def _begin_step(self, mode: Optional[ModeKeys] = None) -> bool:
        if self._copies.is_busy:
            self._flush_copies()
        return super()._begin_step(mode)

    def _end_step(self, partial: bool = False) -> None:
        self._flush_copies()
        super()._end_step(partial)

    def set_mode(self, mode: ModeKeys) -> None:
        """Sets the mode of the steps to come; ends the open step if the mode changes. Counts nothing."""
        self._flush_copies()
        super().set_mode(mode)

    def _flush_copies(self) -> None:
        try:
            self._copies.flush()
        except Exception as error:
            self._note_failure("a copy from another device", error)

    # ---- asked by the base

    def _get_worker_rank(self) -> Tuple[int, int]:
        return rank_and_size()

    def _tensor_name_of(self, arg: object) -> Optional[str]:
        for capture in self._live_captures():
            for name, parameter in capture.parameters():
                if parameter is arg:
                    return name
        return None

    def _prepare_framework_collections(self) -> None:
        """Modules whose tensors were asked for become patterns: by now they have names."""
        names = {id(module): name for capture in self._live_captures() for name, module in capture.modules()}
        names.update((id(loss), name) for name, loss in self._live_losses())
        for collection in list(self.collection_manager.collections.values()):
            collection._add_module_patterns(names)

    @guarded(even_when_off=True)
    def close(self) -> None:
        """Ends the run and takes every callback off the model, the losses and the optimizers.

        What is left is written, then the end marker. Later calls are ignored with one warning.
        """
        if getattr(self, "_is_open", False):
            self._flush_copies()
            self._is_open = False
            self._state.changes += 1
            for capture in self._live_captures():
                capture.close()
            self._expect_no_gradients()
            for attached in self._loss_taps:
                attached.remove()
            self._loss_taps.clear()
            self._replaced_callbacks.close()
            self._optimizers.close()
        super().close()


TornasoleHook = make_tornasole_hook(Hook)
