"""Small functions that scripts and tests of the hook use."""

from __future__ import annotations

import functools
import importlib
import json
import os
import re
import shutil
import socket
from enum import Enum
from typing import Any, Iterable

from tornasole import _engine
from tornasole.core.config_constants import (
    CLAIM_FILENAME,
    CONFIG_FILE_PATH_ENV_STR,
    DEFAULT_SAGEMAKER_OUTDIR,
    DEFAULT_SAGEMAKER_TENSORBOARD_PATH,
    TENSORBOARD_CONFIG_FILE_PATH_ENV_STR,
)
from tornasole.core.file_names import (
    deserialize_tf_device,
    get_path_to_collections,
    get_path_to_events_directory,
    get_worker_name_from_collection_file,
    list_collection_files_in_directory,
    list_files_in_directory,
    parse_worker_name_from_file,
    serialize_tf_device,
    step_in_range,
)
from tornasole.core.guard import guard as error_handling_agent
from tornasole.core.logger import get_logger
from tornasole.core.profiler_report import (  # noqa: F401 (the reference has these names here)
    _prepare_telemetry_url,
    get_aws_region_from_processing_job_arn,
    setup_profiler_report,
)
from tornasole.exceptions import SMDebugNotImplementedError, SMDebugRuntimeError, SMDebugTypeError

__all__ = [
    "deserialize_tf_device",
    "error_handling_agent",
    "get_logger",
    "get_path_to_collections",
    "get_path_to_events_directory",
    "get_worker_name_from_collection_file",
    "list_collection_files_in_directory",
    "list_files_in_directory",
    "parse_worker_name_from_file",
    "serialize_tf_device",
    "step_in_range",
]


class FRAMEWORK(Enum):
    """The frameworks there are hooks for."""

    PYTORCH = "pytorch"
    TENSORFLOW = "tensorflow"
    MXNET = "mxnet"
    XGBOOST = "xgboost"


def make_numpy_array(x: Any):
    """A number, text, list, tuple, NumPy array or tensor as a NumPy array; a TypeError for anything else."""
    import numpy

    if isinstance(x, numpy.ndarray):
        return x
    if isinstance(x, (int, float, complex, str, bytes, numpy.generic)):
        return numpy.array([x])
    if isinstance(x, (list, tuple)):
        return numpy.asarray(x)
    if isinstance(x, dict):
        return numpy.array(x)
    if hasattr(x, "detach"):
        return x.detach().cpu().numpy()
    raise SMDebugTypeError(f"a {type(x).__name__} cannot be made an array; allowed: numbers, texts, lists, tensors")


def validate_custom_tensor_value(tensor_value: Any, make_numpy_fn) -> bool:
    """Whether the function can make an array of the value."""
    try:
        make_numpy_fn(tensor_value)
    except TypeError:
        return False
    return True


def ensure_dir(file_path: str, is_file: bool = True) -> None:
    """Creates the directory, or the directory of the file."""
    directory = os.path.dirname(file_path) if is_file else file_path
    if directory:
        os.makedirs(directory, exist_ok=True)


def load_json_as_dict(s: str | None):
    """The text as JSON; None for None or nothing."""
    return json.loads(s) if s else None


def flatten(lis: Iterable) -> list:
    """The items of nested lists, in order."""
    return [leaf for item in lis for leaf in (flatten(item) if isinstance(item, list) else [item])]


def split(comma_separated_string: str) -> list[str]:
    """The items of a comma list, without blanks around them and without empty ones."""
    return [item for part in comma_separated_string.split(",") if (item := part.strip())]


def merge_two_dicts(x: dict, y: dict) -> dict:
    """Both; where they differ, what the second says."""
    return {**x, **y}


def is_s3(path: str) -> tuple[bool, str | None, str | None]:
    """Whether a path is on S3, and then its bucket and prefix."""
    if not path.startswith("s3://"):
        return False, None, None
    bucket, _, prefix = path.removeprefix("s3://").partition("/")
    return True, bucket, prefix


def match_inc(tname: str, include: Iterable[str]) -> bool:
    """Whether any of the patterns finds a match in the name."""
    return any(_engine.finds_match(pattern, tname) for pattern in include)


def index(sorted_list: list, elem: Any) -> int:
    """The position of an element in a sorted list; ValueError if it is not there."""
    return sorted_list.index(elem)


def size_and_shape(t: Any) -> tuple[int, Any]:
    """The bytes and the shape of an array, or of a text."""
    return (len(t), [len(t)]) if isinstance(t, (bytes, str)) else (t.nbytes, t.shape)


def get_region() -> str | None:
    """The AWS region of the environment; None if it says nothing."""
    return (os.environ.get("AWS_REGION") or "").strip() or None


# ---- files of a trial


def is_first_process(path: str, is_dir: bool = True) -> bool:
    """Whether this process is the first to claim a directory (or a file of that name); always, on S3."""
    if is_s3(path)[0]:
        return True
    ensure_dir(path, is_file=not is_dir)
    try:
        os.close(os.open(os.path.join(path, CLAIM_FILENAME) if is_dir else path, os.O_CREAT | os.O_EXCL | os.O_WRONLY))
    except FileExistsError:
        return False
    return True


