"""The hook for XGBoost: a callback that saves what is due after each boosting round.

===========================================  ======================================================================
tensor                                       value
===========================================  ======================================================================
``<data>-<metric>``, ``train-rmse``          evaluation metric of the round; with ``xgboost.cv`` the mean of the folds
``hyperparameters/<key>``                    what was given as ``hyperparameters``; texts are allowed
``predictions``, ``labels``                  of ``validation_data``
``feature_importance/<type>/<feature>``      score divided by the total of its type: ``weight``, ``gain``, ``cover``,
                                             ``total_gain``, ``total_cover``
``average_shap/<feature>``                   sum of the contributions' magnitudes over the rows of ``train_data``
``full_shap/<feature>``                      the matrix (rows, features + 1) of contributions, under each name
``trees/<column>``                           the trees of this round, a column each
===========================================  ======================================================================

A step is a boosting round and has its number. Of a model that training is continued with, rounds count on; a second
training with the same hook is numbered on, too.
"""

from __future__ import annotations

import logging
from types import SimpleNamespace
from typing import Any, Callable, Dict, FrozenSet, Iterator, List, Optional, Tuple

import numpy
import xgboost
from xgboost import DMatrix

from tornasole.core.collection import CollectionKeys
from tornasole.core.guard import guarded, let_through
from tornasole.core.hook import BaseHook
from tornasole.core.older_names import make_tornasole_hook
from tornasole.exceptions import SMDebugError
from tornasole.xgboost.boost_workers import rank_and_size
from tornasole.xgboost.booster_values import (
    BIAS,
    IMPORTANCE_TYPES,
    TREE_BOOSTERS,
    TREE_COLUMNS,
    average_contributions,
    booster_kind,
    feature_names_of,
    importances,
    rounds_of,
    tree_table,
)
from tornasole.xgboost.data_files import load_data
from tornasole.xgboost.evaluation_sets import roles_of_evaluation_sets

_TrainingCallback: type = getattr(xgboost.callback, "TrainingCallback", object)  # XGBoost has it from 1.3 on
_WRITE_WAIT_S = 1.0


