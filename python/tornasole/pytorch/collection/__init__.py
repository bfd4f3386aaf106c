"""Collections for PyTorch, under the name other code imports them by."""

from tornasole.core.collection import CollectionKeys
from tornasole.core.collection_manager import collection_manager_of
from tornasole.pytorch.torch_collection import Collection

__all__ = ["Collection", "CollectionKeys", "CollectionManager"]

CollectionManager = collection_manager_of("pytorch", Collection)
