"""The hook without a framework: what every framework's hook is, and all that scripts call on one."""

from __future__ import annotations

import time
from typing import Any

from tornasole.core import singleton_utils
from tornasole.core.collection import _flat_texts
from tornasole.core.edits import edits
from tornasole.core.guard import guard, guarded, let_through
from tornasole.core.hook_settings import HookSettings
from tornasole.core.logger import get_logger
from tornasole.core.query_arguments import seconds_since_epoch, tensor_name
from tornasole.exceptions import SMDebugValueError
from tornasole.modes import ALLOWED_MODE_NAMES, ModeKeys

_MODES = {mode.value: mode for mode in ModeKeys}


class BaseHook(HookSettings):
    """Captures tensors of a training run into ``out_dir``.

    ``save_config`` says when, ``reduction_config`` in what form, ``include_collections``, ``include_regex`` and
    ``save_all`` say what is saved besides what the framework always saves. ``include_workers`` is ``"one"`` or
    ``"all"``. ``dry_run`` decides and logs but writes nothing. Further options by keyword: ``worker``, ``fsync``,
    ``when_full``, ``queue_bytes``, ``queue_wait_ms``, ``close_wait_s``, ``spool_dir``, ``spool_bytes``,
    ``readable_by_smdebug``, ``resume``,
    ``shared``, ``flush_on_signal``, ``honour_stop``, ``reduce_threads``, ``max_bytes_per_step``, ``max_bytes_per_run``,
    ``keep_steps``, ``flight_recorder_steps``, ``flight_recorder_bytes``, ``flight_recorder_raw``, ``derived``,
    ``capture_functional``, ``stable_names``, ``warn_unmatched``.

    ``rules`` run inside the training, on a thread of low priority: names of built-in rules, or what
    :mod:`tornasole.rules.configs` makes. The hook saves what they need besides. When a condition is met first, a
    warning is logged and the tensors it is about are saved whole for ``rule_detail_steps`` (3) steps;
    ``on_rule(name, finding)`` is called each time, on that thread. They look at new steps at most every ``rule_poll``
    (0.5) seconds. They ask what ``tornasole check`` asks: of the whole run so far, told once the answer has lasted;
    with parameters, or ``rule_profile="reference"``, what the rules are documented to look for.

    A new hook is the one that ``get_hook()`` returns. It belongs to the process that built it: in a forked child it
    does nothing, and a pickled or copied hook is an empty object. Except that in processes which ``multiprocessing``
    forks before anything was written it goes on: the first of them to write, or their parent, wins the directory.
    """

    _is_automatic = False  # made without the script asking for it
    _has_failed = False  # and switched capture off
    _is_closed = False
    _begun_mode: ModeKeys | None = None  # of the last step that was begun with one; what an enumeration is asked takes long
    _begun_mode_value = 0
    logger = property(lambda self: get_logger())

    def __init__(
        self,
        out_dir=None,
        export_tensorboard=False,
        tensorboard_dir=None,
        dry_run=False,
        reduction_config=None,
        save_config=None,
        include_regex=None,
        include_collections=None,
        save_all=False,
        include_workers="one",
        **options,
    ) -> None:
        try:
            self._set_up(options, options.pop("_config_file", None), locals())
            self._modes_seen = {ModeKeys.GLOBAL}
        except Exception as error:
            raise let_through(error)
        guard.set_hook(self)
        singleton_utils.set_hook(self)

    # ---- steps, for the frameworks

    def _begin_step(self, mode: ModeKeys | None = None) -> bool:
        """Begins the next step of the mode, or of the current one; True if anything can be saved in it."""
        engine = self._engine_hook
        if engine is None or guard.disable_smdebug:
            return False
        if edits.count != self._seen_edits:
            self._sync()
        if mode is None:
            return engine.begin_step()
        if mode is not self._begun_mode:
            self._modes_seen.add(mode)
            self._begun_mode, self._begun_mode_value = mode, mode.value
        return engine.begin_step(self._begun_mode_value)

    def _begin_step_at(self, step: int) -> bool:
        """The same with a number that the framework has for the step, as boosting rounds have one."""
        engine = self._engine_hook
        if engine is None or guard.disable_smdebug:
            return False
        if edits.count != self._seen_edits:
            self._sync()
        return engine.begin_step_at(engine.mode, step)

    def _increment_step(self) -> None:
        """Begins a step in the mode that is set, for a program that counts steps itself."""
        self._begin_step()

    def _end_step(self, partial: bool = False) -> None:
        """Ends the open step, which is then published; ``partial`` marks it as interrupted."""
        if self._engine_hook is not None:
            self._engine_hook.end_step(partial)

    def _wait_until_written(self, seconds: float) -> None:
        """Waits until what was saved can be read, so long at most. For the end of a training, not for its steps."""
        if self._engine_hook is None or self.dry_run or (last := self.last_saved_step) is None:
            return
        until = time.monotonic() + seconds
        while (report := self.report())["last_committed_step"] < last:
            if report["dropped_steps"] or time.monotonic() > until:
                return
            time.sleep(0.001)

    def _go_on_in_child(self) -> bool:
        """In a forked child: captures there, if nothing was written before the fork. Rules stay with the parent."""
        return self._engine_hook is not None and self._rules is None and self._engine_hook.go_on_in_child()

    def _close_engine(self) -> None:
        """Ends the run. Whatever is called afterwards is ignored."""
        self._is_closed = True
        if self._engine_hook is not None:
            self._engine_hook.close()
        if self._rules is not None:
            self._rules.stop()

    def _note_failure(self, where: str, error: Exception) -> None:
        """What became of a tensor that could not be saved is told once; nothing is raised into the training."""
        guard.handle(error, where)

    # ---- state

    @property
    def mode(self) -> ModeKeys:
        """The current mode; ``GLOBAL`` before any was set."""
        return ModeKeys.GLOBAL if self._engine_hook is None else _MODES[self._engine_hook.mode]

    @property
    def step(self) -> int:
        """The number of the current step over all modes; -1 before the first."""
        return -1 if self._engine_hook is None else self._engine_hook.step

    @property
    def mode_steps(self) -> dict[ModeKeys, int]:
        """The number of the current step of each mode that was set so far."""
        if self._engine_hook is None:
            return {}
        steps = {mode: self._engine_hook.mode_step(mode.value) for mode in ModeKeys}
        return {mode: step for mode, step in steps.items() if step >= 0 or mode in self._modes_seen}

    @property
    def last_saved_step(self) -> int | None:
        """The last step of which anything was saved; None before the first."""
        step = -1 if self._engine_hook is None else self._engine_hook.last_saved_step
        return None if step < 0 else step

    @last_saved_step.setter
    def last_saved_step(self, step: int) -> None:
        """Does nothing: subclasses that save for themselves set it, and it is known anyway."""

    @property
    def training_run(self) -> int:
        """Which run with these checkpoints this is; 0 for the first."""
        return 0 if self._engine_hook is None else self._engine_hook.training_run

    @property
    def worker(self) -> str:
        """The name of this process among the workers."""
        return "worker_0" if self._engine_hook is None else self._engine_hook.worker

    @property
    def stop_requested(self) -> bool:
        """Somebody asked the training to stop, through ``stop_request.json`` in the trial; seen at saved steps."""
        return self._engine_hook is not None and self._engine_hook.stop_requested

    def rule_runs(self) -> list[Any]:
        """What the rules inside the training have found so far: a :class:`tornasole.rules.RuleRun` each."""
        return [] if self._rules is None else self._rules.outcomes()

    def report(self) -> dict[str, Any]:
        """What capture did so far: steps due, committed and dropped, coverage of the collections, bytes, errors."""
        return {} if self._engine_hook is None else self._engine_hook.report()

    def set_mode(self, mode: ModeKeys) -> None:
        """Sets the mode of the steps to come; ends the open step if the mode changes. Counts nothing."""
        if not isinstance(mode, ModeKeys):
            raise SMDebugValueError(f"{mode!r} is not a mode; allowed: modes.{', modes.'.join(ALLOWED_MODE_NAMES)}")
        if self._engine_hook is not None:
            self._engine_hook.set_mode(mode.value)
            self._modes_seen.add(mode)

    # ---- values

    def save_scalar(self, name, value, sm_metric=False, timestamp=None, searchable=None) -> None:
        """Saves one number as ``scalar/<name>`` in the next step that is saved, whatever the schedules say.

        ``sm_metric`` (``searchable`` in older scripts) makes it a line of the SageMaker metrics file too; ``timestamp``
        is in seconds since 1970, now if it is left out. A value that is not exactly one number is a TypeError.
        """
        if self._engine_hook is not None and not guard.disable_smdebug:
            time_of = None if timestamp is None else seconds_since_epoch(timestamp)
            self._engine_hook.save_scalar(tensor_name(name), value, bool(sm_metric or searchable), time_of)

    @guarded()
    def save_tensor(self, tensor_name: str, tensor_value, collections_to_write="default") -> None:
        """Saves a value in the open step, or the next one, if one of these collections is due then.

        The collections are created and included if need be. A value that is no array and cannot be made one is told of
        and left out.
        """
        if self._engine_hook is None:
            return
        array = self._as_array(tensor_name, tensor_value)
        if array is None:
            return
        names = self._name_in_collections(collections_to_write, tensor_name)
        if edits.count != self._seen_edits:
            self._sync()
        self._engine_hook.save_tensor(tensor_name, array, names)

    def _name_in_collections(self, collections: Any, tensor_name: str) -> list[str]:
        """Makes the tensor a member of these collections, created and included if need be; their names."""
        return [self._name_in_collection(name, tensor_name) for name in _flat_texts("collections", collections)]

    def record_trace_events(self, timestamp, training_phase="", op_name="", phase="X", duration=1, **kwargs) -> None:
        """Accepted and left out: tensors are captured here, times of operations are not."""

    def _name_in_collection(self, name: str, tensor_name: str) -> str:
        collection = self.get_collection(name)
        if tensor_name not in collection._tensor_names:
            collection.add_tensor_name(tensor_name)
        if collection.name not in self.include_collections:
            self.include_collections.append(collection.name)
            edits.note()
        return collection.name

    def _as_array(self, name: str, value: Any) -> Any:
        """The value as something the engine can read; None, with a warning, if there is no way."""
        import numpy

        try:
            if isinstance(value, (int, float, complex, str, bytes)):
                value = numpy.array([value])
            elif isinstance(value, (list, tuple)):
                value = numpy.asarray(value)
            is_bad = value is None or isinstance(value, (dict, set)) or getattr(value, "dtype", None) == object
        except ValueError:  # a list of lists of different lengths
            is_bad = True
        if is_bad:
            get_logger().warning("save_tensor: the value of %r cannot be made an array; it is left out", name)
        return None if is_bad else value

    # ---- what is saved now

    def should_save_tensor_or_collection(self, tensor_name: str, collection_name: str) -> bool:
        """Whether a tensor would be saved in this step, through that collection or another. False before the first."""
        if self._engine_hook is None or guard.disable_smdebug or not self.prepared_collections:
            return False
        return self._engine_hook.should_save(tensor_name, collection_name)

    # ---- the end

    @guarded(even_when_off=True)
    def close(self) -> None:
        """Ends the run: what is left is written, then the end marker. Later calls are ignored with one warning."""
        self._close_engine()

    def _cleanup(self) -> None:
        self.close()

    def __getstate__(self) -> dict:
        return {}

    def __repr__(self) -> str:
        names = ("out_dir", "tensorboard_dir", "step", "mode", "mode_steps", "include_collections", "save_config")
        names += ("reduction_config", "save_all", "dry_run")
        fields = ",\n".join(f"    {name}={getattr(self, name, None)!r}" for name in names)
        return f"<{type(self).__module__}.{type(self).__name__} at {hex(id(self))}: (\n{fields}\n)>"
