"""Collections for XGBoost, under the name other code imports them by."""

from tornasole.core.collection import Collection, CollectionKeys
from tornasole.core.collection_manager import collection_manager_of

__all__ = ["Collection", "CollectionKeys", "CollectionManager"]

CollectionManager = collection_manager_of("xgboost")
