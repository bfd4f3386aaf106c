"""The hooks for TensorFlow, under the name other code imports them by."""

from tornasole.tensorflow.keras_hook import KerasHook
from tornasole.tensorflow.session_hook import EstimatorHook, SessionHook, TornasoleHook

__all__ = ["EstimatorHook", "KerasHook", "SessionHook", "TornasoleHook"]
