"""The exceptions of Tornasole: one base, and classes that are also the built-in ones they resemble."""

from __future__ import annotations


class SMDebugError(Exception):
    """The base of all of them."""


TornasoleError = SMDebugError


class SMDebugTypeError(SMDebugError, TypeError):
    """A value of a type that cannot be used."""


class SMDebugValueError(SMDebugError, ValueError):
    """A value that is not allowed."""


class SMDebugRuntimeError(SMDebugError, RuntimeError):
    """A call that cannot be carried out now."""


class SMDebugNotImplementedError(SMDebugError, NotImplementedError):
    """A call that this kind of object does not have."""


class InvalidCollectionConfiguration(SMDebugError):
    """A collection that can never match anything: it has neither a pattern nor a tensor's name."""

    def __init__(self, c_name: str, message: str | None = None) -> None:
        self.c_name = c_name
        self.message = message or (
            f"collection {c_name!r} has neither a pattern nor a tensor name; give it include_regex or add names to it"
        )
        super().__init__(self.message)


_KINDS = {
    "base": SMDebugError,
    "type": SMDebugTypeError,
    "value": SMDebugValueError,
    "runtime": SMDebugRuntimeError,
    "not_implemented": SMDebugNotImplementedError,
    "file_not_found": FileNotFoundError,
}


def from_engine(kind, message, details):
    """The exception for an error of the engine; called by the engine's bindings."""
    if kind == "bad_collection":
        name = message.split('"')[1] if message.count('"') > 1 else message
        return InvalidCollectionConfiguration(name, message)
    return _KINDS.get(kind, SMDebugError)(message)
