"""Ready-made configurations for ``tornasole run``, of Keras."""

import math
import time
from typing import Any, Dict, Optional

from tornasole import ReductionConfig, SaveConfig, SaveConfigMode, stats
from tornasole.modes import ModeKeys
from tornasole.run.cost_budget import CostBudget, training_schedule
from tornasole.tensorflow.tf_values import as_array

BUDGET_SHARE = 0.03
_NEVER = 10**15  # as an interval: the collection's steps are chosen while the training runs
_STATISTICS = {"reductions": ["min", "max", "mean", "std"], "abs_reductions": ["mean"], "norms": ["l2"]}
# What the preset ``standard`` keeps statistics of, at the steps the budget allows.
_BUDGETED = ("weights", "biases", "gradients", "layers", "inputs", "outputs")
# So that rules need no whole tensors.
_DERIVED = ("counts", "unit_activity", "across_samples", "update", "cosine_previous", "quantiles", "classes")
_NON_FINITE = "non_finite"
_LOOK_SHARE = 0.005  # of the time, for looks at whole weights


def make_preset_hook(hook_class, name: str, out_dir: Optional[str]):
    """A hook configured by a preset."""
    hook = hook_class(out_dir=out_dir, warn_unmatched=False, **_options(name))
    hook._is_of_preset = True
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
    return {"save_config": SaveConfig(save_interval=100, save_steps=list(range(10))), "save_all": True}


class StandardPreset:
    """The preset ``standard`` while it runs: chooses the steps of statistics, and looks out for NaN and infinity.

    The first loss that is not finite, or weight at the end of an epoch, is an event: the weights are written whole at
    that step, and everything is at the next two. A loss need not show it: rectifiers may make zeros of NaN.
    """

    def __init__(self, hook):
        self._hook = hook
        self._budget = CostBudget(BUDGET_SHARE)
        self._event_step: Optional[int] = None
        self._next_look = 0.0  # at the weights
        statistics = ReductionConfig(**_STATISTICS)
        for name in _BUDGETED:
            hook.get_collection(name).reduction_config = statistics
        self._schedule()
        watched = hook.get_collection(_NON_FINITE)
        watched.add_tensor_name(_NON_FINITE)  # nothing is called so: it is empty until the event
        watched.reduction_config = ReductionConfig(save_raw_tensor=True)
        watched.save_config = SaveConfig(save_interval=_NEVER, start_step=1)

    def before_step(self, mode: ModeKeys) -> None:
        """A step is about to begin."""
        if mode is not ModeKeys.TRAIN:
            self._budget.pause()
        elif self._budget.begin(self._hook._engine_hook.mode_step(ModeKeys.TRAIN.value) + 1, time.perf_counter()):
            self._schedule()

    def _schedule(self) -> None:
        schedule = training_schedule(self._budget.chosen())
        for name in _BUDGETED:
            self._hook.get_collection(name).save_config = schedule

    def loss(self, value) -> None:
        """The value of the loss in this step."""
        array = as_array(value)
        if self._event_step is None and array is not None and array.size == 1:
            number = float(array.item())
            if not math.isfinite(number):
                self._event(f"the loss is {number}")

    def epoch_ends(self) -> None:
        """The last step of an epoch is over and still open."""
        began = time.perf_counter()
        if self._event_step is not None or began < self._next_look:
            return
        for name, variable in self._hook._model_weights().items():
            array = as_array(variable)
            found = {} if array is None else stats(array)
            if found.get("nan") or found.get("inf"):
                self._event(f"the weight '{name}' is not finite")
                return
        now = time.perf_counter()
        self._next_look = now + (now - began) / _LOOK_SHARE

    def _event(self, what: str) -> None:
        hook = self._hook
        self._event_step = hook.step
        hook.logger.warning("%s at step %d: everything is saved for two steps", what, hook.step)
        for name, variable in hook._model_weights().items():
            hook._engine_hook.save_tensor(name, as_array(variable), [_NON_FINITE])
        watched = hook.get_collection(_NON_FINITE)
        watched.include(".*")
        end = hook._engine_hook.mode_step(hook.mode.value) + 3
        watched.save_config = SaveConfig(
            {mode: SaveConfigMode(save_interval=1, end_step=end if mode is hook.mode else 0) for mode in ModeKeys}
        )
