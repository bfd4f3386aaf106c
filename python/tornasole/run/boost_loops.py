"""Programs that boost round by round themselves, with ``Booster.update`` or ``Booster.boost``.

A round is saved when the next one of the booster begins, or another training does, or the program ends: until then it
may be evaluated. What ``eval_set`` and ``eval`` tell of it are its metrics.
"""

import atexit
import functools
import json
import threading
import weakref
from typing import Any, Callable, Dict, List

import xgboost

from tornasole.core.uncounted_frames import uncounted
from tornasole.xgboost.evaluation_sets import roles

_inside = threading.local()  # .depth: of the calls of XGBoost that boost, in this thread


def enter() -> int:
    """A call that boosts begins; how many there were before it."""
    depth = getattr(_inside, "depth", 0)
    _inside.depth = depth + 1
    return depth


def leave() -> None:
    """Ends what :func:`enter` began."""
    _inside.depth -= 1


class BoostLoop:
    """The booster that a program boosts itself; ``make_hook()`` gives the hook of another one, or None."""

    def __init__(self, make_hook: Callable[[], Any], give_up: Callable[[Exception], None]):
        self._make_hook, self._give_up = make_hook, give_up
        self._booster: Callable[[], Any] = lambda: None
        self._data: Callable[[], Any] = lambda: None  # that it is boosted with
        self._hook: Any = None
        self._rounds = 0  # so far
        self._is_open = False  # the last of them is to be saved
        self._scores: Dict[str, Dict[str, List[float]]] = {}
        self._roles: Dict[str, str] = {}

    def begin_round(self, booster: Any, data: Any) -> None:
        """A booster is about to be boosted."""
        self.save_round()
        if self._booster() is not booster:
            self._hook = self._make_hook()
            self._booster, self._rounds = weakref.ref(booster), 0
            if self._hook is not None:
                atexit.unregister(self.save_round)
                atexit.register(self.save_round)  # called before the hook, which was made first, is closed
                self._hook.before_training(booster)
        self._data = weakref.ref(data)

    def end_round(self) -> None:
        """It was."""
        self._rounds += 1
        self._is_open, self._scores, self._roles = self._hook is not None, {}, {}

    def evaluated(self, booster: Any, evals: Any, text: str) -> None:
        """What the booster scored: ``[3]``, and ``name-metric:value`` after each tab."""
        if not self._is_open or self._booster() is not booster:
            return
        self._roles.update(roles(self._data(), evals))
        for part in text.split("\t")[1:]:
            name, _, value = part.rpartition(":")
            data = next((str(known) for _, known in evals if name.startswith(f"{known}-")), None)
            if data is not None:
                self._scores.setdefault(data, {})[name[len(data) + 1 :]] = [float(value)]

    def save_round(self) -> None:
        """The last round is over."""
        if not self._is_open:
            return
        self._is_open = False
        booster = self._booster()
        if booster is None:
            return
        try:
            if self._rounds == 1:
                self._hook.hyperparameters = _settings(booster)
                self._hook._roles = self._roles
            self._hook.train_data = self._hook.validation_data = self._data()
            self._hook.after_iteration(booster, self._rounds - 1, self._scores)
        except Exception as error:
            self._give_up(error)
        finally:
            self._hook.train_data = self._hook.validation_data = None

    def forget(self) -> None:
        """Another training begins."""
        self.save_round()
        self._booster, self._hook = (lambda: None), None


def _settings(booster: Any) -> Dict[str, Any]:
    """The parameters of a booster that has been boosted, as XGBoost tells them."""
    learner = json.loads(booster.save_config())["learner"]
    boosting = learner["gradient_booster"]
    trees = boosting.get("tree_train_param")
    if trees is None:  # before XGBoost 2
        updaters = boosting.get("updater")
        trees = next((one.get("train_param") or {} for one in updaters.values()), {}) if updaters else {}
    return {**trees, "booster": learner["learner_train_param"]["booster"], "objective": learner["objective"]["name"]}


def attach(loop: BoostLoop, give_up: Callable[[Exception], None]) -> None:
    """Looks at the rounds of all boosters from now on."""
    for name in ("update", "boost"):
        setattr(xgboost.Booster, name, _round(loop, give_up, getattr(xgboost.Booster, name)))
    # ``eval`` calls it.
    xgboost.Booster.eval_set = _evaluation(loop, give_up, xgboost.Booster.eval_set)


def _round(loop: BoostLoop, give_up: Callable[[Exception], None], method: Callable) -> Callable:
    @functools.wraps(method)
    def round_of_booster(booster, dtrain, *arguments, **options):
        is_own = enter() == 0
        try:
            if is_own:
                _try(give_up, loop.begin_round, booster, dtrain)
            result = method(booster, dtrain, *arguments, **options)
            if is_own:
                _try(give_up, loop.end_round)
            return result
        finally:
            leave()

    return uncounted(round_of_booster)


def _evaluation(loop: BoostLoop, give_up: Callable[[Exception], None], method: Callable) -> Callable:
    @functools.wraps(method)
    def evaluation_of_booster(booster, evals, *arguments, **options):
        result = method(booster, evals, *arguments, **options)
        if getattr(_inside, "depth", 0) == 0:
            _try(give_up, loop.evaluated, booster, evals, result)
        return result

    return uncounted(evaluation_of_booster)


def _try(give_up: Callable[[Exception], None], function: Callable, *arguments: Any) -> None:
    try:
        function(*arguments)
    except Exception as error:
        give_up(error)
