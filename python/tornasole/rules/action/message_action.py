"""Sends a message to a person."""

from __future__ import annotations

import logging
import os
import subprocess

from tornasole.exceptions import SMDebugValueError

_SECONDS = 60


class MessageAction:
    """Hands subject, text and endpoint to the notifier: the program named in ``TORNASOLE_NOTIFIER``.

    The program gets the kind of message ("email" or "sms"), the endpoint and the subject as arguments, and the text on
    its input. Without one the message is logged and counted in :attr:`undelivered`.
    """

    def __init__(self, rule_name: str, message_type: str, message_endpoint: str) -> None:
        if message_type not in ("email", "sms"):
            raise SMDebugValueError(f"no message is of type {message_type!r}; 'email' and 'sms' are")
        self._rule_name = rule_name
        self._protocol = message_type
        self._message_endpoint = str(message_endpoint)
        self._logger = logging.getLogger("tornasole")
        #: How many messages could not be handed on.
        self.undelivered = 0

    def invoke(self, message: str = "", step: int | None = None) -> None:
        """Sends the message."""
        subject = f"SMDebugRule:{self._rule_name} fired"
        text = f"{subject}. {message}"
        notifier = os.environ.get("TORNASOLE_NOTIFIER")
        if not notifier:
            self.undelivered += 1
            self._logger.warning(
                "no notifier is set in TORNASOLE_NOTIFIER; not sent to %s: %s", self._message_endpoint, text
            )
            return
        try:
            command = [notifier, self._protocol, self._message_endpoint, subject]
            subprocess.run(command, input=text.encode(), check=True, timeout=_SECONDS)
        except (OSError, subprocess.SubprocessError):
            self.undelivered += 1
            raise
