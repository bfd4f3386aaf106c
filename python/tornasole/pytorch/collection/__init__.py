"""Collections for PyTorch, under the name other code imports them by."""

from tornasole.core.collection import CollectionKeys
from tornasole.core.collection_manager import CollectionManager as BaseCollectionManager
from tornasole.pytorch.torch_collection import Collection

__all__ = ["Collection", "CollectionKeys", "CollectionManager"]


def CollectionManager(create_default: bool = True) -> BaseCollectionManager:
    """The collections of a PyTorch hook: the built-in ones, or none."""
    if not create_default:
        return BaseCollectionManager()
    return BaseCollectionManager.for_framework("pytorch", collection_class=Collection)


CollectionManager.load = lambda filename: BaseCollectionManager.load(filename, Collection)
CollectionManager.load_from_string = lambda text: BaseCollectionManager.load_from_string(text, Collection)
