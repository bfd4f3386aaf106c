"""Facts about XGBoost and its data, under the names other code imports them by."""

import xgboost

from tornasole.xgboost.booster_values import release_of, tree_table
from tornasole.xgboost.data_files import CSV, LIBSVM, get_content_type, get_dmatrix, validate_data_file_path

__all__ = [
    "CSV",
    "LIBSVM",
    "get_content_type",
    "get_dmatrix",
    "is_xgb_1_3_and_later",
    "is_xgb_1_5_and_later",
    "is_xgb_1_7_and_later",
    "parse_tree_model",
    "validate_data_file_path",
]


def is_xgb_1_3_and_later() -> bool:
    """Whether callbacks are objects."""
    return release_of(xgboost.__version__) >= (1, 3)


def is_xgb_1_5_and_later() -> bool:
    """Whether trees have categories."""
    return release_of(xgboost.__version__) >= (1, 5)


def is_xgb_1_7_and_later() -> bool:
    """Whether there is ``xgboost.collective``."""
    return release_of(xgboost.__version__) >= (1, 7)


def parse_tree_model(booster, iteration: int, fmap: str = ""):
    """The trees of one round, a column of ``trees_to_dataframe`` each; ``fmap`` is accepted and not used."""
    return tree_table(booster, iteration)
