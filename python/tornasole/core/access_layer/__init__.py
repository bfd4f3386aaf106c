"""Files of a trial."""

from tornasole.core.access_layer.file import TSAccessFile
from tornasole.core.access_layer.utils import check_dir_exists, has_training_ended, training_has_ended

__all__ = ["TSAccessFile", "check_dir_exists", "has_training_ended", "training_has_ended"]
