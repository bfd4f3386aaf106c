"""The guard under the name that scripts know."""

from __future__ import annotations

from tornasole.core.guard import BASE_ERROR_MESSAGE, Guard, guard

__all__ = ["BASE_ERROR_MESSAGE", "ErrorHandlingAgent"]


class ErrorHandlingAgent:
    """Gives out the one guard of the process."""

    @classmethod
    def get_error_handling_agent(cls) -> Guard:
        """The guard; ``agent.catch_smdebug_errors()`` decorates a function with it."""
        return guard
