"""Attaches a hook to a program that trains with XGBoost and has none.

``xgboost.train``, which the scikit-learn interface calls too, and ``xgboost.cv`` get one more callback. Each training has
a hook and a trial of its own, but for one that continues a model, which goes on with that before it. What XGBoost does
not tell the hook it takes from the arguments: the hyperparameters, the training data, and the last evaluation set that
is not the training data. A hook that the script builds itself is used instead, and stays as the script made it.

A booster that the program boosts round by round itself is a training, too, if there is no such hook.
"""

import functools
import inspect
import sys
from typing import Any, Callable, Dict, Optional

import xgboost
from xgboost import training

from tornasole import SaveConfig
from tornasole.core.uncounted_frames import uncounted
from tornasole.run import boost_loops
from tornasole.run.automatic_hook import end_training, make_automatic_hook, tell_nothing_is_captured

_EVERY_ROUND = SaveConfig(save_interval=1)
_NOW_AND_THEN = SaveConfig(save_interval=10)
_AT_FIRST = SaveConfig(save_interval=10**15)
_OF_FOLDS = ("losses", "metrics", "hyperparameters")  # what there is of several models at once
# Collections of a preset besides the metrics, with the rounds they are saved in.
_COLLECTIONS: Dict[str, Dict[str, SaveConfig]] = {
    "light": {"losses": _EVERY_ROUND},
    "standard": {
        "losses": _EVERY_ROUND,
        "hyperparameters": _AT_FIRST,
        **dict.fromkeys(("feature_importance", "trees", "predictions", "labels"), _NOW_AND_THEN),
    },
    "full": {"metrics": _EVERY_ROUND, "losses": _EVERY_ROUND},
}


def make_preset_hook(hook_class, name: str, out_dir: Optional[str], is_of_folds: bool = False):
    """A hook configured by a preset: metrics in every round, and besides them what the preset says."""
    schedule = SaveConfig(save_interval=100, save_steps=list(range(10))) if name == "full" else _EVERY_ROUND
    collections = {key: rounds for key, rounds in _COLLECTIONS[name].items() if not is_of_folds or key in _OF_FOLDS}
    hook = hook_class(
        out_dir=out_dir,
        save_config=schedule,
        save_all=name == "full",
        include_collections=list(collections),
        warn_unmatched=False,
    )
    for collection, rounds in collections.items():
        hook.get_collection(collection).save_config = rounds
    return hook


class Attachment:
    """The state of one attached process."""

    def __init__(self) -> None:
        self._hook: Any = None
        self._is_off = False
        self._trainings = 0  # that have a hook made for them
        self._running = 0  # at this moment: threads may train, too
        self.loop = boost_loops.BoostLoop(self._hook_of_loop, self.give_up)

    def callbacks_of(self, bound: Dict[str, Any], is_of_folds: bool) -> Optional[list]:
        """The callbacks of a training with these arguments, and the hook; None if nothing is to be changed."""
        from tornasole.core.singleton_utils import current_hook
        from tornasole.xgboost.boost_hook import Hook

        callbacks = list(bound.get("callbacks") or ())
        if self._is_off or any(isinstance(callback, Hook) for callback in callbacks):
            return None
        self.loop.forget()
        if self._hook is not None and self._hook._is_automatic and not self._running and not bound.get("xgb_model"):
            end_training(self._hook)
            self._hook = None
        if self._hook is None:
            made_by_script = current_hook()
            if made_by_script is not None and not isinstance(made_by_script, Hook):
                self._is_off = True
                return None
            self._hook = made_by_script or self._make_hook(Hook, is_of_folds)
        if self._hook._is_automatic:
            self._hand_over(bound)
        self._running += 1
        return [*callbacks, self._hook]

    def _hook_of_loop(self) -> Any:
        """The hook for a booster that the program boosts itself; None if that is the script's concern."""
        from tornasole.core.singleton_utils import current_hook
        from tornasole.xgboost.boost_hook import Hook

        if self._hook is not None and self._hook._is_automatic and not self._running:
            end_training(self._hook)
            self._hook = None
        if self._is_off or self._running or self._hook is not None or current_hook() is not None:
            return None
        self._hook = self._make_hook(Hook, is_of_folds=False)
        return self._hook

    def _make_hook(self, hook_class, is_of_folds: bool):
        self._trainings += 1
        return make_automatic_hook(
            hook_class, lambda preset, out: make_preset_hook(hook_class, preset, out, is_of_folds), self._trainings
        )

    def _hand_over(self, bound: Dict[str, Any]) -> None:
        """What XGBoost does not tell its callbacks."""
        dtrain = bound.get("dtrain")
        others = [matrix for matrix, _ in bound.get("evals") or () if matrix is not dtrain]
        rounds = {"num_boost_round": bound["num_boost_round"]} if "num_boost_round" in bound else {}
        self._hook.hyperparameters = {**dict(bound.get("params") or {}), **rounds}
        self._hook.train_data = dtrain
        self._hook.validation_data = others[-1] if others else dtrain

    def release(self) -> None:
        """The training is over: its data is the program's alone."""
        self._running -= 1
        if self._hook is not None and self._hook._is_automatic:
            self._hook.train_data = self._hook.validation_data = None

    def give_up(self, error: Exception) -> None:
        """Nothing is captured from now on, and it is said why."""
        self._is_off = True
        tell_nothing_is_captured(error, self._hook is not None or self._trainings > 1)


def _captured(attachment: Attachment, function: Callable) -> Callable:
    names = list(inspect.signature(function).parameters)

    @functools.wraps(function)
    def training_function(*arguments, **options):
        callbacks = None
        boost_loops.enter()
        try:
            bound = {**dict(zip(names, arguments)), **options}
            callbacks = attachment.callbacks_of(bound, is_of_folds=function.__name__ == "cv")
        except Exception as error:
            attachment.give_up(error)
        place = names.index("callbacks")
        if callbacks is not None and place < len(arguments):  # as older versions of XGBoost allow
            arguments = (*arguments[:place], callbacks, *arguments[place + 1 :])
        elif callbacks is not None:
            options["callbacks"] = callbacks
        try:
            return function(*arguments, **options)
        finally:
            boost_loops.leave()
            if callbacks is not None:
                attachment.release()

    return uncounted(training_function)


_attachment: Optional[Attachment] = None


def attach() -> Attachment:
    """Attaches to XGBoost, once."""
    global _attachment
    if _attachment is None:
        _attachment = Attachment()
        boost_loops.attach(_attachment.loop, _attachment.give_up)
        for name in ("train", "cv"):
            captured = _captured(_attachment, getattr(training, name))
            for module in (training, xgboost, sys.modules.get("xgboost.sklearn")):
                if hasattr(module, name):
                    setattr(module, name, captured)
    return _attachment
