"""``tornasole.xgboost.Hook``, under the name other code imports it by."""

from tornasole.core.collection import CollectionKeys
from tornasole.xgboost.boost_hook import Hook, TornasoleHook

DEFAULT_INCLUDE_COLLECTIONS = [CollectionKeys.METRICS]
DEFAULT_SAVE_CONFIG_INTERVAL = 10
DEFAULT_SAVE_CONFIG_START_STEP = 0
DEFAULT_SAVE_CONFIG_END_STEP = None
DEFAULT_SAVE_CONFIG_SAVE_STEPS: list = []

__all__ = ["CollectionKeys", "DEFAULT_INCLUDE_COLLECTIONS", "DEFAULT_SAVE_CONFIG_INTERVAL", "Hook", "TornasoleHook"]
