"""In what form tensors are saved: whole, as numbers worked out in the training process, or both."""

from __future__ import annotations

from typing import Any

from tornasole import _engine
from tornasole.core.edits import edits
from tornasole.core.json_text import JsonText
from tornasole.core.query_arguments import is_spellable
from tornasole.exceptions import SMDebugTypeError, SMDebugValueError

_LISTS = ("reductions", "abs_reductions", "norms", "abs_norms")
ALLOWED_PARAMS = [*_LISTS, "save_raw_tensor", "save_shape"]
ALLOWED_REDUCTIONS = ["min", "max", "median", "mean", "std", "variance", "sum", "prod"]
ALLOWED_NORMS = ["l1", "l2"]
REDUCTION_CONFIG_VERSION_NUM = "v0"


class ReductionConfig(JsonText):
    """What is saved of a tensor.

    ``reductions`` are any of min, max, median, mean, std, variance, sum, prod; ``norms`` any of l1, l2;
    ``abs_reductions`` and ``abs_norms`` the same of the magnitudes. ``save_raw_tensor`` saves the whole tensor besides,
    ``save_shape`` its shape. Without a ReductionConfig the whole tensor is saved.
    """

    reductions: list[str]
    abs_reductions: list[str]
    norms: list[str]
    abs_norms: list[str]
    save_raw_tensor: bool
    save_shape: bool

    def __init__(
        self,
        reductions=None,
        abs_reductions=None,
        norms=None,
        abs_norms=None,
        save_raw_tensor=False,
        save_shape=False,
    ) -> None:
        lists = [[] if given is None else given for given in (reductions, abs_reductions, norms, abs_norms)]
        self._set((*lists, save_raw_tensor, save_shape))

    def _set(self, values: tuple) -> None:
        for name, value in zip(_LISTS, values):
            if isinstance(value, str):
                raise SMDebugTypeError(f"{name}: {value!r} is not allowed; allowed: a list of names")
        self.__dict__.update(zip(ALLOWED_PARAMS, _engine.check_reduction_config(tuple(values))))
        edits.note()

    def __setattr__(self, name: str, value: Any) -> None:
        if name not in ALLOWED_PARAMS:
            raise SMDebugValueError(f"{name!r} is no field of a ReductionConfig; allowed: {', '.join(ALLOWED_PARAMS)}")
        if value is None and name in _LISTS:
            value = []
        self._set(tuple(value if field == name else getattr(self, field) for field in ALLOWED_PARAMS))

    def _key(self) -> tuple:
        return (*(tuple(getattr(self, name)) for name in _LISTS), self.save_raw_tensor, self.save_shape)

    def to_json_dict(self) -> dict[str, Any]:
        """As in configuration files: the reductions as one comma list."""
        return {
            "save_raw_tensor": self.save_raw_tensor,
            "reductions": _engine.reductions_text(self._key()),
            "save_shape": self.save_shape,
        }

    @classmethod
    def from_dict(cls, params: dict[str, Any] | None) -> Any:
        """From ``reductions`` (a comma list or a list, any spelling), ``save_raw_tensor``, ``save_shape``."""
        if params is None:
            return None
        if not isinstance(params, dict):
            raise SMDebugValueError(f"{params!r} is not allowed; allowed: a dict")
        reductions = "" if params.get("reductions") is None else params["reductions"]
        if not isinstance(reductions, str):
            if not isinstance(reductions, (list, tuple)) or not all(isinstance(name, str) for name in reductions):
                raise SMDebugTypeError(
                    f"reductions: {reductions!r} is not allowed; allowed: a comma list, or a list of names"
                )
            reductions = ",".join(reductions)
        if not is_spellable(reductions):
            raise SMDebugValueError(f"reductions: {reductions!r} is not allowed; allowed: a text that UTF-8 can spell")
        flags = (params.get("save_raw_tensor", False), params.get("save_shape", False))
        return cls(*_engine.parse_reductions(reductions)[: len(_LISTS)], *flags)

    def __eq__(self, other: object) -> bool:
        return self._key() == other._key() if isinstance(other, ReductionConfig) else NotImplemented

    __hash__ = None  # type: ignore[assignment]

    def __repr__(self) -> str:
        return f"ReductionConfig({', '.join(f'{name}={getattr(self, name)!r}' for name in ALLOWED_PARAMS)})"
