"""Collections: named groups of tensors that are saved on a schedule and in a form of their own."""

from __future__ import annotations

import copy
from typing import TYPE_CHECKING, Any

from tornasole import _engine
from tornasole.core.edits import edits
from tornasole.core.json_text import JsonText
from tornasole.core.query_arguments import is_spellable
from tornasole.core.reduction_config import ReductionConfig
from tornasole.core.save_config import SaveConfig
from tornasole.exceptions import SMDebugTypeError, SMDebugValueError

if TYPE_CHECKING:
    from typing_extensions import Self

    from tornasole.core.hook import BaseHook

ALLOWED_PARAMS = ["name", "include_regex", "reduction_config", "save_config", "tensor_names", "save_histogram"]


class CollectionKeys:
    """The names of the built-in collections."""

    DEFAULT = "default"
    ALL = "all"
    INPUTS = "inputs"
    OUTPUTS = "outputs"
    WEIGHTS = "weights"
    GRADIENTS = "gradients"
    LOSSES = "losses"
    BIASES = "biases"
    BIAS = "bias"  # an older name of biases
    LAYERS = "layers"
    SM_METRICS = "sm_metrics"
    SEARCHABLE_SCALARS = "searchable_scalars"  # an older name of sm_metrics
    SCALARS = "scalars"
    METRICS = "metrics"
    OPTIMIZER_VARIABLES = "optimizer_variables"
    OPTIMIZER_GRADIENTS = "optimizer_gradients"
    DERIVED = "derived"
    TENSORFLOW_SUMMARIES = "tensorflow_summaries"
    HYPERPARAMETERS = "hyperparameters"
    PREDICTIONS = "predictions"
    LABELS = "labels"
    FEATURE_IMPORTANCE = "feature_importance"
    AVERAGE_SHAP = "average_shap"
    FULL_SHAP = "full_shap"
    TREES = "trees"


# The collections that a hook of a framework begins with, and those whose tensors are numbers, as scripts ask for them.
DEFAULT_PYTORCH_COLLECTIONS = {"all", "default", "weights", "biases", "gradients", "losses"}
DEFAULT_MXNET_COLLECTIONS = set(DEFAULT_PYTORCH_COLLECTIONS)
DEFAULT_TF_COLLECTIONS = {
    *DEFAULT_PYTORCH_COLLECTIONS,
    *("inputs", "outputs", "layers", "metrics", "sm_metrics", "optimizer_variables"),
}
DEFAULT_XGBOOST_COLLECTIONS = {
    *("all", "default", "hyperparameters", "predictions", "labels", "feature_importance"),
    *("average_shap", "full_shap", "trees"),
}
SM_METRIC_COLLECTIONS = {"losses", "metrics", "sm_metrics"}
SCALAR_COLLECTIONS = {*SM_METRIC_COLLECTIONS, "feature_importance", "average_shap"}
SUMMARIES_COLLECTIONS = {"tensorflow_summaries"}
NON_REDUCTION_COLLECTIONS = SCALAR_COLLECTIONS | SUMMARIES_COLLECTIONS
NON_HISTOGRAM_COLLECTIONS = SCALAR_COLLECTIONS | SUMMARIES_COLLECTIONS


def _flat_texts(what: str, given: object) -> list[str]:
    """The texts of a text or of nested lists of texts."""
    if isinstance(given, str):
        if not is_spellable(given):
            raise SMDebugValueError(f"{what}: {given!r} is not allowed; allowed: a text that UTF-8 can spell")
        return [given]
    if isinstance(given, (list, tuple, set)):
        return [text for item in given for text in _flat_texts(what, item)]
    raise SMDebugTypeError(f"{what}: {given!r} is not allowed; allowed: a text or a list of texts")


def _checked_name(given: object) -> str:
    """The name of a tensor, one of them."""
    if not isinstance(given, str):
        raise SMDebugTypeError(f"a tensor's name: {given!r} is not allowed; allowed: a text")
    return _flat_texts("a tensor's name", given)[0]


def _checked_patterns(what: str, given: object) -> list[str]:
    patterns = [] if given is None else _flat_texts(what, given)
    for pattern in patterns:
        _engine.finds_match(pattern, "")  # a bad pattern is an error now, not at the first tensor
    return patterns


