"""Collections that a script makes before it has a hook; the next hook of the framework adopts them.

``get_collection``, ``get_collections``, ``add_to_collection``, ``add_to_default_collection`` and ``reset_collections``
of a framework's module act on the current hook's collections if there is a hook, else on these. Once that hook is
closed, ``reset_collections`` begins anew: what follows is meant for the next hook.
"""

from __future__ import annotations

from tornasole.core import singleton_utils
from tornasole.core.collection import Collection
from tornasole.core.collection_manager import CollectionManager
from tornasole.exceptions import SMDebugRuntimeError

_pending: dict[str, CollectionManager] = {}


def take_pending(framework: str, version: str, collection_class: type[Collection]) -> CollectionManager:
    """The collections for a new hook: those made before there was one, else the built-in ones."""
    manager = _pending.pop(framework, None)
    return manager or CollectionManager.for_framework(framework, version, collection_class)


class FrameworkCollections:
    """The functions of a framework's module; ``collections = FrameworkCollections(Hook)`` and then its methods."""

    def __init__(self, hook_class) -> None:
        self._hook_class = hook_class

    def _hook(self):
        hook = singleton_utils.current_hook()
        return hook if isinstance(hook, self._hook_class) else None

    def _manager(self) -> CollectionManager:
        hook, framework = self._hook(), self._hook_class._framework
        if framework not in _pending and hook is None:
            self._begin_anew()
        return _pending[framework] if framework in _pending else hook.collection_manager

    def _begin_anew(self) -> None:
        cls = self._hook_class
        _pending[cls._framework] = CollectionManager.for_framework(
            cls._framework, cls._framework_version, cls._collection_class
        )

    def get_collection(self, name: str) -> Collection:
        """The collection of that name, created empty if there is none."""
        return self._manager().get(name)

    def get_collections(self) -> dict[str, Collection]:
        """All collections by name."""
        return self._manager().get_collections()

    def add_to_collection(self, collection_name: str, args) -> None:
        """Adds a tensor's name, a parameter, or a list of these to a collection."""
        self.get_collection(collection_name).add(args)

    def add_to_default_collection(self, args) -> None:
        """Adds a tensor's name, a parameter, or a list of these to the collection ``default``."""
        self.add_to_collection("default", args)

    def reset_collections(self) -> None:
        """Back to the built-in collections; an error once a hook that is not closed has prepared them."""
        hook = self._hook()
        if hook is None or hook._is_closed:
            self._begin_anew()
            return
        if hook.prepared_collections:
            raise SMDebugRuntimeError("the collections cannot be reset: the first step has prepared them")
        hook._reset_collections()
