"""What a loss that is not finite was computed from, as far as its graph still holds it."""

from collections import deque
from typing import Any, Iterator, Optional, Tuple

import torch

_MOST_NODES = 10_000
# Steps of the computation that keep what a layer was given, and the name they keep it under.
_GIVEN = {
    "AddmmBackward": "_saved_mat1",
    "MmBackward": "_saved_self",
    "BmmBackward": "_saved_self",
    "LinearBackward": "_saved_input",
    "ConvolutionBackward": "_saved_input",
    "NativeBatchNormBackward": "_saved_input",
    "NativeLayerNormBackward": "_saved_input",
    "NativeGroupNormBackward": "_saved_input",
    "MkldnnRnnLayerBackward": "_saved_input",
    "CudnnRnnBackward": "_saved_input",
}
# Losses that keep their labels, by the name of their step: those whose labels may be anything but whole numbers.
LABELLED = {
    "MseLossBackward": ("MSELoss", "mse_loss"),
    "L1LossBackward": ("L1Loss", "l1_loss"),
    "SmoothL1LossBackward": ("SmoothL1Loss", "smooth_l1_loss"),
    "HuberLossBackward": ("HuberLoss", "huber_loss"),
    "BinaryCrossEntropyBackward": ("BCELoss", "binary_cross_entropy"),
    "BinaryCrossEntropyWithLogitsBackward": ("BCEWithLogitsLoss", "binary_cross_entropy_with_logits"),
}


def broken_data(loss: torch.Tensor) -> Tuple[Optional[torch.Tensor], Optional[Tuple[str, torch.Tensor]]]:
    """Of the data that a loss was computed from, what holds NaN or infinity: an input of the model, and labels with the
    kind of loss that was given them, a key of ``LABELLED``."""
    given, labels = None, None
    for node in _nodes(loss.grad_fn):
        kind = node.name().rstrip("0123456789")
        if given is None and kind in _GIVEN:
            given = _if_broken_data(node, _GIVEN[kind])
        if labels is None and kind in LABELLED:
            target = _if_broken_data(node, "_saved_target")
            labels = None if target is None else (kind, target)
    return given, labels


def _nodes(first: Any) -> Iterator[Any]:
    seen, waiting = {first}, deque([first] if first is not None else [])
    while waiting and len(seen) <= _MOST_NODES:
        node = waiting.popleft()
        yield node
        for parent, _ in node.next_functions:
            if parent is not None and parent not in seen:
                seen.add(parent)
                waiting.append(parent)


def _if_broken_data(node: Any, name: str) -> Optional[torch.Tensor]:
    """What nothing computed that is trained, if it is not finite."""
    try:
        # What has to be unpacked first, as where checkpoints compute it again, stays as it is.
        kept = getattr(node, f"_raw{name}", None)
        if kept is None or getattr(kept, "unpack_hook", kept) is not None:
            return None
        tensor = getattr(node, name)
    except RuntimeError:  # freed, or changed since
        return None
    if not isinstance(tensor, torch.Tensor) or tensor.requires_grad or not tensor.is_floating_point():
        return None
    if tensor.layout is not torch.strided or not tensor.is_cpu:
        return None
    return None if bool(torch.isfinite(tensor).all()) else tensor
