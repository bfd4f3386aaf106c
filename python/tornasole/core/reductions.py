"""The names of stored reductions, and reductions of arrays."""

from __future__ import annotations

import re
from typing import Any

REDUCTIONS_PREFIX = "smdebug/reductions/"
_OLDER_PREFIX = "tornasole/reductions/"


def get_numpy_reduction(reduction_name: str, numpy_data: Any, abs: bool = False):
    """One reduction of an array, as capture computes it."""
    import numpy

    from tornasole import stats

    return stats(numpy.abs(numpy_data) if abs else numpy_data, [reduction_name])[reduction_name]


def get_reduction_tensor_name(tensorname: str, reduction_name: str, abs: bool, remove_colon_index: bool = True) -> str:
    """The name under which a reduction is stored; without TensorFlow's ``:<index>``."""
    if remove_colon_index:
        tensorname = re.sub(r":\d+", "", tensorname)
    return f"{REDUCTIONS_PREFIX}{'abs_' if abs else ''}{reduction_name}/{tensorname}"


def reverse_reduction_tensor_name(reduction_tensor_name: str) -> tuple[str, str, bool]:
    """The tensor, the reduction, and whether it is of the magnitudes, from the name under which it is stored."""
    for prefix in (REDUCTIONS_PREFIX, _OLDER_PREFIX):
        if prefix in reduction_tensor_name:
            reduction, _, tensor = reduction_tensor_name.split(prefix, 1)[1].partition("/")
            return tensor, reduction.removeprefix("abs_"), reduction.startswith("abs_")
    return reduction_tensor_name, "", False
