"""Facts about TensorFlow."""

import json
import os
import re
from enum import Enum
from typing import Any, Dict, Optional, Tuple

import tensorflow as tf

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


def is_current_version_supported(tf_version: str = tf.__version__) -> bool:
    """Whether this version of TensorFlow is one that can be captured: 1.15 and later, below 3.0."""
    return _OLDEST <= _release(tf_version) < _TOO_NEW


def is_tf_version_2x() -> bool:
    """Whether this is TensorFlow 2."""
    return _release(tf.__version__)[0] == 2


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
