"""Requests for objects by their address, and what answers them: S3, or files of a directory."""

from __future__ import annotations

import os
from functools import lru_cache

from tornasole import _engine
from tornasole.core.logger import get_logger
from tornasole.core.utils import is_s3
from tornasole.exceptions import SMDebugTypeError, SMDebugValueError


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


@lru_cache(maxsize=16)
def _open_bucket(name: str, _surroundings: int) -> _engine.Bucket:
    return _engine.Bucket.open(name)


def open_bucket(name: str) -> _engine.Bucket:
    """The bucket of that name, with its connections, as long as the variables that say where it is stay the same."""
    surroundings = [item for item in os.environ.items() if item[0].startswith(("AWS_", "TORNASOLE_S3"))]
    return _open_bucket(name, hash((os.getpid(), *sorted(surroundings))))  # the values themselves are not kept


def _read_file(request: ReadObjectRequest) -> bytes | str:
    try:
        with open(request.key, "rb") as file:
            file.seek(request.start, os.SEEK_SET)
            return file.read(-1 if request.length is None else request.length)
    except OSError as error:
        return f"{request.key}: {error.strerror}"


class S3Handler:
    """Reads, lists and deletes objects. All functions are static, as callers expect.

    Credentials, region and endpoint are found as for every ``s3://`` path of a run; buckets are never created.
    """

    @staticmethod
    def get_object(object_request: ReadObjectRequest) -> bytes | None:
        """The bytes of one object; None, with a log line, if it cannot be read."""
        return S3Handler.get_objects([object_request])[0]

    @staticmethod
    def get_objects(
        object_requests: list[ReadObjectRequest], use_multiprocessing: bool = True, n_process: int | None = None
    ) -> list[bytes | None]:
        """The bytes of each object in the order of the requests, read several at a time.

        None, with a log line, stands for an object that cannot be read. The last two parameters have no effect.
        """
        if not isinstance(object_requests, list):
            raise SMDebugTypeError(
                f"object_requests: {type(object_requests).__name__}; allowed: a list of ReadObjectRequest"
            )
        answers: list[bytes | str | None] = [None] * len(object_requests)
        by_bucket: dict[str, list[int]] = {}
        for place, request in enumerate(object_requests):
            if request.is_s3:
                by_bucket.setdefault(request.bucket, []).append(place)
            else:
                answers[place] = _read_file(request)
        for bucket, places in by_bucket.items():
            wanted = [(r.key, r.start, r.length) for r in (object_requests[place] for place in places)]
            for place, answer in zip(places, open_bucket(bucket).read_many(wanted)):
                answers[place] = answer
        for answer in answers:
            if isinstance(answer, str):
                get_logger().error("not read: %s", answer)
        return [None if isinstance(answer, str) else answer for answer in answers]

    @staticmethod
    def list_prefix(lr: ListRequest) -> list[str]:
        """The keys of one request: first those the delimiter cut short, then whole ones, each sorted."""
        return open_bucket(lr.bucket).list(lr.prefix, lr.delimiter, lr.start_after)

    @staticmethod
    def list_prefixes(list_requests: list[ListRequest]) -> list[list[str]]:
        """The keys of each request."""
        if not isinstance(list_requests, list):
            raise SMDebugTypeError(f"list_requests: {type(list_requests).__name__}; allowed: a list of ListRequest")
        return [S3Handler.list_prefix(request) for request in list_requests]

    @staticmethod
    def delete_prefix(path: str | None = None, delete_request: DeleteRequest | None = None) -> None:
        """Deletes every object whose key begins with a path on S3, or with what a request names."""
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
        """Deletes what the requests name. An empty prefix, which is a whole bucket, is an error."""
        for request in delete_requests or []:
            open_bucket(request.bucket).remove_below(request.prefix)
