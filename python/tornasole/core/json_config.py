"""What a configuration file says, part by part. :meth:`BaseHook.create_from_json_file` makes a hook of one at once."""

from __future__ import annotations

import json
import os
from typing import Any

from tornasole import _engine
from tornasole.core.collection_manager import CollectionManager
from tornasole.core.config_constants import (
    CONFIG_COLLECTION_CONFIG_KEY,
    CONFIG_COLLECTION_NAME_KEY,
    CONFIG_FILE_PATH_ENV_STR,
    CONFIG_INCLUDE_REGEX_KEY,
    CONFIG_INCLUDE_WORKERS_KEY,
    CONFIG_RDN_CFG_KEY,
    CONFIG_SAVE_ALL_KEY,
    DEFAULT_CONFIG_FILE_PATH,
    DEFAULT_RESOURCE_CONFIG_FILE,
    DEFAULT_SAGEMAKER_OUTDIR,
    DEFAULT_SAGEMAKER_TENSORBOARD_PATH,
    DEFAULT_SAGEMAKER_TORNASOLE_PATH,
    DEFAULT_WORKER_NAME,
    EXPORT_TENSORBOARD_KEY,
    TENSORBOARD_CONFIG_FILE_PATH_ENV_STR,
    TENSORBOARD_DIR_KEY,
)
from tornasole.core.reduction_config import ReductionConfig
from tornasole.core.save_config import SaveConfig
from tornasole.exceptions import SMDebugValueError
from tornasole.modes import ModeKeys

__all__ = [
    "CONFIG_FILE_PATH_ENV_STR",
    "DEFAULT_CONFIG_FILE_PATH",
    "DEFAULT_SAGEMAKER_OUTDIR",
    "DEFAULT_SAGEMAKER_TORNASOLE_PATH",
    "DEFAULT_WORKER_NAME",
    "add_collections_to_manager",
    "collect_hook_config_params",
    "create_hook_from_json_config",
    "get_include_collections",
    "get_json_config_as_dict",
    "get_node_id_from_resource_config",
    "get_tensorboard_dir_from_json_config",
]


def get_json_config_as_dict(json_config_path: str | None) -> dict[str, Any]:
    """The content of the file, or of the one the environment names; FileNotFoundError if it is not there."""
    with open(_engine.find_config_file(json_config_path or ""), encoding="utf-8-sig") as file:
        return json.load(file)


def _parse(params_dict: dict[str, Any]) -> tuple[dict[str, Any], list[tuple]]:
    options, collections, _ = _engine.parse_config_file(json.dumps(params_dict), "the configuration", "pytorch")
    return options, collections


def collect_hook_config_params(params_dict: dict[str, Any]) -> dict[str, Any]:
    """The arguments of a hook that the file gives, checked and with their types."""
    options, _ = _parse(params_dict)
    parameters = params_dict.get("HookParameters") or {}
    schedules = SaveConfig._from_plain(options["save_config"])
    has_form = any(key in parameters for key in ("reductions", "save_raw_tensor", "save_shape"))
    return {
        "out_dir": options["out_dir"],
        "save_config_modes": {mode: schedules.get_save_config(mode).to_json_dict() for mode in ModeKeys},
        CONFIG_RDN_CFG_KEY: ReductionConfig(*options["reduction_config"]) if has_form else None,
        CONFIG_SAVE_ALL_KEY: options["save_all"],
        CONFIG_INCLUDE_REGEX_KEY: options["include_regex"] or None,
        CONFIG_INCLUDE_WORKERS_KEY: options["include_workers"],
        EXPORT_TENSORBOARD_KEY: options["export_tensorboard"],
        TENSORBOARD_DIR_KEY: options["tensorboard_dir"] or None,
    }


def get_include_collections(params_dict: dict[str, Any]) -> list[str] | None:
    """The names of the collections that the file lists; None if it has no list."""
    entries = params_dict.get(CONFIG_COLLECTION_CONFIG_KEY)
    if entries is None:
        return None
    for entry in entries:
        if CONFIG_COLLECTION_NAME_KEY not in entry:
            raise SMDebugValueError(f"{entry!r}: {CONFIG_COLLECTION_NAME_KEY} is missing")
    return [entry[CONFIG_COLLECTION_NAME_KEY] for entry in entries]


def add_collections_to_manager(collection_manager: CollectionManager, params_dict: dict, hook_params: dict) -> None:
    """Gives the collections of a manager what the file says of them; the missing ones are made."""
    for name, patterns, _, _, reductions, schedules, save_histogram in _parse(params_dict)[1]:
        collection = collection_manager.get(name)
        collection.include(patterns)
        collection.save_histogram = save_histogram
        if reductions is not None:
            collection.reduction_config = ReductionConfig(*reductions)
        if schedules:
            collection.save_config = SaveConfig._from_plain(schedules)


def create_hook_from_json_config(hook_cls, json_config_path: str | None = None, default_values=None):
    """A hook of the class from the file; ``default_values`` is accepted, the defaults are the framework's."""
    return hook_cls.create_from_json_file(json_config_path)


def get_tensorboard_dir_from_json_config() -> str | None:
    """Where SageMaker wants TensorBoard's files; None if no file says so."""
    return _local_path(os.environ.get(TENSORBOARD_CONFIG_FILE_PATH_ENV_STR, DEFAULT_SAGEMAKER_TENSORBOARD_PATH))


def _local_path(path: str, key: str = "LocalPath") -> str | None:
    if not os.path.isfile(path):
        return None
    with open(path, encoding="utf-8") as file:
        return json.load(file).get(key)


def get_node_id_from_resource_config() -> str | None:
    """The name of this host in a SageMaker job; None elsewhere."""
    return _local_path(DEFAULT_RESOURCE_CONFIG_FILE, "current_host")
