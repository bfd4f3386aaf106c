"""``tornasole.tensorflow.KerasHook``, under the name other code imports it by."""

from tornasole.tensorflow.keras_hook import KerasHook

__all__ = ["KerasHook"]
