"""Requests for objects by their address, and what answers them: files of a directory today, S3 with an error.

S3 itself is not reached yet. Code that names these classes imports and runs; the first use of a bucket says so.
"""

from __future__ import annotations

import os

from tornasole.core.logger import get_logger
from tornasole.core.utils import is_s3
from tornasole.exceptions import SMDebugNotImplementedError, SMDebugTypeError, SMDebugValueError


class ReadObjectRequest:
    """An object to read: whole, from ``start`` on, or ``length`` bytes from there. ``path``: a file or on S3."""

    def __init__(self, path: str, start: int | None = None, length: int | None = None) -> None:
        self.is_s3, self.bucket, key = is_s3(path)
        self.key = key if self.is_s3 else path
        self.start = start or 0
        self.length = length
        self.download_entire_file = start is None


class ListRequest:
    """Keys to list: those of a bucket with a prefix, grouped at a delimiter, after a key."""

    def __init__(self, Bucket: str, Prefix: str = "", Delimiter: str = "", StartAfter: str = "") -> None:
        self.bucket = Bucket
        self.prefix = Prefix
        self.delimiter = Delimiter
        self.start_after = StartAfter


class DeleteRequest:
    """Keys to delete: those of a bucket with a prefix."""

    def __init__(self, Bucket: str, Prefix: str = "") -> None:
        self.bucket = Bucket
        self.prefix = Prefix


def refuse(bucket: str, key: str) -> SMDebugNotImplementedError:
    """The error for an address on S3."""
    return SMDebugNotImplementedError(
        f"s3://{bucket}/{key}: S3 cannot be reached from here; allowed: a local path. Copy the run to a directory first"
    )


class S3Handler:
    """Reads, lists and deletes objects. All functions are static, as callers expect."""

    @staticmethod
    def get_object(object_request: ReadObjectRequest) -> bytes | None:
        """The bytes of one object; None, with a log line, if it cannot be read."""
        if object_request.is_s3:
            raise refuse(object_request.bucket, object_request.key)
        try:
            with open(object_request.key, "rb") as file:
                file.seek(object_request.start, os.SEEK_SET)
                return file.read(-1 if object_request.length is None else object_request.length)
        except OSError as error:
            get_logger().error("%s: not read (%s)", object_request.key, error.strerror)
            return None

    @staticmethod
    def get_objects(object_requests: list[ReadObjectRequest], use_multiprocessing=True, n_process=None) -> list:
        """The bytes of each object in the order of the requests. The last two parameters have no effect."""
        if not isinstance(object_requests, list):
            raise SMDebugTypeError(
                f"object_requests: {type(object_requests).__name__}; allowed: a list of ReadObjectRequest"
            )
        return [S3Handler.get_object(request) for request in object_requests]

    @staticmethod
    def list_prefix(lr: ListRequest) -> list[str]:
        """The keys of one request."""
        raise refuse(lr.bucket, lr.prefix)

    @staticmethod
    def list_prefixes(list_requests: list[ListRequest]) -> list[list[str]]:
        """The keys of each request."""
        return [S3Handler.list_prefix(request) for request in list_requests]

    @staticmethod
    def delete_prefix(path: str | None = None, delete_request: DeleteRequest | None = None) -> None:
        """Deletes what lies under a path on S3, or what a request names."""
        if (path is None) == (delete_request is None):
            raise SMDebugValueError("path, delete_request: allowed: exactly one of them")
        if path is not None:
            on_s3, bucket, prefix = is_s3(path)
            if not on_s3:
                raise SMDebugValueError(f"path: '{path}' is not on S3; allowed: s3://<bucket>/<prefix>")
            delete_request = DeleteRequest(bucket, prefix)
        S3Handler.delete_prefixes([delete_request])

    @staticmethod
    def delete_prefixes(delete_requests: list[DeleteRequest]) -> None:
        """Deletes what the requests name."""
        for request in delete_requests or []:
            raise refuse(request.bucket, request.prefix)
