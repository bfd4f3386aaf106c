"""The collections of a trial as objects that can be changed, kept in step with the engine.

The engine reads the collections files, again whenever they change, and decides which names belong to a collection. The
objects here are what users see and edit. An edit is handed to the engine before it is asked; what the files brought
since is added to the objects when they are asked for.
"""

from __future__ import annotations

import json
from typing import Any

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


class LiveCollections:
    """The collections of one trial."""

    def __init__(self, engine) -> None:
        self._engine = engine
        self._objects: dict[str, Any] = {}
        self._seen: dict[str, tuple[list, list, set]] = {}  # as the engine had them when last compared

    def all(self) -> dict[str, Any]:
        """Every collection by name."""
        fields = self._engine.collections()
        for name, one in fields.items():
            self._pull(name, one)
        return {name: self._objects[name] for name in [*fields, *(self._objects.keys() - fields.keys())]}

    def get(self, name: str) -> Any:
        """The collection of this name, created empty if there is none."""
        if not isinstance(name, str):
            raise SMDebugTypeError(f"{name!r} is not the name of a collection")
        fields = self._engine.collections().get(name)
        if fields is None:
            return self._objects.setdefault(name, AnalysisCollection(name))
        return self._pull(name, fields)

    def name_of(self, collection: Any) -> str:
        """The name of what the user means by a collection: its name, or an object with one."""
        name = collection if isinstance(collection, str) else getattr(collection, "name", None)
        if not isinstance(name, str):
            raise SMDebugTypeError(f"{collection!r} is neither a collection nor the name of one")
        return name

    def push(self, name: str) -> None:
        """Hands what the user changed to the engine."""
        if name not in self._objects:
            return
        collection = self.get(name)
        now = _content(collection)
        if now != self._seen.get(name, ([], [], set())):
            self._engine.set_collection(name, *now[:2], sorted(now[2]))
            self._seen[name] = now

    def _pull(self, name: str, fields: dict) -> Any:
        held = (fields["include_regex"], fields["exclude_regex"], set(fields["tensor_names"]))
        collection = self._objects.get(name)
        if collection is None:
            collection = AnalysisCollection(name, held[0], held[2], fields["save_histogram"])
            collection.exclude_regex = list(held[1])
            for key in ("save_config", "reduction_config"):
                setattr(collection, key, json.loads(fields[key]) if fields[key] else None)
            self._objects[name] = collection
        elif held != self._seen[name]:
            # New in the files. What the user took out stays out.
            seen = self._seen[name]
            collection.include_regex += [p for p in held[0] if p not in seen[0] and p not in collection.include_regex]
            collection.exclude_regex += [p for p in held[1] if p not in seen[1] and p not in collection.exclude_regex]
            collection.tensor_names |= held[2] - seen[2]
        self._seen[name] = held
        return collection


def _content(collection: Any) -> tuple[list, list, set]:
    return list(collection.include_regex), list(collection.exclude_regex), set(collection.tensor_names)
