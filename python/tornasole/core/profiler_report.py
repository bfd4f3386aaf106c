"""What a report of the platform's profiler calls when it opens. Nothing is ever sent from here.

The report of the reference tells a server that it was opened. There is no such thing in Tornasole: the call is accepted,
so that the report runs, and does nothing. The address is made and returned to whoever asks for it, and never fetched.
"""

from __future__ import annotations

from tornasole.core.config_constants import PROFILER_REPORT_VERSION, PROFILER_TELEMETRY_URL
from tornasole.exceptions import SMDebugValueError


def get_aws_region_from_processing_job_arn(processing_job_arn: str) -> str:
    """The region in the name of a processing job, ``arn:aws:sagemaker:<region>:<account>:processing-job/<name>``."""
    parts = processing_job_arn.split(":")
    if len(parts) < 4:
        raise SMDebugValueError(
            f"processing_job_arn: '{processing_job_arn}'; allowed: "
            "arn:aws:sagemaker:<region>:<account>:processing-job/<name>"
        )
    return parts[3]


def _prepare_telemetry_url(processing_job_arn: str) -> str:
    """The address the reference's report would fetch."""
    from urllib.parse import urlencode  # here, since almost nobody asks

    query = urlencode({"x-artifact-id": PROFILER_REPORT_VERSION, "x-arn": processing_job_arn}, safe=":/+")
    region = get_aws_region_from_processing_job_arn(processing_job_arn)
    return f"{PROFILER_TELEMETRY_URL.format(region=region)}/?{query}"


def setup_profiler_report(processing_job_arn: str, opt_out: bool = False) -> None:
    """Does nothing: no report is made known to anybody, whatever ``opt_out`` says."""
