"""Keys of batch logs, and the collections that are always saved."""

from tornasole.core.collection import CollectionKeys
from tornasole.tensorflow.batch_logs import GRADIENTS, LAYER_OUTPUTS, PREFIX

SMDEBUG_PREFIX = PREFIX
SMDEBUG_GRADIENTS_KEY = GRADIENTS
SMDEBUG_LAYER_OUTPUTS_KEY = LAYER_OUTPUTS
TF_DEFAULT_SAVED_COLLECTIONS = [CollectionKeys.METRICS, CollectionKeys.LOSSES, CollectionKeys.SM_METRICS]

__all__ = ["SMDEBUG_GRADIENTS_KEY", "SMDEBUG_LAYER_OUTPUTS_KEY", "SMDEBUG_PREFIX", "TF_DEFAULT_SAVED_COLLECTIONS"]
