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
    return _KINDS.get(kind, SMDebugError)(message)