class Hook(BaseHook, _TrainingCallback):
    """Captures a training with XGBoost into a trial, as one of its callbacks.

    >>> hook = Hook(out_dir="runs/boost", include_collections=["feature_importance"])   # doctest: +SKIP
    >>> xgboost.train(params, dtrain, evals=[(dtrain, "train")], callbacks=[hook])      # doctest: +SKIP
    >>> xgboost.XGBClassifier(callbacks=[hook]).fit(X, y, eval_set=[(X, y)])            # doctest: +SKIP

    The arguments are those of every hook, and three more. ``hyperparameters`` is a dict, saved in the collection of
    that name. ``train_data`` is what SHAP values are computed of, ``validation_data`` what predictions and labels are
    taken from: each a ``DMatrix``, or ``(path, content type)`` of a local file, ``csv`` with the label in the first
    column or ``libsvm``. All three can be set on the hook later. ``reduction_config`` is not used: values are saved
    whole. Every 10th round is saved unless ``save_config`` says otherwise.

    A rule that asks the training to stop ends it after the round. No failure of capture reaches the training.
    """

    _framework = "xgboost"
    _framework_version = xgboost.__version__

    # What a copy has, which captures nothing.
    hyperparameters: Optional[Dict[str, Any]] = None
    _train_data: Optional[DMatrix] = None
    _validation_data: Optional[DMatrix] = None
    _roles: Optional[Dict[str, str]] = None  # of the evaluation sets, until they are told
    _first_round: Optional[int] = 0  # None: what the model says after its next round
    _last_round = -1

    @guarded(even_when_off=True)  # a new hook ends a shut-down
    def __init__(
        self,
        out_dir=None,
        export_tensorboard=False,
        tensorboard_dir=None,
        dry_run=False,
        reduction_config=None,
        save_config=None,
        include_regex=None,
        include_collections=None,
        save_all=False,
        include_workers="one",
        hyperparameters=None,
        train_data=None,
        validation_data=None,
        **options,
    ) -> None:
        try:
            data = load_data("train_data", train_data), load_data("validation_data", validation_data)
        except SMDebugError as error:
            raise let_through(error)
        super().__init__(
            out_dir,
            export_tensorboard,
            tensorboard_dir,
            dry_run,
            None,
            save_config,
            include_regex,
            include_collections,
            save_all,
            include_workers,
            **options,
        )
        if reduction_config is not None:
            self.logger.warning("reduction_config is ignored: values of XGBoost are saved whole")
        self.hyperparameters = hyperparameters
        self._train_data, self._validation_data = data
        self._groups_by_due_set: Dict[int, FrozenSet[str]] = {}
        self._told: set = set()
        self._contributions: Optional[numpy.ndarray] = None
        self._booster_kind: Optional[str] = None

    # ---- what users set

    @property
    def train_data(self) -> Optional[DMatrix]:
        """What SHAP values are computed of; a ``DMatrix`` or ``(path, content type)`` can be assigned."""
        return self._train_data

    @train_data.setter
    def train_data(self, data: Any) -> None:
        self._train_data = load_data("train_data", data)

    @property
    def validation_data(self) -> Optional[DMatrix]:
        """What predictions and labels are taken from; a ``DMatrix`` or ``(path, content type)`` can be assigned."""
        return self._validation_data

    @validation_data.setter
    def validation_data(self, data: Any) -> None:
        self._validation_data = load_data("validation_data", data)

    # ---- called by XGBoost

    @guarded(neutral=lambda self, model: model)
    def before_training(self, model):
        """A training begins: its rounds follow those that the model, or this hook, has already."""
        if self._engine_hook is not None:
            # A model that is asked before its first round warns of its parameters there and then.
            self._first_round = self._last_round + 1 if self._last_round >= 0 else None
            self._booster_kind = None
            self._roles = roles_of_evaluation_sets()
            self._groups_by_due_set.clear()  # other data has other names
        return model

    @guarded(neutral=False)
    def after_iteration(self, model, epoch: int, evals_log) -> bool:
        """A round is done. True, which ends the training, only if somebody asked it to stop."""
        if self._first_round is None:
            self._first_round = max(0, rounds_of(model) - epoch - 1)
        step = self._first_round + epoch
        if type(self).__call__ is not Hook.__call__:
            return self._call_replaced(model, step, _last_scores(evals_log))
        return self._after_round(model, step, lambda: _last_scores(evals_log))

    @guarded(neutral=lambda self, model: model)
    def after_training(self, model):
        """The training is done: what it saved can be read when this returns, unless the disk is slow."""
        self._wait_until_written(_WRITE_WAIT_S)
        return model

    @guarded()
    def __call__(self, env) -> None:
        """A round is done, for the callbacks of XGBoost before 1.3."""
        scores = [(result[0], result[1:]) for result in env.evaluation_result_list or ()]
        if self._after_round(env.model, env.iteration, lambda: scores):
            stop = getattr(xgboost.core, "EarlyStopException", None)
            if stop is not None:
                raise let_through(stop(env.iteration))  # XGBoost's own way to end a training

    def _call_replaced(self, model, step: int, scores: List[Tuple[str, tuple]]) -> bool:
        """Calls what a subclass has in place of :meth:`__call__`, as XGBoost before 1.3 does; its errors are its own."""
        environment = SimpleNamespace(
            model=model,
            cvfolds=getattr(model, "cvfolds", None),
            iteration=step,
            begin_iteration=self._first_round,
            end_iteration=None,
            rank=rank_and_size()[0],
            evaluation_result_list=[(name, *values) for name, values in scores],
        )
        try:
            self(environment)
        except Exception as error:
            raise let_through(error)
        return self.stop_requested

    # ---- a round

    def _after_round(self, model, step: int, scores: Callable[[], List[Tuple[str, tuple]]]) -> bool:
        self._last_round = step
        if not self._begin_step_at(step):
            return self.stop_requested
        if self._roles is not None:
            # Not before something is saved: only then the process knows which worker it is.
            self._engine_hook.describe_model({"data": self._roles, "versions": {"xgboost": xgboost.__version__}})
            self._roles = None
        try:
            groups = self._groups(model, scores)
            for name in _GROUPS:
                is_done = name == CollectionKeys.LOSSES and CollectionKeys.METRICS in groups  # losses are metrics
                if name in groups and not is_done:
                    try:
                        _GROUPS[name](self, model, step, scores)
                    except Exception as error:
                        self._note_failure(f"the collection {name}", error)
        finally:
            self._contributions = None
            self._end_step()
        return self.stop_requested

    def _groups(self, model, scores) -> FrozenSet[str]:
        """What has to be computed in this round: the groups of which a name is wanted by a collection that is due."""
        due_set = self._engine_hook.due_set()
        known = self._groups_by_due_set.get(due_set)
        if known is None:
            due = set(self._engine_hook.due_collections())
            wants = self._engine_hook.wants
            known = frozenset(
                group for group in _GROUPS if group in due or any(map(wants, self._names(group, model, scores)))
            )
            self._groups_by_due_set[due_set] = known
        return known

    def _names(self, group: str, model, scores) -> Iterator[str]:
        """The names there can be in a group, for collections that are not the group's own."""
        if group in (CollectionKeys.METRICS, CollectionKeys.LOSSES):
            yield from (name for name, _ in scores())
        elif group == CollectionKeys.HYPERPARAMETERS:
            yield from (f"hyperparameters/{key}" for key in self.hyperparameters or ())
        elif group == CollectionKeys.TREES:
            yield from (f"trees/{column}" for column in TREE_COLUMNS)
        elif group in (CollectionKeys.PREDICTIONS, CollectionKeys.LABELS):
            yield group
        elif _is_booster(model):
            features = feature_names_of(model)
            has_types = group == CollectionKeys.FEATURE_IMPORTANCE
            starts = [f"{group}/{kind}/" for kind in IMPORTANCE_TYPES] if has_types else [f"{group}/"]
            yield from (start + feature for start in starts for feature in features)

    def _save(self, name: str, value: Any) -> None:
        """One value in the open step; what cannot be saved is told once, by name."""
        try:
            array = numpy.asarray(value)
            if array.dtype == object:
                array = array.astype(str)
            self._engine_hook.save_any(name, array.reshape(1) if array.ndim == 0 else array)
        except Exception as error:
            self._note_failure(f"'{name}'", error)

    def _tell_once(self, message: str, *arguments) -> None:
        text = message % arguments
        if text not in self._told:
            self._told.add(text)
            is_asked_for = self._options.get("warn_unmatched", True)
            self.logger.log(logging.WARNING if is_asked_for else logging.INFO, "%s", text)

    # ---- the groups; subclasses may replace them

    def write_hyperparameters(self) -> None:
        """Saves each of ``hyperparameters``."""
        if not self.hyperparameters:
            self._tell_once("hyperparameters are to be saved, and the hook was given none: set hook.hyperparameters")
        for key, value in (self.hyperparameters or {}).items():
            self._save(f"hyperparameters/{key}", "None" if value is None else value)

    def write_metrics(self, evals_log) -> None:
        """Saves the last value of each evaluation metric."""
        for name, score in _last_scores(evals_log) if isinstance(evals_log, dict) else evals_log:
            self._save(name, score[0])
            if len(score) > 1:
                self._save(f"std/{name}", score[1])

    def write_losses(self, evals_log) -> None:
        """Saves the last value of the metrics that should fall; done by :meth:`write_metrics` if that is due, too."""
        if CollectionKeys.METRICS not in self._engine_hook.due_collections():
            self.write_metrics(evals_log)

    def write_predictions(self, model) -> None:
        """Saves what the model predicts for ``validation_data``."""
        if self._has_data_for(model, "predictions", "validation_data"):
            self._save("predictions", model.predict(self._validation_data))

    def write_labels(self) -> None:
        """Saves the labels of ``validation_data``."""
        if self._has_data("labels", "validation_data"):
            self._save("labels", self._validation_data.get_label())

    def write_feature_importances(self, model) -> None:
        """Saves the five kinds of importance of each feature that is used."""
        if self._has_trees(model, "feature_importance"):
            for name, share in importances(model):
                self._save(f"feature_importance/{name}", share)

    def write_full_shap(self, model) -> None:
        """Saves the matrix of contributions to the predictions for ``train_data``, under each feature's name."""
        matrix = self._shap(model, "full_shap")
        if matrix is not None:
            for feature in (*feature_names_of(model), BIAS):
                self._save(f"full_shap/{feature}", matrix)

    def write_average_shap(self, model) -> None:
        """Saves each feature's contribution: the sum of magnitudes over the rows of ``train_data``."""
        matrix = self._shap(model, "average_shap")
        if matrix is not None:
            for feature, magnitude in zip((*feature_names_of(model), BIAS), average_contributions(matrix)):
                self._save(f"average_shap/{feature}", magnitude)

    def write_tree_model(self, model, epoch: int) -> None:
        """Saves the trees of the last round."""
        if not self._has_trees(model, "trees"):
            return
        try:
            table = tree_table(model, rounds_of(model) - 1)
        except xgboost.core.XGBoostError:
            self._tell_once("trees cannot be saved: XGBoost refuses them, as those of several targets or in an update")
            return
        for column, values in table.items():
            self._save(f"trees/{column}", values)

    def _shap(self, model, group: str) -> Optional[numpy.ndarray]:
        """Contributions of each feature to each prediction; computed once in a round, whoever asks."""
        if not self._has_data_for(model, group, "train_data"):
            return None
        if self._contributions is None:
            self._contributions = model.predict(self._train_data, pred_contribs=True)
        return self._contributions

    def _has_data(self, group: str, data: str) -> bool:
        if getattr(self, data) is None:
            self._tell_once("%s are to be saved, and the hook was given no %s: set hook.%s", group, data, data)
        return getattr(self, data) is not None

    def _has_data_for(self, model, group: str, data: str) -> bool:
        """Whether there is data that the model can be asked about."""
        if not self._has_data(group, data) or not self._has_one_model(model, group):
            return False
        columns, features = getattr(self, data).num_col(), model.num_features()
        if columns > features:  # XGBoost does not look, and writes beyond its arrays
            text = "%s cannot be saved: %s has %d columns, the model %d features"
            self._tell_once(text, group, data, columns, features)
        return columns <= features

    def _has_one_model(self, model, group: str) -> bool:
        if not _is_booster(model):
            self._tell_once("%s cannot be saved: there is no one model, as xgboost.cv has one of each fold", group)
        return _is_booster(model)

    def _has_trees(self, model, group: str) -> bool:
        if not self._has_one_model(model, group):
            return False
        if self._booster_kind is None:
            self._booster_kind = booster_kind(model)
        if self._booster_kind not in TREE_BOOSTERS:
            self._tell_once("%s cannot be saved: the booster %s has no trees", group, self._booster_kind)
        return self._booster_kind in TREE_BOOSTERS

    # ---- asked by the base

    def _get_worker_rank(self) -> Tuple[int, int]:
        return rank_and_size()


