"""Tornasole under the name ``smdebug``: every module ``smdebug.x`` is the module ``tornasole.x``, the same object.

Importing this installs a finder that answers for ``smdebug.*`` by importing ``tornasole.*``.
"""

from __future__ import annotations

import importlib
import importlib.abc
import importlib.machinery
import importlib.util
import sys
from types import CodeType, ModuleType

from tornasole import CollectionKeys, ReductionConfig, SaveConfig, SaveConfigMode, modes

from smdebug._version import __version__

__all__ = ["CollectionKeys", "ReductionConfig", "SaveConfig", "SaveConfigMode", "__version__", "modes"]

_OURS = "tornasole"
_PREFIX = __name__ + "."


class _AliasLoader(importlib.abc.InspectLoader):
    """Loads a module by importing the one it is another name of."""

    def __init__(self, target: str) -> None:
        self._target = target
        self._spec: importlib.machinery.ModuleSpec | None = None

    def create_module(self, spec: importlib.machinery.ModuleSpec) -> ModuleType:
        module = importlib.import_module(self._target)
        self._spec = module.__spec__
        return module

    def exec_module(self, module: ModuleType) -> None:
        module.__spec__ = self._spec  # the import system has put its own there; the module keeps its first name

    # `python -m smdebug.x` asks for these.
    def get_code(self, fullname: str) -> CodeType | None:
        return importlib.util.find_spec(self._target).loader.get_code(self._target)

    def get_source(self, fullname: str) -> str | None:
        return importlib.util.find_spec(self._target).loader.get_source(self._target)


class _AliasFinder(importlib.abc.MetaPathFinder):
    """Answers for every ``smdebug.x`` of which there is a ``tornasole.x``."""

    def find_spec(self, fullname: str, path=None, target=None) -> importlib.machinery.ModuleSpec | None:
        if not fullname.startswith(_PREFIX):
            return None
        ours = f"{_OURS}.{fullname.removeprefix(_PREFIX)}"
        try:
            found = importlib.util.find_spec(ours)
        except ModuleNotFoundError:
            return None
        if found is None:
            return None
        is_package = found.submodule_search_locations is not None
        return importlib.machinery.ModuleSpec(fullname, _AliasLoader(ours), is_package=is_package)


if not any(isinstance(finder, _AliasFinder) for finder in sys.meta_path):
    sys.meta_path.insert(0, _AliasFinder())
