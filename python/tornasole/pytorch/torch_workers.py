"""Which of several processes of one training this is."""

import json
import os
from typing import Optional, Tuple


def _distributed() -> Optional[Tuple[int, int]]:
    import torch.distributed as distributed

    if distributed.is_available() and distributed.is_initialized():
        return distributed.get_rank(), distributed.get_world_size()
    return None


def _horovod() -> Optional[Tuple[int, int]]:
    import horovod.torch as horovod

    return (horovod.rank(), horovod.size()) if horovod.size() else None


def _smdataparallel() -> Optional[Tuple[int, int]]:
    # The library is started through MPI, on machines with eight devices each.
    settings = json.loads(os.environ.get("SM_FRAMEWORK_PARAMS", "{}"))
    if int(os.environ.get("OMPI_COMM_WORLD_SIZE", "0")) < 8:
        return None
    if not settings.get("sagemaker_distributed_dataparallel_enabled", False):
        return None
    import smdistributed.dataparallel.torch.distributed as smdataparallel

    return (smdataparallel.get_rank(), smdataparallel.get_world_size()) if smdataparallel.get_world_size() else None


def rank_and_size() -> Tuple[int, int]:
    """This process's rank and the number of workers: of torch.distributed, else Horovod, else smdataparallel."""
    for ask in (_distributed, _horovod, _smdataparallel):
        try:
            known = ask()
        except (ImportError, ValueError, AttributeError):
            continue
        if known is not None:
            return known
    return 0, 1
