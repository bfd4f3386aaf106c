"""Reductions of MXNet's arrays."""

import numpy
from mxnet.ndarray import NDArray

from tornasole.exceptions import SMDebugError


def get_reduction_of_data(aggregation_name: str, tensor_data, tensor_name: str, abs: bool = False) -> numpy.ndarray:
    """One reduction of an array (``mean``, ``l2``, ...), of its magnitudes with ``abs``, as an array of one element."""
    from tornasole import stats

    values = stats(tensor_data.asnumpy() if isinstance(tensor_data, NDArray) else tensor_data)
    # The norms of magnitudes are the norms.
    key = f"abs_{aggregation_name}" if abs and aggregation_name not in ("l1", "l2") else aggregation_name
    if key not in values:
        raise SMDebugError(f"{tensor_name}: there is no reduction {aggregation_name!r} of it")
    return numpy.array([values[key]])
