"""Ready-made configurations for ``tornasole run``, of PyTorch."""

import math
import re
import time
from typing import Any, Dict, Optional

import torch
from torch.nn.parameter import is_lazy

from tornasole import ReductionConfig, SaveConfig, SaveConfigMode
from tornasole.modes import ModeKeys
from tornasole.pytorch.host_tensors import to_host
from tornasole.run.broken_loss import LABELLED, broken_data
from tornasole.run.cost_budget import CostBudget, training_schedule

# The share of the training's time that the preset aims at in all, and the seconds it takes at each step. Promised are
# 3 %: the rest is for what it cannot see of its cost, such as the writer's work beside the training.
BUDGET_SHARE = 0.025
_EACH_STEP_SECONDS = 120e-6
_STATISTICS = {"reductions": ["min", "max", "mean", "std"], "abs_reductions": ["mean"], "norms": ["l2"]}
# What the preset ``standard`` keeps statistics of, at the steps the budget allows.
_BUDGETED = ("weights", "biases", "gradients", "optimizer_gradients", "activations")
# So that rules need no whole tensors.
_DERIVED = ("counts", "unit_activity", "across_samples", "update", "cosine_previous", "quantiles", "classes")
# Of these nobody asks: of gradients how they turn, of weights how far they go, quantiles of what the model is given.
_UNASKED = (
    r"^derived/(update|unit_activity|across_samples|quantiles)/(optimizer_)?gradient/",
    r"^derived/(cosine_previous|unit_activity)/(?!(optimizer_)?gradient/)(?!.*_(input|output)_\d+$)",
    r"^derived/quantiles/(?!.*_input_\d+$)",
)
# Predictions and labels, as losses are given them.
_LOSS_INPUTS = r"([Ll]oss|cross_entropy|with_logits|kl_div)_input_[01]$"
# Of a model whose class is called a loss, all that has "output" in its name would be one.
_NO_LOSS = r"^(?!.*_output_\d+$)"
_NON_FINITE = "non_finite"
_GRADIENTS = ("gradient/", "optimizer_gradient/")
_PATIENCE = 5000  # calls without gradients after which a program is taken for one that trains without any


def make_preset_hook(hook_class, name: str, out_dir: Optional[str]):
    """A hook configured by a preset."""
    options = {**_options(name), "stable_names": True, "capture_functional": name != "light", "warn_unmatched": False}
    hook = hook_class(out_dir=out_dir, **options)
    hook.get_collection("losses").exclude(_NO_LOSS)
    hook._is_asked_for_rates = True
    if name == "standard":
        hook._watcher = StandardPreset(hook)
    return hook


def _options(name: str) -> Dict[str, Any]:
    if name == "light":
        return {"save_config": SaveConfig(save_interval=1)}
    if name == "standard":
        return {
            "save_config": SaveConfig(save_interval=1),
            "include_collections": [*_BUDGETED, _NON_FINITE],
            "derived": list(_DERIVED),
        }
    return {
        "save_config": SaveConfig(save_interval=100, save_steps=list(range(10))),
        "save_all": True,
        "include_collections": ["optimizer_gradients", "optimizer_variables"],
    }


