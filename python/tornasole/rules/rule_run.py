"""RuleRun: what a rule did over the steps it was asked about."""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import Any


@dataclass
class RuleRun:
    """What a rule did over the steps it was asked about."""

    name: str = ""
    steps_evaluated: int = 0
    #: Not saved, or without a tensor the rule needs; a pass over a trial does not count them.
    steps_skipped: int = 0
    #: Global steps at which the condition was met.
    steps_met: list[int] = field(default_factory=list)
    #: "end_step", "end_of_rule", "no more data"; of a pass also "all known steps", "condition met", "the run ended" …
    ended_because: str = ""
    #: RuleTriggered, Violations, Datapoints, RuleParameters, Details.
    report: dict[str, Any] = field(default_factory=dict)
    #: Files of the rule besides the report, by name.
    files: dict[str, bytes] = field(default_factory=dict)
    #: Why it could not go on.
    error: Exception | None = None

    @property
    def violations(self) -> list[dict[str, Any]]:
        """The first 50 and the last 50 findings: step, mode, mode_step, worker, tensor, value, threshold, message."""
        return self.report.get("Details", {}).get("violations", [])
