"""Trial: what a training run saved, while it runs or after it ended."""

from __future__ import annotations

import logging
import os
from collections.abc import Iterable
from typing import Any

from tornasole import _engine
from tornasole.core.query_arguments import (
    checked_range_steps,
    flat_patterns,
    mode_number,
    step_number,
    tensor_name,
    worker_name,
)
from tornasole.core.tensor import StepState, Tensor
from tornasole.core.utils import is_s3
from tornasole.exceptions import SMDebugTypeError, SMDebugValueError
from tornasole.modes import ModeKeys
from tornasole.trials.live_collections import LiveCollections
from tornasole.trials.older_queries import OlderQueries
from tornasole.trials.step_maps import GlobalToMode, ModeToGlobal

POLL_SECONDS = 2.0
# So many polls for the collections files are nothing unusual; after them the path may be wrong.
_QUIET_POLLS = 10

# For a copy: what it is opened with, and what it gets by being opened.
_OPTIONS = ("range_steps", "parallel", "check", "index_mode", "cache", "timeout")
_OF_ONE_OPENING = ("_engine", "_collections", "_global_to_mode", "_mode_to_global", "_damage_told", "logger", "path")


def _open_again(kind: type[Trial], name: str, path: str, options: dict, held: dict, changed: dict) -> Trial:
    trial = kind.__new__(kind)
    Trial.__init__(trial, name, path, **options)
    vars(trial).update(held)
    trial.poll_interval = trial._poll_interval
    trial._collections.adopt(changed)
    return trial