class StandardPreset:
    """The preset ``standard`` while it runs: chooses the steps of statistics, and looks out for NaN and infinity.

    The first loss or statistic that is not finite is an event: what is in memory, parameters and gradients, is written
    whole at that step, and everything is at the next two. Gradients that overflow under a loss scaler are no event:
    the scaler looks for them itself, and leaves that step out.
    """

    def __init__(self, hook):
        self._hook = hook
        self._budget = CostBudget(BUDGET_SHARE, each_step=_EACH_STEP_SECONDS)
        self._event_step: Optional[int] = None
        self._has_gradients = False  # those of the event were saved
        self._optimizer_steps = 0  # made before the open step, or before the event
        self._calls_without = 0  # gradients; of a program that never had any
        self._state = hook._state  # ``before_step`` is not called for the next ``untold_steps``
        statistics = ReductionConfig(**_STATISTICS)
        activations = hook.get_collection("activations")
        activations.exclude(r"([Ll]oss|cross_entropy|nll|kl_div)[^.]*_output_\d+$")
        for name in _BUDGETED:
            hook.get_collection(name).reduction_config = statistics
        for pattern in _UNASKED:
            hook.get_collection("derived").exclude(pattern)
        self._schedule()
        watched = hook.get_collection(_NON_FINITE)
        watched.add_tensor_name(_NON_FINITE)  # nothing is called so: it is empty until the event
        watched.reduction_config = ReductionConfig(save_raw_tensor=True)
        watched.save_config = SaveConfig(save_interval=1)

    def model_registered(self, root: str) -> None:
        """The model has a name: its inputs are looked at like its activations.

        One pattern for all, since a pattern that matches nothing is told to the user, and a model may have no inputs
        that are tensors, or no loss that we know.
        """
        wanted = rf"_output_\d+$|{_LOSS_INPUTS}|^{re.escape(root)}_input_\d+$"
        self._hook.get_collection("activations").include(wanted)
        self.weights_registered()

    def weights_registered(self) -> None:
        """There are models whose weights are to be known by name."""
        # Weights of layers that users write may have any name.
        weights = self._hook.get_collection("weights")
        for capture in self._hook._live_captures():
            for name, parameter in capture.parameters():
                is_named = "weight" in name or "bias" in name
                if not is_named and not is_lazy(parameter) and parameter.dim() > 1:
                    weights.add_tensor_name(name)

    def before_step(self, mode: ModeKeys) -> None:
        """A step is about to begin. The one before is still open, and so is what is in memory of it."""
        self._look_at_statistics()
        if self._event_step is not None and not self._has_gradients:
            self._save_gradients(self._gradients_in_memory())
        self._optimizer_steps = self._hook._optimizers.steps
        self._state.untold_steps = 0
        if mode is not ModeKeys.TRAIN or not self._is_training():
            self._budget.pause()
            return
        step = self._hook._engine_hook.mode_step(ModeKeys.TRAIN.value) + 1
        # Programs that change the weights themselves do so after backward passes.
        taken = self._optimizer_steps or self._state.backward_passes
        if self._budget.begin(step, time.perf_counter(), taken):
            self._schedule()
        elif self._event_step is None:
            self._state.untold_steps = self._budget.untold_steps()

    def _is_training(self) -> bool:
        """Not where games are played or samples drawn for it: such calls have no gradients."""
        if torch.is_grad_enabled():
            self._calls_without = -math.inf
            return True
        self._calls_without += 1
        return self._calls_without > _PATIENCE

    def _schedule(self) -> None:
        schedule = training_schedule(self._budget.chosen())
        for name in _BUDGETED:
            self._hook.get_collection(name).save_config = schedule

    def loss(self, value: float) -> None:
        """The value of a loss in this step."""
        if self._event_step is None and not math.isfinite(value):
            self._state.untold_steps = 0
            self._optimizer_steps = self._hook._optimizers.steps
            self._event(f"the loss is {value}")

    def broken_loss(self, value: float, loss: torch.Tensor) -> None:
        """The value of a loss in this step is not finite: data that was not finite before is saved with it."""
        is_first = self._event_step is None
        self.loss(value)
        captures = self._hook._live_captures()
        if not is_first or not captures:
            return
        given, labels = broken_data(loss)
        if given is not None:
            self._save_whole(f"{captures[0].names.root}_input_0", given)
        if labels is not None:
            kind, values = labels
            known = {type(module).__name__: name for name, module in self._hook._live_losses()}
            known.update((name, name) for name in self._hook._loss_functions)
            for name in LABELLED[kind]:
                if name in known:
                    self._save_whole(f"{known[name]}_input_1", values)
                    break

    def before_optimizer_step(self, gradients) -> None:
        """The gradients an optimizer is about to use: (name, tensor) each."""
        if not self._has_gradients:
            self._look_at_statistics()
            self._save_gradients(gradients)

    def _look_at_statistics(self) -> None:
        if self._event_step is not None:
            return
        names = self._hook._engine_hook.non_finite_tensors()
        if names and self._hook._optimizers.scaler is not None:
            names = [name for name in names if not name.startswith(_GRADIENTS)]
        if names:
            self._event(f"a statistic of '{names[0]}' is not finite")

    def _event(self, what: str) -> None:
        hook = self._hook
        self._event_step = hook.step
        hook._optimizers.watch_gradients()
        hook.logger.warning("%s at step %d: everything is saved for two steps", what, hook.step)
        for capture in hook._live_captures():
            for name, parameter in capture.parameters():
                self._save_whole(name, parameter)
        watched = hook.get_collection(_NON_FINITE)
        watched.include(".*")
        end = hook._engine_hook.mode_step(hook.mode.value) + 3
        watched.save_config = SaveConfig(
            {mode: SaveConfigMode(save_interval=1, end_step=end if mode is hook.mode else 0) for mode in ModeKeys}
        )

    def _save_gradients(self, gradients) -> None:
        if self._event_step is None or self._event_step != self._hook.step:
            return
        self._has_gradients = True
        for name, gradient in gradients:
            self._save_whole(f"gradient/{name}", gradient)

    def _save_whole(self, name: str, tensor) -> None:
        self._hook._engine_hook.save_tensor(name, to_host(tensor), [_NON_FINITE])

    def _gradients_in_memory(self):
        """Gradients that no optimizer has used yet. Once one has, the program may have set them to zero."""
        optimizers = self._hook._optimizers
        if not optimizers.is_watching or optimizers.steps != self._optimizer_steps:
            return
        for capture in self._hook._live_captures():
            for name, parameter in capture.parameters():
                if parameter.grad is not None:
                    yield name, parameter.grad
