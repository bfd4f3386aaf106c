"""Collections for TensorFlow, under the name other code imports them by."""

import tensorflow as tf

from tornasole.core.collection import CollectionKeys
from tornasole.core.collection_manager import CollectionManager as BaseCollectionManager
from tornasole.tensorflow.tf_collection import Collection

__all__ = ["Collection", "CollectionKeys", "CollectionManager"]


def CollectionManager(collections=None, create_default: bool = True) -> BaseCollectionManager:
    """The collections of a TensorFlow hook: the built-in ones, or none."""
    if not create_default or collections is not None:
        manager = BaseCollectionManager(collections)
        manager.collection_class = Collection
        return manager
    return BaseCollectionManager.for_framework("tensorflow", tf.__version__, Collection)


CollectionManager.load = lambda filename, coll_class=Collection: BaseCollectionManager.load(filename, coll_class)
CollectionManager.load_from_string = lambda s, coll_class=Collection: BaseCollectionManager.load_from_string(
    s, coll_class
)
