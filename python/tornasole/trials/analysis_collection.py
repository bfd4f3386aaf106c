"""AnalysisCollection: a collection for installations that have no hook."""

from __future__ import annotations

from tornasole.exceptions import SMDebugTypeError


class AnalysisCollection:
    """A collection of a trial: names of tensors, and patterns for more of them."""

    def __init__(self, name: str, include_regex=None, tensor_names=None, save_histogram: bool = True) -> None:
        self.name = name
        #: Patterns; a name in which one is found belongs to the collection.
        self.include_regex: list[str] = list(include_regex or [])
        #: Patterns; a name in which one is found does not belong to it, unless it is in ``tensor_names``.
        self.exclude_regex: list[str] = []
        self.tensor_names = tensor_names
        #: How the tensors were saved, as the run's files say it; None if they do not.
        self.save_config: dict | None = None
        self.reduction_config: dict | None = None
        self.save_histogram = save_histogram

    @property
    def tensor_names(self) -> set[str]:
        """The names in it."""
        return self._tensor_names

    @tensor_names.setter
    def tensor_names(self, names) -> None:
        if names is None:
            names = set()
        if not isinstance(names, (list, set)):
            raise SMDebugTypeError(f"tensor_names is {names!r}; a list or a set is wanted")
        self._tensor_names = set(names)

    def include(self, regex) -> None:
        """Adds a pattern, or a list of them."""
        _add_patterns(regex, self.include_regex)

    def exclude(self, regex) -> None:
        """Adds a pattern, or a list of them, for names that do not belong to it."""
        _add_patterns(regex, self.exclude_regex)

    def add_tensor_name(self, tname: str) -> None:
        """Adds a name."""
        self._tensor_names.add(tname)

    def remove_tensor_name(self, tname: str) -> None:
        """Takes a name out, if it is there."""
        self._tensor_names.discard(tname)

    def has_tensor_name(self, tname: str) -> bool:
        """Whether the name is in it."""
        return tname in self._tensor_names

    @classmethod
    def from_dict(cls, params: dict) -> AnalysisCollection:
        """A collection of its content as plain data."""
        names, on = set(params["tensor_names"]), params["save_histogram"]
        collection = cls(params["name"], params["include_regex"], names, on)
        collection.exclude_regex = list(params["exclude_regex"])
        collection.save_config, collection.reduction_config = params["save_config"], params["reduction_config"]
        return collection

    def to_json_dict(self) -> dict:
        """Its content as plain data, names sorted."""
        return {
            "name": self.name,
            "include_regex": self.include_regex,
            "tensor_names": sorted(self._tensor_names),
            "reduction_config": self.reduction_config,
            "save_config": self.save_config,
            "save_histogram": self.save_histogram,
        }

    def __repr__(self) -> str:
        return f"<class Collection: name={self.name}>"

    def __str__(self) -> str:
        return str(self.to_json_dict())


def _add_patterns(regex, patterns: list[str]) -> None:
    if isinstance(regex, str):
        patterns.append(regex)
    elif isinstance(regex, list):
        for one in regex:
            _add_patterns(one, patterns)
    else:
        raise SMDebugTypeError(f"a pattern is a text or a list of texts, and {regex!r} is neither")
