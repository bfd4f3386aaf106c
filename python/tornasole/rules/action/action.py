"""Actions: reads the JSON that says what happens when a condition is met, and does it."""

from __future__ import annotations

import json
import logging

from tornasole.exceptions import SMDebugValueError
from tornasole.rules.action.exec_action import ExecAction
from tornasole.rules.action.file_action import FileAction
from tornasole.rules.action.message_action import MessageAction
from tornasole.rules.action.stop_training_action import StopTrainingAction

# Name -> the key it needs.
_NEEDED_KEYS = {
    "stoptraining": "training_job_prefix",
    "email": "endpoint",
    "sms": "endpoint",
    "exec": "command",
    "file": "path",
}
ALLOWED_ACTIONS = list(_NEEDED_KEYS)


class Actions:
    """The actions of one rule.

    ``actions_str`` is empty, one JSON object, or a list of them; names and keys are compared without case:

    - ``{"name": "stoptraining", "training_job_prefix": "…"}`` asks the training to stop
    - ``{"name": "email", "endpoint": "…"}`` and ``"sms"`` hand a message to the program named in the variable
      ``TORNASOLE_NOTIFIER``
    - ``{"name": "exec", "command": ["program", "argument"…]}`` runs a program with the finding as JSON on its input
    - ``{"name": "file", "path": "…"}`` appends the finding as a line of JSON

    Each is done once, unless it has ``"repeat": true``. One that fails is logged; the rule goes on.
    """

    def __init__(self, actions_str: str | None, rule_name: str, trial=None) -> None:
        self._actions: list = []
        self._repeats: list[bool] = []
        self._done: set[int] = set()
        self._logger = logging.getLogger("tornasole")
        self._rule_name = rule_name
        self._trial = trial
        text = (actions_str or "").strip()
        if text:
            self._register(_parse(text))

    def _register(self, entries) -> None:
        if isinstance(entries, dict):
            entries = [entries]
        if not isinstance(entries, list):
            self._logger.warning("rule %s: actions are an object or a list of them, not %r", self._rule_name, entries)
            return
        for entry in entries:
            try:
                action, repeats = self._made_of(entry)
            except SMDebugValueError as error:
                self._logger.warning("rule %s: an action is left out: %s", self._rule_name, error)
                continue
            self._actions.append(action)
            self._repeats.append(repeats)

    def _made_of(self, entry):
        if not isinstance(entry, dict):
            raise SMDebugValueError(f"{entry!r} is no object")
        fields = {str(key).lower(): value for key, value in entry.items()}
        name = str(fields.get("name", "")).lower()
        if name not in _NEEDED_KEYS:
            raise SMDebugValueError(f"no action is called {fields.get('name')!r}; there are {', '.join(_NEEDED_KEYS)}")
        argument = fields.get(_NEEDED_KEYS[name])
        if argument is None:
            raise SMDebugValueError(f"action {name} needs {_NEEDED_KEYS[name]!r}: {entry!r}")
        repeats = fields.get("repeat") is True
        match name:
            case "stoptraining":
                return StopTrainingAction(self._rule_name, argument, trial=self._trial), repeats
            case "exec":
                return ExecAction(self._rule_name, argument), repeats
            case "file":
                return FileAction(self._rule_name, argument), repeats
        return MessageAction(self._rule_name, name, argument), repeats

    def invoke(self, message: str = "", step: int | None = None) -> None:
        """Does what is to be done about a condition that is met at a global step."""
        for place, action in enumerate(self._actions):
            if place in self._done and not self._repeats[place]:
                continue
            self._done.add(place)
            try:
                action.invoke(message, step=step)
            except Exception as error:  # noqa: BLE001 - the rule goes on, whatever an action does
                self._logger.error("rule %s: action %s failed: %s", self._rule_name, type(action).__name__, error)


def _parse(text: str):
    """JSON, also with its quotes escaped, as it comes through some command lines."""
    try:
        return json.loads(text)
    except ValueError as error:
        problem = error
    if '\\"' in text:
        try:
            return json.loads(text.replace('\\"', '"'))
        except ValueError:
            pass
    raise SMDebugValueError(f"actions are JSON, and this is not: {text!r}: {problem}")
