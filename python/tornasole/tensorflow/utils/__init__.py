"""Facts about TensorFlow."""

import json
import os
import re
from enum import Enum
from typing import Any, Dict, Optional, Tuple

import tensorflow as tf

from tornasole.tensorflow.graph_tensors import is_computable as tensor_can_be_saved  # noqa: F401

try:
    from packaging.version import parse as _parsed
except ModuleNotFoundError:  # TensorFlow comes with it
    _parsed = str

TF_VERSION = _parsed(tf.__version__)
"""The version of TensorFlow, which can be compared with other versions."""

_OLDEST, _TOO_NEW = (1, 15), (3, 0)


class TFDistributionStrategy(Enum):
    """Ways of distributing a training."""

    NONE = 0
    HOROVOD = 1
    MIRRORED = 2
    PARAMETER_SERVER = 3
    SMDATAPARALLEL = 4
    UNSUPPORTED = 100


def _release(version: str) -> Tuple[int, ...]:
    found = re.match(r"(\d+)\.(\d+)", version)
    return tuple(map(int, found.groups())) if found else (0, 0)


def get_current_version() -> Any:
    """The version of TensorFlow, which can be compared with other versions."""
    return TF_VERSION


def is_current_version_supported(tf_version: Any = None) -> bool:
    """Whether a version of TensorFlow, by default this one, can be captured: 1.15 and later, below 3.0."""
    return _OLDEST <= _release(str(TF_VERSION if tf_version is None else tf_version)) < _TOO_NEW


def is_tf_version_2x() -> bool:
    """Whether this is TensorFlow 2."""
    return _release(str(TF_VERSION))[0] == 2


def is_tf_version_2_2_x() -> bool:
    """Whether this is a TensorFlow 2.2."""
    return _release(str(TF_VERSION)) == (2, 2)


def is_tf_version_2_3_x() -> bool:
    """Whether this is a TensorFlow 2.3."""
    return _release(str(TF_VERSION)) == (2, 3)


def is_tf_version_2_4_x() -> bool:
    """Whether this is a TensorFlow 2.4."""
    return _release(str(TF_VERSION)) == (2, 4)


def is_tf_version_1_15_x() -> bool:
    """Whether this is a TensorFlow 1.15 or a later 1."""
    return (1, 15) <= _release(str(TF_VERSION)) < (2, 0)


def is_tf_version_greater_than_2_4_x() -> bool:
    """Whether this is TensorFlow 2.4 or later."""
    return _release(str(TF_VERSION)) >= (2, 4)


def does_tf_support_mixed_precision_training() -> bool:
    """Whether Keras has ``mixed_precision.experimental``: TensorFlow 2.1 and later, below 2.6.

    Later versions train in mixed precision through ``keras.mixed_precision``, which is captured alike.
    """
    return (2, 1) <= _release(str(TF_VERSION)) < (2, 6)


def supported_tf_variables() -> Tuple[type, ...]:
    """The kinds of variables whose values can be captured."""
    return (tf.Variable, tf.distribute.DistributedValues)


def is_mirrored_strategy(strategy: Any) -> bool:
    """Whether a strategy keeps one copy of the model on each device of this machine."""
    return isinstance(strategy, tf.distribute.MirroredStrategy)


def is_keras_optimizer(value: Any) -> bool:
    """Whether it is an optimizer of Keras, of the present or of the older kind."""
    legacy = getattr(getattr(tf.keras.optimizers, "legacy", None), "Optimizer", None)
    kinds = (tf.keras.optimizers.Optimizer,) + ((legacy,) if isinstance(legacy, type) else ())
    return isinstance(value, kinds)


def load_tf_config_json(tf_config: Optional[str]) -> Optional[Dict[str, Any]]:
    """The cluster that ``TF_CONFIG`` describes; None if it describes none."""
    try:
        return json.loads(tf_config or "")
    except ValueError:
        return None


def is_parameter_server_strategy(tf_config: Optional[Dict[str, Any]]) -> bool:
    """Whether a cluster has parameter servers."""
    return bool(tf_config) and "ps" in tf_config.get("cluster", {})


def get_worker_id_from_tf_config(tf_config: Dict[str, Any]) -> str:
    """``<type>_<index>`` of this process in its cluster."""
    task = tf_config["task"]
    return f"{task['type']}_{task['index']}"


def get_num_workers_from_tf_config(tf_config: Dict[str, Any]) -> int:
    """How many workers a cluster has, the chief counted."""
    cluster = tf_config["cluster"]
    return len(cluster.get("worker", [])) + (1 if "chief" in cluster else 0)


def get_chief_worker_from_tf_config(tf_config: Dict[str, Any]) -> str:
    """The name of the worker that leads a cluster."""
    return "chief_0" if "chief" in tf_config["cluster"] else "worker_0"


def current_cluster() -> Optional[Dict[str, Any]]:
    """The cluster of the environment."""
    return load_tf_config_json(os.environ.get("TF_CONFIG"))
