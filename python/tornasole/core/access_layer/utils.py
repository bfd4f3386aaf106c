"""The end marker of a run."""

from __future__ import annotations

import os

from tornasole import _engine
from tornasole.core.sagemaker_utils import is_sagemaker_job
from tornasole.exceptions import SMDebugRuntimeError

END_OF_JOB_FILENAME = "training_job_end.ts"
ENV_RULE_STOP_SIGNAL_FILENAME = "SAGEMAKER_ENV_RULE_STOP_SIGNAL_FILE"
DEFAULT_GRACETIME_FOR_RULE_STOP_SEC = 60


def training_has_ended(trial_prefix: str) -> None:
    """Marks the run in a directory as ended; not in a SageMaker job, where the platform says so."""
    if not is_sagemaker_job():
        _engine.mark_ended(trial_prefix)


def has_training_ended(trial_prefix: str) -> bool:
    """Whether the run in a directory has ended."""
    return _engine.has_ended(trial_prefix)


def file_exists(file_path: str) -> bool:
    """Whether there is such a file."""
    return os.path.exists(file_path)


def check_dir_exists(path: str) -> None:
    """An error if a finished run lives in the directory."""
    if not path.startswith("s3://") and os.path.exists(path) and has_training_ended(path):
        raise SMDebugRuntimeError(
            f"{path}: a finished run lives there ({END_OF_JOB_FILENAME} exists); choose another directory, or remove "
            "that run"
        )
