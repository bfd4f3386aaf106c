"""Which of several processes of one training this is."""

from typing import Tuple

import xgboost


def rank_and_size() -> Tuple[int, int]:
    """This process's rank and the number of workers, of XGBoost's own communicator; before 1.7 that is Rabit."""
    workers = getattr(xgboost, "collective", None) or getattr(xgboost, "rabit", None)
    return (0, 1) if workers is None else (workers.get_rank(), max(1, workers.get_world_size()))
