"""Which of several processes of one training this is, and which ways of distributing one can be captured."""

import json
import os
from typing import Any, Optional, Tuple

import tensorflow as tf


def _horovod() -> Optional[Tuple[int, int]]:
    import horovod.tensorflow as horovod

    return (horovod.rank(), horovod.size()) if horovod.size() else None


def _smdataparallel() -> Optional[Tuple[int, int]]:
    # The library is started through MPI, on machines with eight devices each.
    settings = json.loads(os.environ.get("SM_FRAMEWORK_PARAMS", "{}"))
    if int(os.environ.get("OMPI_COMM_WORLD_SIZE", "0")) < 8:
        return None
    if not settings.get("sagemaker_distributed_dataparallel_enabled", False):
        return None
    import smdistributed.dataparallel.tensorflow as smdataparallel

    return (smdataparallel.rank(), smdataparallel.size()) if smdataparallel.size() else None


def rank_and_size() -> Tuple[int, int]:
    """This process's rank and the number of workers: of Horovod, else smdataparallel. Replicas share a process."""
    for ask in (_horovod, _smdataparallel):
        try:
            known = ask()
        except (ImportError, ValueError, AttributeError):
            continue
        if known is not None:
            return known
    return 0, 1


def unsupported_strategy(strategy: Any) -> Optional[str]:
    """The name of a strategy whose trainings cannot be captured; None for the default, one device and mirrored ones."""
    name = type(strategy).__name__
    if strategy is None or name in ("_DefaultDistributionStrategy", "_DefaultDistributionStrategyV1"):
        return None
    if isinstance(strategy, (tf.distribute.OneDeviceStrategy, tf.distribute.MirroredStrategy)):
        return None
    return None if name in ("MirroredStrategyV1", "OneDeviceStrategyV1") else name
