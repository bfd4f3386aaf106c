"""The end marker of a run, and the platform's word that rules are to stop."""

from __future__ import annotations

import os
import time

from tornasole import _engine
from tornasole.core.access_layer.s3handler import DeleteRequest, ListRequest, ReadObjectRequest, S3Handler
from tornasole.core.logger import get_logger
from tornasole.core.sagemaker_utils import is_sagemaker_job
from tornasole.core.utils import is_s3

END_OF_JOB_FILENAME = "training_job_end.ts"
ENV_RULE_STOP_SIGNAL_FILENAME = "SAGEMAKER_ENV_RULE_STOP_SIGNAL_FILE"
ENV_RULE_STOP_GRACETIME = "rule_stop_grace_time_secs"
DEFAULT_GRACETIME_FOR_RULE_STOP_SEC = 60


def training_has_ended(trial_prefix: str) -> None:
    """Marks the run in a directory as ended; not in a SageMaker job, where the platform says so."""
    if not is_sagemaker_job():
        _engine.mark_ended(os.fspath(trial_prefix))


def has_training_ended(trial_prefix: str) -> bool:
    """Whether the run in a directory has ended."""
    return _engine.has_ended(os.fspath(trial_prefix))


def file_exists(file_path: str) -> bool:
    """Whether there is such a file; on S3, a key that begins so."""
    on_s3, bucket, key = is_s3(os.fspath(file_path))
    if on_s3:
        return bool(S3Handler.list_prefix(ListRequest(bucket, key)))
    return os.path.exists(file_path)


def check_dir_exists(path: str) -> bool:
    """Whether a finished run lives in the directory, so that another must not be written there."""
    path = os.fspath(path)
    return (path.startswith("s3://") or os.path.exists(path)) and has_training_ended(path)


def is_rule_signalled_gracetime_passed(trial_prefix: str) -> bool:
    """Whether the platform has told rules to stop, and the time it leaves them is over.

    The signal is a file in the trial's directory, named by ``SAGEMAKER_ENV_RULE_STOP_SIGNAL_FILE``, that holds the
    second it was given at. ``rule_stop_grace_time_secs`` says how long rules may go on: 60 seconds if it is not set.
    A signal whose content is no number counts as one from long ago.
    """
    name = os.environ.get(ENV_RULE_STOP_SIGNAL_FILENAME)
    if name is None:
        return False
    signal = os.path.join(trial_prefix, name)
    try:
        if is_s3(signal)[0]:
            if not file_exists(signal):
                return False
            given_at = int(S3Handler.get_object(ReadObjectRequest(signal)) or b"")
        else:
            with open(signal, encoding="utf-8") as file:
                given_at = int(file.read())
        grace = float(os.environ.get(ENV_RULE_STOP_GRACETIME, DEFAULT_GRACETIME_FOR_RULE_STOP_SEC))
    except FileNotFoundError:
        return False
    except (OSError, ValueError) as error:
        get_logger().info("%s: rules stop, since the signal says no time (%s)", signal, error)
        return True
    return time.time() > given_at + grace


def delete_s3_prefixes(bucket: str, keys: str | list[str]) -> None:
    """Deletes what lies under the prefixes of a bucket."""
    prefixes = keys if isinstance(keys, list) else [keys]
    S3Handler.delete_prefixes([DeleteRequest(bucket, prefix) for prefix in prefixes])
