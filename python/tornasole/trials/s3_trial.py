"""A trial on S3."""

from __future__ import annotations

from tornasole.trials.trial import Trial


class S3Trial(Trial):
    """A trial under ``s3://bucket_name/prefix_name``; see :class:`Trial` for the other parameters."""

    def __init__(
        self,
        name,
        bucket_name,
        prefix_name,
        range_steps=None,
        check=False,
        index_mode=True,
        cache=False,
        *,
        timeout=None,
        on_damage="fail",
    ) -> None:
        self.bucket_name = bucket_name
        self.prefix_name = prefix_name
        super().__init__(
            name,
            f"s3://{bucket_name}/{prefix_name}",
            range_steps=range_steps,
            check=check,
            index_mode=index_mode,
            cache=cache,
            timeout=timeout,
            on_damage=on_damage,
        )
