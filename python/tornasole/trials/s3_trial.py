"""A trial on S3."""

from __future__ import annotations

from tornasole.trials.trial import Trial


class S3Trial(Trial):
    """A trial under ``s3://bucket_name/prefix_name``; see :class:`Trial` for the other parameters."""

    def __init__(
        self, name, bucket_name, prefix_name, range_steps=None, check=False, index_mode=True, cache=False, **options
    ) -> None:
        self.bucket_name, self.prefix_name = bucket_name, prefix_name
        path = f"s3://{bucket_name}/{prefix_name}"
        super().__init__(name, path, range_steps, check=check, index_mode=index_mode, cache=cache, **options)