def remove_claim_file(path: str) -> None:
    """Gives up the claim on a directory."""
    remove_file_if_exists(os.path.join(path, CLAIM_FILENAME))


def remove_file_if_exists(file_path: str) -> None:
    """Removes a file, if there is one."""
    if os.path.exists(file_path):
        os.remove(file_path)


def get_immediate_subdirectories(a_dir: str) -> list[str]:
    """The names of the directories in a directory."""
    return [entry.name for entry in os.scandir(a_dir) if entry.is_dir()]


def get_relative_event_file_path(path: str) -> str:
    """The path of an event file below its trial."""
    parts = os.path.normpath(path).split(os.sep)[-3:]
    if len(parts) < 3 or parts[0] not in ("events", "tensorboard"):
        raise SMDebugRuntimeError(f"{path}: not the path of an event file, which has 'events' or 'tensorboard' in it")
    return os.path.join(*parts)


# ---- the process


def get_tb_worker() -> str:
    """A name for TensorBoard's files that no other process has."""
    return f"{os.getpid()}_{socket.gethostname()}"


@functools.cache
def check_smdataparallel_env() -> bool:
    """Whether the training was started under SageMaker's data parallelism."""
    try:
        is_mpi = int(os.environ.get("OMPI_COMM_WORLD_SIZE", "0")) >= 8
        parameters = json.loads(os.environ.get("SM_FRAMEWORK_PARAMS", "{}"))
    except ValueError:
        return False
    return is_mpi and bool(parameters.get("sagemaker_distributed_dataparallel_enabled", False))


@functools.cache
def check_smmodelparallel_training() -> bool:
    """Whether the training was started under SageMaker's model parallelism."""
    try:
        parameters = json.loads(os.environ.get("SM_HPS", "{}")).get("mp_parameters", {})
    except ValueError:
        return False
    return "partitions" in parameters or "pipeline_parallel_degree" in parameters


def is_framework_version_supported(framework_type: FRAMEWORK) -> bool:
    """Whether there is a hook for the installed version of the framework."""
    if not isinstance(framework_type, FRAMEWORK):
        raise SMDebugNotImplementedError(f"{framework_type}: no such framework")
    try:
        utils = importlib.import_module(f"tornasole.{framework_type.value}.utils")
    except ImportError:  # there is no hook for it, or the framework itself is not there
        return True
    return getattr(utils, "is_current_version_supported", lambda: True)()


class SagemakerSimulator:
    """An environment like that of a SageMaker job, for tests: configuration files, and the variables that name them."""

    def __init__(
        self,
        json_config_path="/tmp/zcc_config.json",
        tensorboard_dir="/tmp/tensorboard",
        training_job_name="sm_job",
        json_file_contents="{}",
        cleanup=True,
    ) -> None:
        self.out_dir, self.tensorboard_dir = DEFAULT_SAGEMAKER_OUTDIR, tensorboard_dir
        self.json_config_path, self.tb_json_config_path = json_config_path, DEFAULT_SAGEMAKER_TENSORBOARD_PATH
        self.json_file_contents, self.training_job_name = json_file_contents, training_job_name
        self.cleanup = cleanup

    def __enter__(self) -> SagemakerSimulator:
        if self.cleanup:
            shutil.rmtree(self.out_dir, ignore_errors=True)
        ensure_dir(self.json_config_path)
        ensure_dir(self.tb_json_config_path)
        with open(self.json_config_path, "w", encoding="utf-8") as file:
            file.write(self.json_file_contents)
        with open(self.tb_json_config_path, "w", encoding="utf-8") as file:
            json.dump({"LocalPath": self.tensorboard_dir}, file)
        os.environ[CONFIG_FILE_PATH_ENV_STR] = self.json_config_path
        os.environ[TENSORBOARD_CONFIG_FILE_PATH_ENV_STR] = self.tb_json_config_path
        os.environ["TRAINING_JOB_NAME"] = self.training_job_name
        watch_imports = importlib.import_module("tornasole.run.watch_imports")
        watch_imports.install()  # as in a process that starts with these variables
        return self

    def __exit__(self, *error) -> None:
        if not self.cleanup:
            return
        for path in (self.json_config_path, self.tb_json_config_path):
            remove_file_if_exists(path)
        for name in (CONFIG_FILE_PATH_ENV_STR, TENSORBOARD_CONFIG_FILE_PATH_ENV_STR, "TRAINING_JOB_NAME"):
            os.environ.pop(name, None)


class ScriptSimulator:
    """Directories that are empty before a test and gone after it."""

    def __init__(self, out_dir="/tmp/test", tensorboard_dir=None) -> None:
        self.out_dir = out_dir
        self.tensorboard_dir = tensorboard_dir

    def _clear(self) -> None:
        for directory in filter(None, (self.out_dir, self.tensorboard_dir)):
            shutil.rmtree(directory, ignore_errors=True)

    def __enter__(self) -> ScriptSimulator:
        self._clear()
        return self

    def __exit__(self, *error) -> None:
        self._clear()
