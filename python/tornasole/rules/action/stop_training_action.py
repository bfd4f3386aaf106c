"""Asks the training to stop."""

from __future__ import annotations

import logging
import os
import time

STOP_REQUEST_FILE = "stop_request.json"


class StopTrainingAction:
    """Leaves a request in the trial, which the hook of the training honours at its next saved step.

    Nothing happens unless the prefix is empty or the name of the trial begins with it.
    """

    def __init__(self, rule_name: str, training_job_prefix: str, trial=None) -> None:
        self._rule_name = rule_name
        self._training_job_prefix = str(training_job_prefix)
        self._trial = trial
        self._logger = logging.getLogger("tornasole")

    def invoke(self, message: str = "", step: int | None = None) -> None:
        """Writes the request."""
        from tornasole.rules.rule import write_json

        if self._trial is None or not self._trial.name.startswith(self._training_job_prefix):
            self._logger.info(
                "rule %s: the training is not stopped, its name does not begin with %r",
                self._rule_name,
                self._training_job_prefix,
            )
            return
        path = os.path.join(self._trial.path, STOP_REQUEST_FILE)
        request = {"rule": self._rule_name, "message": message, "time": time.time()}
        request["prefix"] = self._training_job_prefix
        if step is not None:
            request["step"] = step
        write_json(path, request)
        self._logger.warning("rule %s asks the training to stop: %s", self._rule_name, path)
