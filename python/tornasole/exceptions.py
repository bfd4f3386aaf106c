"""The exceptions of Tornasole: one base, and classes that are also the built-in ones they resemble.

Those of trials and rules carry what they are about as attributes (``tname``, ``step``, ``mode``, ``last_step``,
``worker``...). They can be raised by anybody: each constructor takes these attributes and makes the message of them.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from tornasole.modes import ModeKeys


class SMDebugError(Exception):
    """The base of all of them."""


TornasoleError = SMDebugError


class SMDebugCustomerError(SMDebugError):
    """A mistake in the program that is debugged, not in the debugger."""


class SMDebugTypeError(SMDebugError, TypeError):
    """A value of a type that cannot be used."""


class SMDebugValueError(SMDebugError, ValueError):
    """A value that is not allowed."""


class SMDebugRuntimeError(SMDebugError, RuntimeError):
    """A call that cannot be carried out now."""


class RunDirectoryOccupied(SMDebugRuntimeError):
    """A directory that another run, live or finished, lives in."""


class SMDebugNotImplementedError(SMDebugError, NotImplementedError):
    """A call that this kind of object does not have."""


def _mode_name(mode: object) -> str:
    return getattr(mode, "name", str(mode))


def _global_mode() -> ModeKeys:
    from tornasole.modes import ModeKeys

    return ModeKeys.GLOBAL


class _Described(SMDebugError):
    """An exception with attributes. The message is made of them, unless whoever raises it knows more."""

    _message: str | None = None

    def __str__(self) -> str:
        return self._describe() if self._message is None else self._message

    def _describe(self) -> str:
        raise NotImplementedError


class InvalidCollectionConfiguration(_Described):
    """A collection that can never match anything: it has neither a pattern nor a tensor's name."""

    def __init__(self, c_name: str, message: str | None = None) -> None:
        super().__init__(c_name, message)
        self.c_name = c_name
        self._message = message

    @property
    def collection(self) -> str:
        """The name of the collection."""
        return self.c_name

    def _describe(self) -> str:
        return (
            f"collection {self.c_name!r} has neither a pattern nor a tensor name; give it include_regex or add names "
            "to it"
        )


class MissingCollectionFiles(_Described):
    """The run is over, or was silent for too long, and not every worker has written its collections file."""

    def __init__(self) -> None:
        super().__init__()

    def _describe(self) -> str:
        return "the collections files of some workers are missing, and the run is over"


class IndexReaderException(_Described):
    """An index file is damaged, or its name has no step and worker."""

    def __init__(self, message: str) -> None:
        super().__init__(message)
        self.message = message

    def _describe(self) -> str:
        return str(self.message)


class TensorUnavailable(_Described):
    """No tensor of this name has been seen. In a run that goes on it may still come."""

    def __init__(self, tname: str) -> None:
        super().__init__(tname)
        self.tname = tname

    @property
    def tensor(self) -> str:
        """The name that was asked for."""
        return self.tname

    def _describe(self) -> str:
        return f"no tensor {self.tname} was saved"


class TensorUnavailableForStep(_Described):
    """The step is there, and the tensor's value is not and never will be.

    ``reason`` says why: "not saved", "only reductions", "only a shape", "missing file", "damaged", or None if whoever
    raised it did not say.
    """

    def __init__(
        self, tname: str, step: int, mode: ModeKeys | None = None, has_reductions: bool = False
    ) -> None:
        super().__init__(tname, step, mode, has_reductions)
        self.tname = tname
        self.step = step
        self.mode = _global_mode() if mode is None else mode
        self.has_reductions = has_reductions
        self.reason: str | None = None
        self.worker: str | None = None

    @property
    def tensor(self) -> str:
        """The name of the tensor."""
        return self.tname

    def _describe(self) -> str:
        text = f"tensor {self.tname} has no saved value at step {self.step} of mode {_mode_name(self.mode)}"
        return text + "; reductions of it were saved, ask for them" if self.has_reductions else text


class ShapeUnavailableForStep(_Described):
    """Neither the shape of the tensor was saved at this step nor its value."""

    def __init__(self, tname: str, step: int, mode: ModeKeys | None = None) -> None:
        super().__init__(tname, step, mode)
        self.tname = tname
        self.step = step
        self.mode = _global_mode() if mode is None else mode

    @property
    def tensor(self) -> str:
        """The name of the tensor."""
        return self.tname

    def _describe(self) -> str:
        return f"tensor {self.tname} has no saved shape at step {self.step} of mode {_mode_name(self.mode)}"


class StepUnavailable(_Described):
    """The run has passed this step without saving it."""

    def __init__(self, step: int, mode: ModeKeys) -> None:
        super().__init__(step, mode)
        self.step = step
        self.mode = mode

    def _describe(self) -> str:
        return f"step {self.step} of mode {_mode_name(self.mode)} was not saved"


