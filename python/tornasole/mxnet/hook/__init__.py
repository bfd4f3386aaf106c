"""``tornasole.mxnet.Hook``, under the name other code imports it by."""

from tornasole.core.collection import CollectionKeys
from tornasole.modes import ModeKeys
from tornasole.mxnet.gluon_hook import Hook, TornasoleHook

DEFAULT_INCLUDE_COLLECTIONS = [CollectionKeys.LOSSES]

__all__ = ["CollectionKeys", "DEFAULT_INCLUDE_COLLECTIONS", "Hook", "ModeKeys", "TornasoleHook"]
