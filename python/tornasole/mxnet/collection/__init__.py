"""Collections for MXNet, under the name other code imports them by."""

from tornasole.core.collection import CollectionKeys
from tornasole.core.collection_manager import collection_manager_of
from tornasole.mxnet.gluon_collection import Collection

__all__ = ["Collection", "CollectionKeys", "CollectionManager"]

CollectionManager = collection_manager_of("mxnet", Collection)
