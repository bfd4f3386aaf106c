"""Objects on S3."""

from __future__ import annotations

from tornasole.exceptions import SMDebugNotImplementedError


def list_s3_objects(bucket: str, prefix: str, start_after_key: str | None = None, delimiter: str = ""):
    """The keys under a prefix; an error, since S3 cannot be read here: copy the run to a directory first."""
    raise SMDebugNotImplementedError(f"s3://{bucket}/{prefix}: S3 cannot be read here; copy it to a local directory")
