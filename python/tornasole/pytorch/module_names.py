"""What modules and parameters are called in a trial."""

import itertools
import weakref
from typing import Container, Iterator, Tuple

import torch

# Wrappers that change nothing about the model leave no trace in names.
_TRANSPARENT = ("_orig_mod", "_fsdp_wrapped_module", "_checkpoint_wrapped_module", "_dynamo_module")
_PARALLEL = ("DataParallel", "DistributedDataParallel")


def unwrapped(module: torch.nn.Module) -> torch.nn.Module:
    """The module inside wrappers that leave no trace in names, such as that of ``torch.compile``."""
    while True:
        for attribute in _TRANSPARENT:
            inner = module._modules.get(attribute)
            if isinstance(inner, torch.nn.Module):
                module = inner
                break
        else:
            return module


def is_compiled(module: torch.nn.Module) -> bool:
    """Whether calling this module runs code made by ``torch.compile``, in which callbacks have no place."""
    if getattr(module, "_compiled_call_impl", None) is not None:
        return True
    return isinstance(module._modules.get("_orig_mod"), torch.nn.Module)


def _written_name(module: torch.nn.Module) -> str:
    """Of the class that somebody wrote, not of the one that ``fully_shard`` and the like make of it for a module."""
    made, bases = type(module), type(module).__bases__
    is_made = len(bases) == 2 and bases[0].__module__.startswith("torch.distributed.")
    if is_made and made.__name__.endswith(bases[1].__name__) and made._get_name is torch.nn.Module._get_name:
        return bases[1].__name__
    return module._get_name()


class ModuleNames:
    """The names of one registered root and of everything below it. Does not keep the root.

    ``stable``: wrappers for data-parallel training leave no trace either, so that a run has the same names on one
    device and on many. ``beside``: names of other roots; this one has another, and what is below it is called by it,
    since parts of two models may well have the same paths.
    """

    def __init__(self, root: torch.nn.Module, stable: bool = False, beside: Container[str] = ()):
        self._stable = stable
        named = unwrapped(root)
        self._is_parallel = type(named).__name__ in _PARALLEL
        if stable and self._is_parallel and isinstance(named._modules.get("module"), torch.nn.Module):
            named = unwrapped(named._modules["module"])
        self.root = _written_name(named) if stable else named._get_name()
        self._prefix = ""
        if beside:
            name = self.root
            for number in itertools.count(2):
                if self.root not in beside:
                    break
                self.root = f"{name}{number}"
            self._prefix = self.root + "."
        self._wrapped_root = weakref.ref(root)

    def path(self, dotted: str) -> str:
        """A dotted path below the root, without the parts that wrappers put in."""
        parts = [part for part in dotted.split(".") if part not in _TRANSPARENT]
        if self._stable and parts[:1] == ["module"] and self._is_parallel:
            parts = parts[1:]
        return ".".join(parts)

    def modules(self) -> Iterator[Tuple[str, torch.nn.Module]]:
        """(name, module) of the root, first, and of every module below it; each module once."""
        seen = set()
        root = self._wrapped_root()
        for dotted, module in () if root is None else root.named_modules():
            path = self.path(dotted)
            # What a wrapper holds is known by the wrapper's own name.
            if (dotted and not path) or path in seen:
                continue
            seen.add(path)
            yield (self._prefix + path if path else self.root), module

    def parameter(self, dotted: str) -> str:
        """The name of a parameter by its dotted path."""
        return f"{self.root}_{self.path(dotted)}"
