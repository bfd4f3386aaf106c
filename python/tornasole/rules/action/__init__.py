"""What happens when the condition of a rule is met, as JSON says it."""

from tornasole.rules.action.action import Actions

__all__ = ["Actions"]
