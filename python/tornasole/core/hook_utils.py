"""Where a hook writes to."""

from __future__ import annotations

import os

from tornasole.core.access_layer.utils import END_OF_JOB_FILENAME, check_dir_exists
from tornasole.core.utils import is_s3
from tornasole.exceptions import SMDebugRuntimeError


def verify_and_get_out_dir(out_dir: str | os.PathLike | None) -> str:
    """The directory with ``~`` expanded; an error if there is none or a finished run lives in it."""
    if out_dir is None:
        raise SMDebugRuntimeError("out_dir: not given; allowed: a directory or s3://<bucket>/<prefix>")
    out_dir = os.fspath(out_dir)
    if not is_s3(out_dir)[0]:
        out_dir = os.path.expanduser(out_dir)
    if check_dir_exists(out_dir):
        raise SMDebugRuntimeError(
            f"{out_dir}: a finished run lives there ({END_OF_JOB_FILENAME} exists); choose another directory, or remove "
            "that run"
        )
    return out_dir


def get_tensorboard_dir(export_tensorboard: bool, tensorboard_dir: str | None, out_dir: str) -> str | None:
    """Where TensorBoard's files go: as given, else ``<out_dir>/tensorboard`` if they are asked for, else nowhere."""
    if tensorboard_dir is not None:
        return os.path.expanduser(tensorboard_dir)
    return os.path.join(out_dir, "tensorboard") if export_tensorboard else None
