"""Facts about PyTorch, and reductions of its tensors."""

import re
from typing import Tuple

import torch

from tornasole.exceptions import SMDebugError

try:
    from packaging.version import parse as _parsed
except ModuleNotFoundError:  # the wheels of PyTorch do without it
    _parsed = str

PT_VERSION = _parsed(torch.__version__)
"""The version of PyTorch, which can be compared with other versions."""

_OLDEST, _TOO_NEW = (1, 5), (3, 0)


def _release(version: str) -> Tuple[int, ...]:
    found = re.match(r"(\d+)\.(\d+)", version)
    return tuple(map(int, found.groups())) if found else (0, 0)


def is_current_version_supported(pytorch_version: str = torch.__version__) -> bool:
    """Whether this version of PyTorch is one that can be captured: 1.5 and later, below 3.0."""
    return _OLDEST <= _release(pytorch_version) < _TOO_NEW


def is_pt_1_5() -> bool:
    """Whether this is a PyTorch 1.5."""
    return _release(str(PT_VERSION)) == (1, 5)


def is_pt_1_6() -> bool:
    """Whether this is a PyTorch 1.6."""
    return _release(str(PT_VERSION)) == (1, 6)


def is_pt_1_7() -> bool:
    """Whether this is a PyTorch 1.7."""
    return _release(str(PT_VERSION)) == (1, 7)


def is_pt_1_8() -> bool:
    """Whether this is a PyTorch 1.8."""
    return _release(str(PT_VERSION)) == (1, 8)


def is_pt_1_9() -> bool:
    """Whether this is a PyTorch 1.9."""
    return _release(str(PT_VERSION)) == (1, 9)


def get_reduction_of_data(reduction_name: str, tensor_data, tensor_name: str, abs: bool = False):
    """One reduction of a tensor (``mean``, ``l2``, ...), of its magnitudes with ``abs``, as a tensor of one element."""
    from tornasole import stats
    from tornasole.pytorch.host_tensors import to_host

    values = stats(to_host(tensor_data) if isinstance(tensor_data, torch.Tensor) else tensor_data)
    # The norms of magnitudes are the norms.
    key = f"abs_{reduction_name}" if abs and reduction_name not in ("l1", "l2") else reduction_name
    if key not in values:
        raise SMDebugError(f"{tensor_name}: there is no reduction {reduction_name!r} of it")
    return torch.tensor(values[key])
