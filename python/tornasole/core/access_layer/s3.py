"""A file on S3."""

from __future__ import annotations

import re

from tornasole.core.access_layer.s3handler import ReadObjectRequest, S3Handler, open_bucket
from tornasole.exceptions import SMDebugNotImplementedError, SMDebugRuntimeError, SMDebugValueError


class TSAccessS3:
    """An object that is collected in memory and appears when it is closed.

    Repeated slashes in the key become one. Credentials are found as for every ``s3://`` path, so those two parameters
    must be None. The bucket must exist: it is not created.
    """

    def __init__(
        self,
        bucket_name: str,
        key_name: str,
        aws_access_key_id: str | None = None,
        aws_secret_access_key: str | None = None,
        binary: bool = True,
    ) -> None:
        if aws_access_key_id is not None or aws_secret_access_key is not None:
            raise SMDebugValueError(
                "aws_access_key_id, aws_secret_access_key: allowed: None; credentials come from the environment"
            )
        self.bucket_name = bucket_name
        self.key_name = re.sub("/+", "/", key_name)
        self.binary = binary
        self.flushed = False
        self.data: bytearray | str = bytearray() if binary else ""
        self._read: bytes = b""
        self._position = 0
        self._bucket = open_bucket(bucket_name)

    def open(self, bucket_name: str, mode: str) -> None:
        """Not supported: an object is opened when this is made."""
        raise SMDebugNotImplementedError("open: an object is opened when TSAccessS3 is made")

    def write(self, _data: bytes | str) -> list[int]:
        """Appends, and returns where that begins and how long it is."""
        start = len(self.data)
        self.data += _data
        return [start, len(_data)]

    def flush(self) -> None:
        """Nothing: an object appears whole."""

    def close(self) -> None:
        """Writes the object, the first time."""
        if self.flushed:
            return
        content = bytes(self.data) if self.binary else self.data.encode()
        self._bucket.write(self.key_name, content)
        self.data = bytearray() if self.binary else ""
        self.flushed = True

    def ingest_all(self) -> None:
        """Reads the whole object, for ``read``."""
        content = S3Handler.get_object(ReadObjectRequest(f"s3://{self.bucket_name}/{self.key_name}"))
        if content is None:
            raise SMDebugRuntimeError(f"s3://{self.bucket_name}/{self.key_name}: there is no such object to read")
        self._read, self._position = content, 0

    def read(self, n: int) -> bytes:
        """The next ``n`` bytes of what ``ingest_all`` read."""
        if self._position + n > len(self._read):
            raise SMDebugRuntimeError(f"read: {n} bytes at {self._position}; there are {len(self._read)}")
        part = self._read[self._position : self._position + n]
        self._position += n
        return part

    def has_data(self) -> bool:
        """Whether there is something left to read."""
        return self._position < len(self._read)

    def __enter__(self) -> TSAccessS3:
        return self

    def __exit__(self, *error) -> None:
        self.close()