class Trial(OlderQueries):
    """What a run saved. Opening it waits until every worker has written its collections file.

    Most questions first load what was written since the last one, as long as :attr:`dynamic_refresh` is true and the
    run has not ended; :func:`tornasole.analysis.utils.no_refresh` switches that off for a while.

    A ``step`` is a step of the ``mode`` beside it; with the default, ``GLOBAL``, a global step.

    :param name: how messages call it
    :param path: the directory the run was written to
    :param range_steps: ``(begin, end)``: only global steps from ``begin`` up to, not including, ``end``; None is open
    :param parallel: accepted, without effect
    :param check: read and verify every value at opening
    :param index_mode: accepted; a trial is always read through its index
    :param cache: keep values in memory after they were first read
    :param timeout: seconds without a sign of life of the run after which a wait gives up; None: never
    :param on_damage: "fail" raises at a damaged file, "skip" leaves it out and lists it in :attr:`damage`
    """

    def __init__(
        self,
        name: str | None,
        path: str,
        range_steps: tuple[int | None, int | None] | None = None,
        parallel: bool = True,
        check: bool = False,
        index_mode: bool = True,
        cache: bool = False,
        *,
        timeout: float | None = None,
        on_damage: str = "fail",
    ) -> None:
        if on_damage not in ("fail", "skip"):
            raise SMDebugValueError(f"on_damage is {on_damage!r}; 'fail' and 'skip' are allowed")
        first_step, end_step = checked_range_steps(range_steps)
        self.logger = logging.getLogger("tornasole")
        self.range_steps = range_steps
        self.parallel = parallel
        self.check = check
        self.index_mode = index_mode
        self.cache = cache
        #: Whether questions load what was written since.
        self.dynamic_refresh = True
        self._poll_interval = POLL_SECONDS
        self._timeout = timeout
        self._engine = _engine.Trial(
            path,
            name or "",
            first_step=first_step,
            end_step=end_step,
            fail_on_damage=on_damage == "fail",
            check=bool(check),
            cache=bool(cache),
            timeout=timeout,
            poll=POLL_SECONDS,
            tick=_OpeningWarning(path, self.logger),
        )
        self.name: str = self._engine.name
        self.path: str = self._engine.path
        given = os.fspath(path).strip()
        on_s3, _, prefix = is_s3(given)
        self._root_of_names = prefix if on_s3 else os.path.expanduser(given)
        self._collections = LiveCollections(self._engine)
        self._global_to_mode = GlobalToMode(self._engine)
        self._mode_to_global = ModeToGlobal(self._engine)
        self._damage_told = 0
        self._on_damage = on_damage
        self._tell_damage()

    # What makes it equal to another: the same run under the same name.
    def __eq__(self, other: object) -> bool:
        if not isinstance(other, Trial):
            return NotImplemented
        return (self.name, self.path) == (other.name, other.path)

    def __hash__(self) -> int:
        return hash((self.name, self.path))

    # A copy, or what another process gets of it, opens the same run anew.
    def __reduce__(self) -> tuple:
        options = {name: getattr(self, name) for name in _OPTIONS}
        held = {name: value for name, value in vars(self).items() if name not in _OF_ONE_OPENING}
        changed = self._collections.objects()
        return _open_again, (type(self), self.name, self.path, {**options, "on_damage": self._on_damage}, held, changed)

    def __repr__(self) -> str:
        kind = type(self)
        return (
            f"<{kind.__module__}.{kind.__name__} object at {id(self):#x}>:(\n"
            f"    name={self.name},\n"
            f"    path={self.path},\n"
            f"    steps={self.steps()},\n"
            f"    collections={list(self.collections())},\n"
            f"    tensor_names={self.tensor_names()},\n"
            ")"
        )

    def _repr_html_(self) -> str:
        from tornasole.trials.notebook import trial_html

        return trial_html(self)

    # --- What is known of the run ---------------------------------------------------------------------------------

    @property
    def trial_dir(self) -> str:
        """The directory it is read from."""
        return self.path

    @property
    def loaded_all_steps(self) -> bool:
        """Whether the run has ended and everything it wrote is known: nothing is looked for any more."""
        return self._engine.loaded_all_steps

    @property
    def last_complete_step(self) -> int:
        """The last global step that is complete; -1 if none is."""
        return self._engine.last_complete_step

    @property
    def num_workers(self) -> int:
        """How many workers write, as the collections files say."""
        return self._engine.num_workers

    @property
    def last_index_token(self) -> str | None:
        """The index file from which on new ones are looked for, below the path as it was given, on S3 below its prefix;
        None before the first complete step."""
        token = self._engine.last_index_token
        return os.path.join(self._root_of_names, token) if token else None

    @property
    def run_status(self) -> tuple[str, str]:
        """The state of the run ("running", "ended", "failed", "presumed dead" or "unknown"), and why."""
        return self._engine.run_status()

    @property
    def damage(self) -> list[tuple[str, int | None, str]]:
        """What was left out because it is damaged: path, offset in the file if known, and what is wrong."""
        return self._engine.damage()

    @property
    def poll_interval(self) -> float:
        """Seconds between two looks at the directory while something is waited for; 2, and can be set."""
        return self._poll_interval

    @poll_interval.setter
    def poll_interval(self, seconds: float) -> None:
        self._engine.set_waiting(self._timeout, seconds)
        self._poll_interval = seconds

    @property
    def timeout(self) -> float | None:
        """Seconds without a sign of life of the run after which a wait gives up; None: never. Can be set."""
        return self._timeout

    @timeout.setter
    def timeout(self, seconds: float | None) -> None:
        self._engine.set_waiting(seconds, self._poll_interval)
        self._timeout = seconds

    # --- New data -------------------------------------------------------------------------------------------------

    def maybe_refresh(self, name: str | None = None) -> None:
        """Loads what was written since, unless the trial is frozen or complete."""
        if self.dynamic_refresh and not self._engine.loaded_all_steps:
            self.refresh_data()

    def refresh_data(self) -> None:
        """Loads what was written since."""
        self._engine.refresh()
        self._tell_damage()

    def _tell_damage(self) -> None:
        """Logs damage that was met since the last time."""
        count = self._engine.damage_count
        if count == self._damage_told:
            return
        first = self._engine.damage()[self._damage_told : self._damage_told + 1]
        example = f"; {first[0][0]}: {first[0][2]}" if first else ""
        self.logger.warning("trial %s: left out as damaged: %d%s", self.name, count - self._damage_told, example)
        self._damage_told = count

    # --- Tensors --------------------------------------------------------------------------------------------------

    def tensor(self, tname: str) -> Tensor:
        """The tensor of this name; :class:`TensorUnavailable`, with names that come near, if there is none."""
        if not self.has_tensor(tname):
            self._engine.check_tensor(tname)  # raises
        return Tensor(tname, trial=self, cache=self.cache)

    def has_tensor(self, tname: str) -> bool:
        """Whether a tensor of this name is known."""
        known = tensor_name(tname)
        if not self._engine.has_tensor(known):
            self.maybe_refresh(known)
        return self._engine.has_tensor(known)

    def tensor_names(
        self,
        show_prefixed_tensors: bool = False,
        *,
        step: int | None = None,
        mode: ModeKeys = ModeKeys.GLOBAL,
        regex: str | Iterable | None = None,
        collection: Any = None,
    ) -> list[str]:
        """The names of tensors, sorted: all, those of a ``mode``, or those saved at a ``step``.

        ``regex``, a pattern or a list of them, keeps the names in which any is found (as ``re.search``);
        ``collection``, a name or a collection, those that belong to it. Only one of the two can be given.
        """
        number = mode_number(mode)
        if regex is not None and collection is not None:
            raise SMDebugValueError("tensor_names takes a regex or a collection, not both")
        patterns = None if regex is None else flat_patterns(regex)
        collection_name = None if collection is None else self._collections.name_of(collection)
        self.maybe_refresh()
        if collection_name is not None:
            self._collections.push(collection_name)
        at = None if step is None else step_number(step)
        names = self._engine.tensor_names(at, number, patterns, collection_name)
        if not names and patterns is not None:
            self.logger.warning("trial %s: no saved tensor matches %s", self.name, patterns)
        if not names and collection_name is not None:
            self.logger.warning("trial %s: no tensor of collection %s was saved", self.name, collection_name)
        return names

    def inputs(self, step: int, mode: ModeKeys = ModeKeys.GLOBAL) -> list:
        """The values of the tensors of the collection "inputs" at the step, by the number at the end of the name."""
        self.maybe_refresh()
        self._collections.push("inputs")
        return self._engine.group("inputs", step_number(step), mode_number(mode))

    def labels(self, step: int, mode: ModeKeys = ModeKeys.GLOBAL) -> list:
        """The values of the tensors called labels… at the step, by the number at the end of the name."""
        self.maybe_refresh()
        return self._engine.group("labels", step_number(step), mode_number(mode))

    def predictions(self, step: int, mode: ModeKeys = ModeKeys.GLOBAL) -> list:
        """The values of the tensors called predictions… at the step, by the number at the end of the name."""
        self.maybe_refresh()
        return self._engine.group("predictions", step_number(step), mode_number(mode))

    # --- Steps, modes, workers ------------------------------------------------------------------------------------

    def steps(self, mode: ModeKeys = ModeKeys.GLOBAL, show_incomplete_steps: bool = False) -> list[int]:
        """The steps of the mode that are complete, ascending; with the flag also those some worker has yet to write."""
        self.maybe_refresh()
        return self._engine.steps(mode_number(mode), bool(show_incomplete_steps))

    def partial_steps(self, mode: ModeKeys = ModeKeys.GLOBAL) -> list[int]:
        """The steps that were cut off while they were written; they are never among the complete ones."""
        self.maybe_refresh()
        return self._engine.partial_steps(mode_number(mode))

    def modes(self) -> set[ModeKeys]:
        """The modes with at least one step; never ``GLOBAL``."""
        return {ModeKeys(number) for number in self._engine.modes()}

    def mode(self, global_step: int) -> ModeKeys | None:
        """The mode of a global step: ``GLOBAL`` if it was saved without one, None if the step is not known."""
        return self.mode_modestep(global_step)[0]

    def mode_step(self, global_step: int) -> int | None:
        """The number of a global step within its mode; None if the step is not known."""
        return self.mode_modestep(global_step)[1]

    def mode_modestep(self, global_step: int) -> tuple[ModeKeys | None, int | None]:
        """:meth:`mode` and :meth:`mode_step` in one."""
        found = self._engine.mode_step(step_number(global_step))
        if found is None:
            self.maybe_refresh()
            found = self._engine.mode_step(step_number(global_step))
        return (None, None) if found is None else (ModeKeys(found[0]), found[1])

    def global_step(self, mode: ModeKeys, mode_step: int) -> int | None:
        """The global step of a mode's step; None if it is not known. A global step is returned as it is."""
        number = mode_number(mode)
        found = self._engine.global_step(number, step_number(mode_step))
        if found is None:
            self.maybe_refresh()
            found = self._engine.global_step(number, step_number(mode_step))
        return found

    def workers(self) -> list[str]:
        """The names of the workers, sorted; known before the first step."""
        self.maybe_refresh()
        return self._engine.workers()

    def workers_for_step(self, global_step: int) -> list[str]:
        """The workers that have written the global step so far, sorted."""
        return self._engine.workers_at(step_number(global_step))

    def has_passed_step(self, step: int, mode: ModeKeys = ModeKeys.GLOBAL) -> StepState:
        """Whether the step is available, may still come, or will not come any more."""
        self.maybe_refresh()
        return StepState(self._engine.has_passed_step(step_number(step), mode_number(mode)))

    def wait_for_steps(
        self, required_steps: Iterable[int], mode: ModeKeys = ModeKeys.GLOBAL, timeout: float | None = None
    ) -> None:
        """Waits until all these steps are available, one after the other.

        :class:`StepUnavailable` for one that was passed over, :class:`NoMoreData` for one beyond the end of a run that
        is over, :class:`StepNotYetAvailable` after ``timeout`` seconds without a sign of life (default: of the trial).
        """
        if not isinstance(required_steps, Iterable):
            raise SMDebugTypeError(f"required_steps is {required_steps!r}; a list of steps is wanted")
        steps = [step_number(step) for step in required_steps]
        if timeout is not None:
            self._engine.set_waiting(timeout, self._poll_interval)
        try:
            self._engine.wait_for_steps(steps, mode_number(mode))
        finally:
            if timeout is not None:
                self._engine.set_waiting(self._timeout, self._poll_interval)

    # --- What values cannot tell ----------------------------------------------------------------------------------

    def model_description(self, worker: str | None = None) -> dict[str, Any] | None:
        """What a worker said of its model; of the first worker that said anything, if none is given. None: nothing.

        ``modules`` (path: ``class``, ``parent``, ``call_order`` or None before the first call, ``training``),
        ``parameters`` (name: ``module``, ``shape``, ``dtype``, ``requires_grad``, ``tied``), ``losses`` (list of
        ``name``, ``class``, ``predictions``, ``labels``), ``inputs`` (names), ``optimizers`` (list of ``class``,
        ``hyperparameters``, ``groups`` of parameter names), ``bounds`` (tensor: lowest and highest value that is
        expected), ``data`` (evaluation set: role), ``framework``, ``versions``, ``device``, ``world_size``.
        """
        self.maybe_refresh()
        return self._engine.model_description(worker_name(worker))

    def step_facts(self, step: int, mode: ModeKeys = ModeKeys.GLOBAL, worker: str | None = None) -> dict[str, Any]:
        """What is known of a step besides its tensors; of the first worker that has the step, if none is given.

        Among ``optimizer_step`` (optimizer steps taken before this step began), ``training`` (the model's flag),
        ``grad_enabled``, ``backward_in_eval`` (a backward pass ran in evaluation mode) and ``grad_scale`` (of an
        active loss scaler), those that were recorded: nothing for a step that is not known, and for runs of smdebug.
        """
        self.maybe_refresh()
        return self._engine.step_facts(step_number(step), mode_number(mode), worker_name(worker))

    # --- Collections ----------------------------------------------------------------------------------------------

    def collections(self) -> dict[str, Any]:
        """All collections of the run by name, saved or not."""
        return self._collections.all()

    def collection(self, coll_name: str) -> Any:
        """The collection of this name, created empty if there is none.

        What is included in it or added to it holds for this trial object, for instance in :meth:`tensor_names`.
        """
        return self._collections.get(coll_name)

    # --- Tables ---------------------------------------------------------------------------------------------------

    def to_pandas(self, names: str | Iterable[str] | None = None, mode: ModeKeys = ModeKeys.GLOBAL) -> Any:
        """A table (``pandas.DataFrame``) with one row per step, worker and tensor.

        Columns: ``step`` (global), ``mode``, ``mode_step``, ``worker``, ``tensor``; ``value`` for tensors of one
        element; and one column per stored reduction (``mean``, ``abs_max``…). Steps that are not complete are left out,
        as is a value that cannot be read. ``names``: a name or pattern, or a list of them (as in :meth:`tensor_names`);
        None: all.
        """
        from tornasole.trials.tables import to_pandas

        return to_pandas(self, names=names, mode=mode)


class _OpeningWarning:
    """Says now and then that the trial is still waited for. Called many times a second while it is."""

    def __init__(self, path: str, logger: logging.Logger) -> None:
        import time

        self._clock = time.monotonic
        self._path = path
        self._logger = logger
        self._next = self._clock() + POLL_SECONDS * _QUIET_POLLS

    def __call__(self) -> None:
        if self._clock() < self._next:
            return
        self._next = self._clock() + POLL_SECONDS
        self._logger.warning(
            "still waiting for the collections files of the run in %s; if this goes on, the path may be wrong",
            self._path,
        )
