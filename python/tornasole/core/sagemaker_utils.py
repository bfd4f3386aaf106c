"""Whether this is a SageMaker job."""

import os


def is_sagemaker_job() -> bool:
    """True in a SageMaker training job: the variable ``TRAINING_JOB_NAME`` is there."""
    return "TRAINING_JOB_NAME" in os.environ
