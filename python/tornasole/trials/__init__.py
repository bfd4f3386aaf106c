"""Trials: what training runs saved, and questions about it."""

from tornasole.trials.local_trial import LocalTrial
from tornasole.trials.s3_trial import S3Trial
from tornasole.trials.trial import Trial
from tornasole.trials.utils import create_trial

__all__ = ["LocalTrial", "S3Trial", "Trial", "create_trial"]
