"""Files read or written at once, on a disk or on S3: their path says where."""

from __future__ import annotations

import os

from tornasole.core.access_layer.file import TSAccessFile
from tornasole.core.access_layer.s3handler import open_bucket
from tornasole.core.utils import is_s3


def read_whole(path: str) -> bytes:
    """The content of a file; an OSError if it cannot be read."""
    on_s3, bucket, key = is_s3(os.fspath(path))
    if not on_s3:
        with open(path, "rb") as file:
            return file.read()
    (answer,) = open_bucket(bucket).read_many([(key, 0, None)])
    if isinstance(answer, str):
        raise OSError(answer)
    return answer


def write_whole(path: str, content: bytes) -> None:
    """Makes a file, or replaces it: readers see the old one or the new one. Its folder is made."""
    on_s3, bucket, key = is_s3(os.fspath(path))
    if on_s3:
        open_bucket(bucket).write(key, content)
        return
    with TSAccessFile(os.fspath(path), "wb") as file:
        file.write(content)
