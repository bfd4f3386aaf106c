"""The collections of a hook or of a trial, by name."""

from __future__ import annotations

import json
import os
from typing import Any

from tornasole import _engine
from tornasole.core.access_layer.whole_files import read_whole, write_whole
from tornasole.core.collection import Collection
from tornasole.core.edits import edits
from tornasole.core.query_arguments import is_spellable
from tornasole.exceptions import SMDebugError, SMDebugTypeError, SMDebugValueError

ALLOWED_PARAMS = ["collections", "_meta"]


def _own_name(name: str) -> str:
    """What a collection is called that may be asked for by an older name."""
    if not isinstance(name, str) or not is_spellable(name):
        raise SMDebugTypeError(f"the name of a collection: {name!r} is not allowed; allowed: a text")
    return _engine.collection_name(name)


class CollectionManager:
    """Collections by name, in the order they were created. ``collection_class`` makes those that are asked for."""

    collection_class: type[Collection] = Collection
    framework = "cpp"

    def __init__(self, collections: dict[str, Collection] | None = None, create_default: bool = False) -> None:
        self.collections: dict[str, Collection] = {} if collections is None else collections
        self._meta: dict[str, Any] = {"num_workers": 1}
        self._hook = None
        if create_default:
            self.create_collection("default")

    @classmethod
    def for_framework(cls, framework: str, version: str = "", collection_class: type[Collection] = Collection):
        """The built-in collections of a framework."""
        manager = cls()
        manager.collection_class = collection_class
        manager.framework = framework
        manager.reset(framework, version)
        return manager

    def reset(self, framework: str, version: str = "") -> None:
        """Back to the built-in collections of a framework."""
        self.collections.clear()
        for plain in _engine.collections_of(framework, version):
            self.add(self.collection_class._from_plain(plain))

    def create_collection(self, name: str, cls: type[Collection] | None = None) -> None:
        """Creates an empty collection, unless there is one of that name."""
        name = _own_name(name)
        if name not in self.collections:
            self.add((cls or self.collection_class)._from_plain(_engine.new_collection(self.framework, name)))

    def get_collections(self) -> dict[str, Collection]:
        """All of them by name."""
        return self.collections

    def add(self, arg: Collection | str) -> None:
        """Adds a collection, in the place of one of the same name; or creates one by its name."""
        if isinstance(arg, str):
            self.create_collection(arg)
        elif isinstance(arg, Collection):
            arg._hook = self._hook
            self.collections[arg.name] = arg
            edits.note()
        else:
            raise SMDebugTypeError(f"{arg!r} is not allowed; allowed: a Collection or the name of one")

    def get(self, name: str, create: bool = True) -> Collection:
        """The collection of that name, created empty if there is none; without ``create`` that is an error."""
        own_name = _own_name(name)
        if own_name not in self.collections:
            if not create:
                raise SMDebugError(f"there is no collection {name!r}; there are: {', '.join(self.collections)}")
            self.create_collection(own_name)
        return self.collections[own_name]

    def attach(self, hook) -> None:
        """These are the collections of ``hook`` from here on."""
        self._hook = hook
        for collection in self.collections.values():
            collection._hook = hook

    def update_meta(self, meta: dict[str, Any]) -> None:
        """Adds what is known beside the collections, as ``num_workers``."""
        if not isinstance(meta, dict):
            raise SMDebugTypeError(f"meta: {meta!r} is not allowed; allowed: a dict")
        self._meta.update(meta)

    def get_num_workers(self) -> int:
        """How many workers write."""
        return int(self._meta["num_workers"])

    def set_num_workers(self, num_workers: int) -> None:
        """Sets how many workers write."""
        self._meta["num_workers"] = int(num_workers)

    def to_json_dict(self) -> dict[str, Any]:
        """As in a collections file."""
        return {"collections": {n: c.to_json_dict() for n, c in self.collections.items()}, "_meta": self._meta}

    def export(self, out_dir: str, filename: str | None = None) -> None:
        """Writes ``<out_dir>/collections/000000000/<filename>``; with one argument, the older spelling, that file."""
        path = out_dir if filename is None else os.path.join(out_dir, "collections", "000000000", filename)
        write_whole(path, json.dumps(self.to_json_dict()).encode())

    @classmethod
    def load(cls, filename: str, collection_class: type[Collection] = Collection):
        """From a collections file."""
        return cls.load_from_string(read_whole(filename).decode(), collection_class)

    @classmethod
    def load_from_string(cls, s: str, collection_class: type[Collection] = Collection):
        """From the text of a collections file."""
        params = json.loads(s) if s else None
        if params is None:
            return None
        unknown = [key for key in params if key not in ALLOWED_PARAMS]
        if unknown:
            raise SMDebugValueError(f"the key {unknown[0]!r} is not allowed; allowed: {', '.join(ALLOWED_PARAMS)}")
        manager = cls()
        for fields in params["collections"].values():
            manager.add(collection_class.from_dict(fields))
        manager.update_meta(params["_meta"])
        return manager

    def __eq__(self, other: object) -> bool:
        if not isinstance(other, CollectionManager):
            return NotImplemented
        return self.collections == other.collections

    __hash__ = None  # type: ignore[assignment]

    def __repr__(self) -> str:
        return f"<CollectionManager of {', '.join(self.collections)}>"


def collection_manager_of(framework: str, collection_class: type[Collection] = Collection):
    """What a framework calls ``CollectionManager``: a function that makes one, with ``load``, ``load_from_string``."""

    def make(create_default: bool = True) -> CollectionManager:
        """The collections of a hook: the built-in ones, or none."""
        if not create_default:
            return CollectionManager()
        return CollectionManager.for_framework(framework, "", collection_class)

    make.load = lambda filename: CollectionManager.load(filename, collection_class)  # type: ignore[attr-defined]
    make.load_from_string = lambda text: CollectionManager.load_from_string(  # type: ignore[attr-defined]
        text, collection_class
    )
    return make
