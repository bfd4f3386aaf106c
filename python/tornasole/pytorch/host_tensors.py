"""Tensors as the engine can read them: dense, resolved, in the memory of the processor."""

from typing import Any, Callable, Iterator

import torch

_MAX_DEPTH = 32
# None before PyTorch 2.0.
_is_wrapped = getattr(getattr(torch._C, "_functorch", None), "is_functorch_wrapped_tensor", None) or (lambda _: False)


def tensors_in(value: Any, depth: int = 0) -> Iterator[torch.Tensor]:
    """Every tensor of a value, depth first through tuples, lists and the values of dicts."""
    if isinstance(value, torch.Tensor):
        yield value
    elif depth < _MAX_DEPTH:
        if isinstance(value, dict):
            value = list(value.values())
        if isinstance(value, (tuple, list)):
            for item in value:
                yield from tensors_in(item, depth + 1)


def is_distributed(tensor: torch.Tensor) -> bool:
    """Whether it is a tensor of several processes, each of which holds a part."""
    return isinstance(getattr(tensor, "_local_tensor", None), torch.Tensor)


def local_part(tensor: torch.Tensor) -> torch.Tensor:
    """The shard of a distributed tensor that lives in this process; any other tensor unchanged. No collective runs."""
    return tensor._local_tensor if is_distributed(tensor) else tensor


def to_host(tensor: torch.Tensor) -> torch.Tensor:
    """A detached, dense tensor in the memory of the processor; the argument itself where that is what it is.

    Sparse and quantised tensors are made dense. A tensor of another device is copied after the work that is queued on
    its current stream.
    """
    with torch.no_grad():
        tensor = local_part(tensor).detach()
        if tensor.is_quantized:
            tensor = tensor.dequantize()
        if tensor.layout is not torch.strided:
            tensor = tensor.to_dense()
        if tensor.device.type != "cpu":
            tensor = tensor.to("cpu")
        if type(tensor) is not torch.Tensor:
            tensor = tensor.as_subclass(torch.Tensor)
        return tensor


def is_unmade(tensor: torch.Tensor) -> bool:
    """Whether a lazy module has yet to make this parameter, or it exists in name only (device ``meta``)."""
    return isinstance(tensor, torch.nn.parameter.UninitializedTensorMixin) or tensor.device.type == "meta"


def is_in_transform(tensor: torch.Tensor) -> bool:
    """Whether it stands for values inside ``torch.func.vmap``, ``grad`` and the like, where it has none of its own."""
    return _is_wrapped(tensor)


Save = Callable[[str, Any], None]
