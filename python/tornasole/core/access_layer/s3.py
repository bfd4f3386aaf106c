"""A file on S3."""

from __future__ import annotations

from tornasole.core.access_layer.s3handler import refuse


class TSAccessS3:
    """A file on S3, opened for writing; an error, since S3 is not reached from here yet."""

    def __init__(
        self, bucket_name: str, key_name: str, aws_access_key_id=None, aws_secret_access_key=None, binary: bool = True
    ) -> None:
        raise refuse(bucket_name, key_name)
