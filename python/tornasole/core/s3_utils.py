"""Objects on S3."""

from __future__ import annotations

from tornasole.core.access_layer.s3handler import ListRequest, S3Handler


def list_s3_objects(
    bucket: str, prefix: str, start_after_key: str | None = None, delimiter: str = ""
) -> tuple[list[str], str | None]:
    """The keys under a prefix, and the last of them, to go on from there; None if there are none.

    ``start_after_key``: only keys that sort after it; the prefix itself if it is not given.
    """
    after = prefix if start_after_key is None else start_after_key
    keys = S3Handler.list_prefix(ListRequest(Bucket=bucket, Prefix=prefix, StartAfter=after, Delimiter=delimiter))
    return keys, keys[-1] if keys else None