# What is computed in a round, in this order.
_GROUPS: Dict[str, Callable] = {
    CollectionKeys.HYPERPARAMETERS: lambda hook, model, step, scores: hook.write_hyperparameters(),
    CollectionKeys.METRICS: lambda hook, model, step, scores: hook.write_metrics(scores()),
    CollectionKeys.LOSSES: lambda hook, model, step, scores: hook.write_losses(scores()),
    CollectionKeys.PREDICTIONS: lambda hook, model, step, scores: hook.write_predictions(model),
    CollectionKeys.LABELS: lambda hook, model, step, scores: hook.write_labels(),
    CollectionKeys.FEATURE_IMPORTANCE: lambda hook, model, step, scores: hook.write_feature_importances(model),
    CollectionKeys.TREES: lambda hook, model, step, scores: hook.write_tree_model(model, step),
    CollectionKeys.FULL_SHAP: lambda hook, model, step, scores: hook.write_full_shap(model),
    CollectionKeys.AVERAGE_SHAP: lambda hook, model, step, scores: hook.write_average_shap(model),
}


def _is_booster(model) -> bool:
    return isinstance(model, xgboost.Booster)


def _last_scores(evals_log) -> List[Tuple[str, tuple]]:
    """(name, (value,)) of each metric in the last round; (name, (mean, standard deviation)) with several folds."""
    last = [(f"{data}-{metric}", values[-1]) for data, log in evals_log.items() for metric, values in log.items()]
    return [(name, value if isinstance(value, tuple) else (value,)) for name, value in last]


TornasoleHook = make_tornasole_hook(Hook)
