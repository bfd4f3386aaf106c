"""Collections that can be told about modules."""

import re
from typing import Dict, Optional, Tuple

import torch

from tornasole.core.collection import Collection as BaseCollection
from tornasole.core.edits import edits
from tornasole.exceptions import SMDebugTypeError, SMDebugValueError


class Collection(BaseCollection):
    """A named group of tensors, which can be the inputs and outputs of modules."""

    def __init__(self, name, *arguments, **options) -> None:
        super().__init__(name, *arguments, **options)
        self._modules: Dict[torch.nn.Module, Tuple[bool, bool]] = {}

    def add_module_tensors(self, module: torch.nn.Module, inputs: bool = False, outputs: bool = True) -> None:
        """The inputs and outputs of this module belong to the collection.

        The module must be part of a model that is registered before the first step; a ``ValueError`` then if not.
        """
        if not isinstance(module, torch.nn.Module):
            raise SMDebugTypeError(f"add_module_tensors: {module!r} is not allowed; allowed: a torch.nn.Module")
        self._modules[module] = (bool(inputs), bool(outputs))
        edits.note()

    @property
    def modules(self) -> Dict[torch.nn.Module, Tuple[bool, bool]]:
        """The modules given so far, with whether their inputs and outputs belong to it."""
        return self._modules

    def _add_module_patterns(self, names: Dict[int, str]) -> None:
        for module, (has_inputs, has_outputs) in self._modules.items():
            name: Optional[str] = names.get(id(module))
            if name is None:
                raise SMDebugValueError(
                    f"the collection {self.name} has the tensors of a {type(module).__name__} that belongs to no "
                    "registered module; register_module must come before the first step"
                )
            start = "^" + re.escape(name)
            self.include([f"{start}_{side}_" for side, on in (("input", has_inputs), ("output", has_outputs)) if on])
        self._modules = {}