class StepNotYetAvailable(_Described):
    """The run goes on, and this step has not been seen. It may come, or be passed over."""

    def __init__(self, step: int, mode: ModeKeys) -> None:
        super().__init__(step, mode)
        self.step = step
        self.mode = mode

    def _describe(self) -> str:
        return f"step {self.step} of mode {_mode_name(self.mode)} is not there yet"


class NoMoreData(_Described):
    """The run is over, and this step lies after its last one."""

    def __init__(self, step: int, mode: ModeKeys, last_step: int) -> None:
        super().__init__(step, mode, last_step)
        self.step = step
        self.mode = mode
        self.last_step = last_step

    @property
    def msg(self) -> str:
        """The message."""
        return str(self)

    def _describe(self) -> str:
        return (
            f"step {self.step} of mode {_mode_name(self.mode)} will not come: the run is over, "
            f"and its last step is {self.last_step}"
        )


class NoMoreProfilerData(_Described):
    """The run is over, and nothing was measured at or after this time."""

    def __init__(self, timestamp: int) -> None:
        super().__init__(timestamp)
        self.timestamp = timestamp

    @property
    def msg(self) -> str:
        """The message."""
        return str(self)

    def _describe(self) -> str:
        return f"nothing was measured at or after {self.timestamp}, and the run is over"


class InvalidWorker(_Described):
    """This worker did not save this tensor at this step."""

    def __init__(self, worker: str) -> None:
        super().__init__(worker)
        self.worker = worker

    def _describe(self) -> str:
        return f"worker {self.worker} did not save this tensor at this step"


class RuleEvaluationConditionMet(_Described):
    """A rule has found what it looks for. ``end_of_rule``: it need not be asked about further steps."""

    def __init__(self, rule_name: str, step: int, end_of_rule: bool = False) -> None:
        super().__init__(rule_name, step, end_of_rule)
        self.rule_name = rule_name
        self.step = step
        self.end_of_rule = end_of_rule

    def _describe(self) -> str:
        return f"the condition of rule {self.rule_name} is met at step {self.step}"


class InsufficientInformationForRuleInvocation(_Described):
    """A rule lacks a parameter, or data, that it must have."""

    def __init__(self, rule_name: str, message: str) -> None:
        super().__init__(rule_name, message)
        self.rule_name = rule_name
        self.message = message

    def _describe(self) -> str:
        return f"rule {self.rule_name} cannot be run: {self.message}"


_PLAIN = {
    "base": SMDebugError,
    "type": SMDebugTypeError,
    "value": SMDebugValueError,
    "runtime": SMDebugRuntimeError,
    "not_implemented": SMDebugNotImplementedError,
    "file_not_found": FileNotFoundError,
}


def _described(kind: str, message: str, details: dict) -> _Described | None:
    from tornasole.modes import ModeKeys

    tensor, step, worker = details.get("tensor"), details.get("step"), details.get("worker")
    mode = ModeKeys(details.get("mode", ModeKeys.GLOBAL.value))
    match kind:
        case "bad_collection":
            # The engine's message has the name between quotation marks.
            return InvalidCollectionConfiguration(message.split('"')[1] if message.count('"') > 1 else message)
        case "missing_collection_files":
            return MissingCollectionFiles()
        case "index_reader":
            return IndexReaderException(message)
        case "tensor_unavailable":
            return TensorUnavailable(tensor)
        case "tensor_unavailable_for_step":
            unavailable = TensorUnavailableForStep(tensor, step, mode, details.get("has_reductions", False))
            unavailable.reason = details.get("reason") or None
            unavailable.worker = worker or None
            return unavailable
        case "shape_unavailable_for_step":
            return ShapeUnavailableForStep(tensor, step, mode)
        case "step_unavailable":
            return StepUnavailable(step, mode)
        case "step_not_yet_available":
            return StepNotYetAvailable(step, mode)
        case "no_more_data":
            return NoMoreData(step, mode, details.get("last_step", -1))
        case "invalid_worker":
            return InvalidWorker(worker)
        case "insufficient_information":
            # The engine's message begins with "rule <name>: ".
            return InsufficientInformationForRuleInvocation(message.partition(":")[0].removeprefix("rule "), message)
    return None


def from_engine(kind: str, message: str, details: dict) -> Exception:
    """The exception for an error of the engine, with its message; called by the engine's bindings."""
    if details.get("reason") == "occupied":
        return RunDirectoryOccupied(message)
    described = _described(kind, message, details)
    if described is None:
        return _PLAIN.get(kind, SMDebugError)(message)
    described._message = message
    return described