class Collection(JsonText):
    """A named group of tensors.

    A tensor belongs to it if a pattern of ``include_regex`` finds a match anywhere in its name and none of
    ``exclude_regex`` does, or if its name is one of ``tensor_names``. ``save_config`` and ``reduction_config`` say when
    and in what form its tensors are saved; without them the hook's apply.

    A change takes effect at the next step.
    """

    def __init__(
        self,
        name,
        include_regex=None,
        tensor_names=None,
        reduction_config=None,
        save_config=None,
        save_histogram=True,
    ) -> None:
        if not isinstance(name, str) or not name:
            raise SMDebugTypeError(f"the name of a collection: {name!r} is not allowed; allowed: a text")
        self.name = name
        self._hook: BaseHook | None = None
        self._matched: set[str] = set()  # those of _tensor_names that the engine found by a pattern
        self._exclude_regex: list[str] = []
        self.include_regex = include_regex
        self.tensor_names = tensor_names
        self.reduction_config = reduction_config
        self.save_config = save_config
        self.save_histogram = save_histogram

    # ---- what belongs to it

    @property
    def include_regex(self) -> list[str]:
        """The patterns, in the syntax of Python's re; a match anywhere in a name counts."""
        edits.note()  # the caller may change the list
        return self._include_regex

    @include_regex.setter
    def include_regex(self, patterns) -> None:
        self._include_regex = _checked_patterns("include_regex", patterns)
        edits.note()

    @property
    def exclude_regex(self) -> list[str]:
        """Patterns of names that are left out, unless they are in ``tensor_names``."""
        edits.note()
        return self._exclude_regex

    @exclude_regex.setter
    def exclude_regex(self, patterns) -> None:
        self._exclude_regex = _checked_patterns("exclude_regex", patterns)
        edits.note()

    def include(self, t) -> None:
        """Adds a pattern, or a list of them."""
        if not isinstance(t, (str, list, tuple)):
            raise SMDebugTypeError(f"include: {t!r} is not allowed; allowed: a pattern or a list of patterns")
        self._include_regex += _checked_patterns("include", t)
        edits.note()

    def exclude(self, regex) -> None:
        """Adds a pattern, or a list of them, of names to be left out."""
        self._exclude_regex += _checked_patterns("exclude", regex)
        edits.note()

    @property
    def tensor_names(self) -> set[str]:
        """The names that belong to it: those given, and those its patterns have matched."""
        if self._hook is not None:
            matched = set(self._hook._matched_names(self.name)) - self._tensor_names
            self._matched |= matched
            self._tensor_names |= matched
        edits.note()
        return self._tensor_names

    @tensor_names.setter
    def tensor_names(self, names) -> None:
        if names is not None and not isinstance(names, (list, set)):
            raise SMDebugTypeError(f"tensor_names: {names!r} is not allowed; allowed: a list or set of texts")
        self._tensor_names = set(_flat_texts("tensor_names", names or []))
        self._matched = set()
        edits.note()

    def add(self, arg) -> None:
        """Adds a tensor's name, a framework's parameter object, or a list, tuple or set of these."""
        if isinstance(arg, (list, tuple, set)):
            for item in arg:
                self.add(item)
        else:
            self.add_tensor_name(arg if isinstance(arg, str) else self._name_of(arg))

    def _name_of(self, arg: object) -> str:
        """The name under which the hook saves an object of its framework."""
        name = self._hook._tensor_name_of(arg) if self._hook is not None else None
        if name is None:
            raise SMDebugTypeError(
                f"{arg!r:.200} cannot be added to a collection; allowed: a tensor's name, a parameter of a model that "
                "is registered, or a list of these"
            )
        return name

    def add_tensor_name(self, tname: str) -> None:
        """Adds a name."""
        self._tensor_names.add(_checked_name(tname))
        self._matched.discard(tname)
        edits.note()

    def remove_tensor_name(self, tname: str) -> None:
        """Takes a name out, if it is there. A pattern that matches it will put it back."""
        self.tensor_names.discard(_checked_name(tname))
        self._matched.discard(tname)

    def has_tensor_name(self, tname: str) -> bool:
        """Whether the name belongs to it so far."""
        return _checked_name(tname) in self.tensor_names

    def get_tensor_names(self) -> set[str]:
        """The older spelling of :attr:`tensor_names`."""
        return self.tensor_names

    # ---- when and in what form it is saved

    @property
    def save_config(self) -> SaveConfig | None:
        """When its tensors are saved. On a collection of a hook that has none, a copy of the hook's, now its own."""
        if self._save_config is None and self._hook is not None:
            self._save_config = copy.deepcopy(self._hook.save_config)
        return self._save_config

    @save_config.setter
    def save_config(self, save_config) -> None:
        if isinstance(save_config, dict):
            save_config = SaveConfig(mode_save_configs=save_config)
        if save_config is not None and not isinstance(save_config, SaveConfig):
            raise SMDebugTypeError(
                f"save_config: {save_config!r} is not allowed; allowed: a SaveConfig, or a dict from a mode to a "
                "SaveConfigMode"
            )
        self._save_config = save_config
        edits.note()

    def set_save_config(self, save_config) -> None:
        """The older spelling of setting :attr:`save_config`."""
        self.save_config = save_config

    @property
    def reduction_config(self) -> ReductionConfig | None:
        """In what form its tensors are saved; None: as the hook says."""
        return self._reduction_config

    @reduction_config.setter
    def reduction_config(self, reduction_config) -> None:
        if reduction_config is not None and not isinstance(reduction_config, ReductionConfig):
            raise SMDebugTypeError(f"reduction_config: {reduction_config!r} is not allowed; allowed: a ReductionConfig")
        self._reduction_config = reduction_config
        edits.note()

    def set_reduction_config(self, reduction_config) -> None:
        """The older spelling of setting :attr:`reduction_config`."""
        self.reduction_config = reduction_config

    @property
    def save_histogram(self) -> bool:
        """Whether TensorBoard gets histograms of its tensors."""
        return self._save_histogram

    @save_histogram.setter
    def save_histogram(self, on) -> None:
        if not isinstance(on, bool):
            raise SMDebugValueError(f"save_histogram: {on!r} is not allowed; allowed: True or False")
        self._save_histogram = on
        edits.note()

    # ---- as data

    def _plain(self) -> tuple:
        """As the engine takes it: the names given, without those that patterns found."""
        names = self._tensor_names - self._matched
        reductions = None if self._reduction_config is None else self._reduction_config._key()
        schedules = None if self._save_config is None else self._save_config._plain()
        patterns = (list(self._include_regex), list(self._exclude_regex))
        return (self.name, *patterns, sorted(names), reductions, schedules or None, self._save_histogram)

    def _adopt(self, plain: tuple) -> None:
        """Takes over what the engine has, without counting as a change."""
        _, include, exclude, names, reductions, schedules, self._save_histogram = plain
        self._include_regex, self._exclude_regex = list(include), list(exclude)  # plain says what the engine knows
        self._tensor_names = set(names)
        self._matched = set()
        if reductions is None:
            self._reduction_config = None
        elif self._reduction_config is None or self._reduction_config != ReductionConfig(*reductions):
            self._reduction_config = ReductionConfig(*reductions)
        if not schedules:
            self._save_config = None
        elif self._save_config is None:
            self._save_config = SaveConfig._from_plain(schedules)
        else:
            self._save_config.merge_default_save_config(SaveConfig._from_plain(schedules))

    @classmethod
    def _from_plain(cls, plain: tuple):
        collection = cls(plain[0])
        collection._adopt(plain)
        return collection

    def to_json_dict(self) -> dict[str, Any]:
        """The fields by name; ``exclude_regex`` only if there are any."""
        fields = {
            "name": self.name,
            "include_regex": self._include_regex,
            "tensor_names": sorted(self.tensor_names),
            "reduction_config": self._reduction_config.to_json_dict() if self._reduction_config else None,
            "save_config": self._save_config.to_json_dict() if self._save_config else None,
            "save_histogram": self._save_histogram,
        }
        if self._exclude_regex:
            fields["exclude_regex"] = self._exclude_regex
        return fields

    @classmethod
    def from_dict(cls, params: dict[str, Any]) -> Self:
        """From the fields by name; keys that are not known are left alone."""
        if not isinstance(params, dict):
            raise SMDebugValueError(f"{params!r} is not allowed; allowed: a dict")
        collection = cls(
            name=params.get("name"),
            include_regex=params.get("include_regex") or [],
            tensor_names=list(params.get("tensor_names") or []),
            reduction_config=ReductionConfig.from_dict(params.get("reduction_config")),
            save_config=SaveConfig.from_dict(params.get("save_config")),
            save_histogram=params.get("save_histogram", True),
        )
        collection.exclude_regex = params.get("exclude_regex") or []
        return collection

    def export(self) -> str:
        """The older spelling of :meth:`to_json`."""
        return self.to_json()

    @classmethod
    def load(cls, s: str) -> Self:
        """The older spelling of :meth:`from_json`."""
        return cls.from_json(s)

    def __eq__(self, other: object) -> bool:
        if not isinstance(other, Collection):
            return NotImplemented
        same = self.tensor_names == other.tensor_names
        return same and self._plain()[1:3] == other._plain()[1:3] and self.name == other.name and (
            self._reduction_config == other._reduction_config
            and self._save_config == other._save_config
            and self._save_histogram == other._save_histogram
        )

    def __hash__(self) -> int:
        return hash(self.name)

    def __str__(self) -> str:
        return str(self.to_json_dict())

    def __repr__(self) -> str:
        return f"<Collection {self.name!r}>"

    def __getstate__(self) -> dict:
        return {**self.__dict__, "_hook": None}
