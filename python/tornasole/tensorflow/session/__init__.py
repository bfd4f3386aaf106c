"""``tornasole.tensorflow.SessionHook``, under the name other code imports it by."""

from tornasole.tensorflow.session_hook import EstimatorHook, SessionHook

__all__ = ["EstimatorHook", "SessionHook"]
