"""The collections of a trial as objects that can be changed, kept in step with the engine.

The engine reads the collections files, again whenever they change, and decides which names belong to a collection. The
objects here are what users see and edit. An edit is handed to the engine before it is asked; what the files brought
since is added to the objects when they are asked for.
"""

from __future__ import annotations

import json
import logging
from typing import Any

from tornasole.core.collection import Collection
from tornasole.core.query_arguments import is_spellable
from tornasole.exceptions import SMDebugError, SMDebugTypeError

# Of a collection that a user asked for before any file had it.
_NOTHING: tuple[list, list, set] = ([], [], set())


class LiveCollections:
    """The collections of one trial."""

    def __init__(self, engine) -> None:
        self._engine = engine
        self._objects: dict[str, Any] = {}
        self._seen: dict[str, tuple[list, list, set]] = {}  # as the engine had them when last compared

    def all(self) -> dict[str, Any]:
        """Every collection by name."""
        fields = {name: one for name, one in self._engine.collections().items() if name}
        for name, one in fields.items():
            self._pull(name, one)
        return {name: self._objects[name] for name in [*fields, *(self._objects.keys() - fields.keys())]}

    def objects(self) -> dict[str, Any]:
        """Those that were asked for, by name."""
        return dict(self._objects)

    def adopt(self, objects: dict[str, Any]) -> None:
        """Takes over the collections of another opening of the same run, with what was changed in them."""
        for name, collection in objects.items():
            self._objects[name] = collection
            self.push(name)

    def get(self, name: str) -> Any:
        """The collection of this name, created empty if there is none."""
        if not isinstance(name, str):
            raise SMDebugTypeError(f"{name!r} is not the name of a collection")
        fields = self._engine.collections().get(name)
        if fields is None:
            return self._objects.setdefault(name, Collection(name))
        return self._pull(name, fields)

    def name_of(self, collection: Any) -> str:
        """The name of what the user means by a collection: its name, or an object with one."""
        name = collection if isinstance(collection, str) else getattr(collection, "name", None)
        if not isinstance(name, str) or not is_spellable(name):
            raise SMDebugTypeError(f"{collection!r} is neither a collection nor the name of one")
        return name

    def push(self, name: str) -> None:
        """Hands what the user changed to the engine."""
        if name not in self._objects:
            return
        collection = self.get(name)
        now = _content(collection)
        if now != self._seen.get(name, _NOTHING):
            self._engine.set_collection(name, *now[:2], sorted(now[2]))
            self._seen[name] = now

    def _pull(self, name: str, fields: dict) -> Any:
        held = (fields["include_regex"], fields["exclude_regex"], set(fields["tensor_names"]))
        collection = self._objects.get(name)
        if collection is None:
            self._objects[name] = collection = _collection_of(fields)
        elif held != (seen := self._seen.get(name, _NOTHING)):
            # New in the files, or the whole collection is. What the user took out stays out.
            collection.include_regex += [p for p in held[0] if p not in seen[0] and p not in collection.include_regex]
            collection.exclude_regex += [p for p in held[1] if p not in seen[1] and p not in collection.exclude_regex]
            collection.tensor_names |= held[2] - seen[2]
        self._seen[name] = held
        return collection


def _collection_of(fields: dict) -> Any:
    """A collection as the files say it; what cannot be used of it is left out."""
    content = {key: value for key, value in fields.items() if not key.endswith("_regex")}
    for key in ("save_config", "reduction_config"):
        content[key] = json.loads(fields[key]) if fields[key] else None
    try:
        collection = Collection.from_dict(content)
    except SMDebugError as error:
        logging.getLogger("tornasole").warning("collection %s of a trial: %s", fields["name"], error)
        collection = Collection(fields["name"], tensor_names=fields["tensor_names"])
    # Unchecked: a pattern that cannot be used is an error of the question that needs it, not an empty answer.
    collection.include_regex.extend(fields["include_regex"])
    collection.exclude_regex.extend(fields["exclude_regex"])
    return collection


def _content(collection: Any) -> tuple[list, list, set]:
    return list(collection.include_regex), list(collection.exclude_regex), set(collection.tensor_names)
