"""The hook without a framework: what every framework's hook is, and all that scripts call on one."""

from __future__ import annotations

import copy
import os
import time
from typing import TYPE_CHECKING, Any

from tornasole import _engine
from tornasole.core import singleton_utils
from tornasole.core.collection import Collection, _flat_texts
from tornasole.core.collection_manager import CollectionManager
from tornasole.core.edits import edits
from tornasole.core.guard import configuration_error, guard, guarded, let_through
from tornasole.core.logger import get_logger
from tornasole.core.pending_collections import take_pending
from tornasole.core.query_arguments import is_spellable, seconds_since_epoch, tensor_name
from tornasole.core.reduction_config import ReductionConfig
from tornasole.core.save_config import SaveConfig
from tornasole.core.truth_values import switch_of
from tornasole.exceptions import SMDebugError, SMDebugTypeError, SMDebugValueError
from tornasole.modes import ALLOWED_MODE_NAMES, ModeKeys

if TYPE_CHECKING:
    from typing_extensions import Self

_MODES = {mode.value: mode for mode in ModeKeys}
_RULE_OPTIONS = ("rules", "on_rule", "rule_poll", "rule_detail_steps", "rule_profile")


def _as_text(path: Any) -> Any:
    return os.fspath(path) if isinstance(path, os.PathLike) else path


class BaseHook:
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

    _framework = "cpp"
    _framework_version = ""
    _collection_class: type[Collection] = Collection

    _engine_hook: Any = None  # stays so in a copy, which captures nothing
    _is_automatic = False  # made without the script asking for it
    _has_failed = False  # and switched capture off
    _rules: Any = None  # that run inside the training
    _is_closed = False
    _begun_mode: ModeKeys | None = None  # of the last step that was begun with one; what an enumeration is asked takes long
    _begun_mode_value = 0
    prepared_collections = False
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
        except Exception as error:
            raise let_through(error)
        guard.set_hook(self)
        singleton_utils.set_hook(self)

    def _set_up(self, options: dict[str, Any], config_file: str | None, given: dict[str, Any]) -> None:
        self._worker_rank = self._get_worker_rank()
        options["framework"] = self._framework
        options["framework_version"] = self._framework_version
        options["rank"], options["world_size"] = self._worker_rank
        rules = {name: options.pop(name, None) for name in _RULE_OPTIONS}
        schedule = form = None
        if config_file is None:
            schedule, form = self._checked_save_config(given["save_config"]), given["reduction_config"]
            if form is not None and not isinstance(form, ReductionConfig):
                raise SMDebugTypeError(f"reduction_config: {form!r} is not allowed; allowed: a ReductionConfig")
            patterns, collections = given["include_regex"], given["include_collections"]
            collections = [] if collections is None or isinstance(collections, str) and not collections else collections
            options.update(
                {name: switch_of(name, given[name]) for name in ("export_tensorboard", "dry_run", "save_all")},
                include_workers=given["include_workers"],
                out_dir=_as_text(given["out_dir"]),
                tensorboard_dir=_as_text(given["tensorboard_dir"]),
                reduction_config=None if form is None else form._key(),
                save_config=None if schedule is None else schedule._plain(),
                include_regex=None if patterns is None else _flat_texts("include_regex", patterns),
                include_collections=_flat_texts("include_collections", collections),
            )
            self._engine_hook = _engine.Hook.open(options)
        else:
            self._engine_hook = _engine.Hook.open_file(config_file, options)
        self._start_rules(**rules)
        self._adopt_options(schedule, form)
        self._adopt_collections()
        self._modes_seen = {ModeKeys.GLOBAL}

    def _start_rules(self, rules: Any, on_rule: Any, **options: Any) -> None:
        if rules:
            from tornasole.core.hook_rules import HookRules

            self._rules = HookRules(self._engine_hook, rules, on_rule, *(options[name] for name in _RULE_OPTIONS[2:]))

    @staticmethod
    def _checked_save_config(save_config: Any) -> SaveConfig | None:
        """The schedule of the constructor, complete; a copy if modes had to be filled in."""
        if save_config is None:
            return None
        schedule = SaveConfig.parse(save_config)
        if any(of_mode is None for of_mode in schedule.mode_save_configs.values()):
            schedule = copy.deepcopy(schedule)
            schedule.merge_default_save_config(SaveConfig())
        return schedule

    def _adopt_options(self, save_config: SaveConfig | None, reduction_config: ReductionConfig | None) -> None:
        """The attributes, from the options in effect, whatever they came from."""
        options = self._engine_hook.options()
        self.out_dir: str = options["out_dir"]
        self.tensorboard_dir: str | None = options["tensorboard_dir"] or None
        self.dry_run: bool = options["dry_run"]
        self.save_all: bool = options["save_all"]
        self.save_all_workers: bool = options["include_workers"] == "all"
        self.chief_worker = "worker_0"
        self.include_regex: list[str] | None = options["include_regex"] or None
        self.include_collections: list[str] = options["include_collections"]
        self.save_config = save_config or SaveConfig._from_plain(options["save_config"])
        self.reduction_config = reduction_config or ReductionConfig(*options["reduction_config"])
        self._options = options
        self._pushed_defaults = (self.save_config._plain(), self.reduction_config._key())
        self._included = set(self.include_collections)

    def _adopt_collections(self) -> None:
        """The collections: those a script made before there was a hook, and what the engine made of the options."""
        manager = take_pending(self._framework, self._framework_version, self._collection_class)
        self._pushed: dict[str, tuple] = {}
        for name in self._engine_hook.collection_names():
            plain = self._engine_hook.collection_config(name)
            if name not in manager.collections:
                manager.add(self._collection_class._from_plain(plain))
            else:
                self._add_options_to(manager.collections[name], plain)
            self._pushed[name] = plain
        self.collection_manager = manager
        if "default" not in self.include_collections and manager.get("default")._include_regex:
            get_logger().warning("the collection default has patterns but is not in include_collections")
        self._seen_edits = -1

    @property
    def collection_manager(self) -> CollectionManager:
        """The collections; another manager can be put in its place."""
        return self._collection_manager

    @collection_manager.setter
    def collection_manager(self, manager: CollectionManager) -> None:
        if not isinstance(manager, CollectionManager):
            raise SMDebugTypeError(f"{manager!r} is not allowed; allowed: a CollectionManager")
        self._collection_manager = manager
        manager.attach(self)
        edits.note()

    @staticmethod
    def _add_options_to(collection: Collection, plain: tuple) -> None:
        """What the options said of a collection that was there before."""
        known = collection._include_regex
        known += [pattern for pattern in plain[1] if pattern not in known]
        if plain[4] is not None:
            collection.reduction_config = ReductionConfig(*plain[4])
        if plain[5]:
            collection.save_config = SaveConfig._from_plain(plain[5])
        if not plain[6]:
            collection.save_histogram = False

    @classmethod
    def create_from_json_file(cls, json_file_path: str | os.PathLike[str] | None = None) -> Self:
        """A hook from a configuration file.

        ``json_file_path``, else what ``TORNASOLE_CONFIG_FILE_PATH`` or ``SMDEBUG_CONFIG_FILE_PATH`` names, else
        ``/opt/ml/input/config/debughookconfig.json``; FileNotFoundError if it is not there.
        """
        path = _as_text(json_file_path)
        if path is not None and not (isinstance(path, str) and is_spellable(path)):
            raise let_through(SMDebugTypeError(f"json_file_path: {path!r} is not allowed; allowed: a path, or None"))
        return cls(_config_file=path or "")

    @classmethod
    def hook_from_config(cls, json_file_path: str | os.PathLike[str] | None = None) -> Self:
        """The older name of :meth:`create_from_json_file`."""
        return cls.create_from_json_file(json_file_path)

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

    def _get_worker_rank(self) -> tuple[int, int]:
        """Rank of this process among the workers, and how many there are. Asked at construction and at preparation."""
        return 0, 1

    def _get_worker_name(self) -> str:
        return f"worker_{self._get_worker_rank()[0]}"

    def _get_num_workers(self) -> int:
        return self._get_worker_rank()[1]

    def _note_failure(self, where: str, error: Exception) -> None:
        """What became of a tensor that could not be saved is told once; nothing is raised into the training."""
        guard.handle(error, where)

    def _prepare_framework_collections(self) -> None:
        """For frameworks: what collections were told in terms of the framework becomes patterns and names."""

    def _tensor_name_of(self, arg: object) -> str | None:
        """For frameworks: the name under which an object, such as a parameter, is saved; None if it is not known."""
        return None

    @property
    def _default_include_collections(self) -> list[str]:
        """The collections that are saved without being asked for."""
        return _engine.saved_collections_of(self._framework)

    def _matched_names(self, collection: str) -> list[str]:
        return [] if self._engine_hook is None else self._engine_hook.tensor_names(collection)

    # ---- what was changed since the last step

    def _prepare(self) -> None:
        """Checks and completes the collections. The first step does it; afterwards they show what applies to them."""
        self._sync()

    _prepare_collections = _prepare

    def _increment_step(self) -> None:
        """Begins a step in the mode that is set, for a program that counts steps itself."""
        self._begin_step()

    def _sync(self) -> None:
        """Tells the engine what was changed, and prepares at the first time."""
        try:
            if not self.prepared_collections:
                self._become_worker()
                self._prepare_framework_collections()
            self._push_changes()
            if not self.prepared_collections:
                self._engine_hook.prepare()
                self._show_prepared()
        except (SMDebugError, ValueError, TypeError) as error:
            raise configuration_error(error)
        self._seen_edits = edits.count

    def _become_worker(self) -> None:
        rank = self._get_worker_rank()
        if rank != self._worker_rank:
            self._engine_hook.set_worker(*rank)
            self._worker_rank = rank

    def _push_changes(self) -> None:
        engine = self._engine_hook
        defaults = (self.save_config._plain(), self.reduction_config._key())
        if defaults != self._pushed_defaults:
            engine.set_save_config(defaults[0])
            engine.set_reduction_config(defaults[1])
            self._pushed_defaults = defaults
        for name in self.include_collections:
            if name not in self._included:
                engine.include_collection(name)
                self._included.add(name)
        for name, collection in self.collection_manager.collections.items():
            plain = collection._plain()
            if plain == self._pushed.get(name):
                continue
            if self.prepared_collections and name not in self._pushed and not plain[1] and not plain[3]:
                continue  # just created: nothing can belong to it yet
            engine.set_collection(plain)
            self._pushed[name] = plain
            collection._tensor_names -= collection._matched
            collection._matched = set()

    def _show_prepared(self) -> None:
        self.prepared_collections = True
        for name in self._engine_hook.collection_names():
            plain = self._engine_hook.collection_config(name)
            if name in self.collection_manager.collections:
                self.collection_manager.collections[name]._adopt(plain)
            else:
                self.collection_manager.add(self._collection_class._from_plain(plain))
            self._pushed[name] = self.collection_manager.collections[name]._plain()

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

    # ---- collections

    def get_collection(self, name: str, create: bool = True) -> Collection:
        """The collection of that name, created empty if there is none; without ``create`` that is an error."""
        return self.collection_manager.get(name, create=create)

    def get_collections(self) -> dict[str, Collection]:
        """All collections by name."""
        return self.collection_manager.get_collections()

    def add_collection(self, collection: Collection) -> None:
        """Registers a collection, in the place of one of the same name."""
        if not isinstance(collection, Collection):
            raise SMDebugTypeError(f"{collection!r} is not allowed; allowed: a Collection")
        self.collection_manager.add(collection)

    def add_to_collection(self, collection_name: str, variable) -> None:
        """Adds a tensor's name, a parameter, or a list of these to a collection."""
        self.get_collection(collection_name).add(variable)

    @guarded()
    def export_collections(self) -> None:
        """Writes the collections now, if they changed; the first step that is saved writes them, and the end."""
        if self._engine_hook is not None:
            self._sync()
            self._engine_hook.export_collections()

    def _reset_collections(self) -> None:
        self._engine_hook.reset_collections()
        self.collection_manager.reset(self._framework, self._framework_version)
        names = self._engine_hook.collection_names()
        self._pushed = {name: self._engine_hook.collection_config(name) for name in names}

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

    def has_default_hook_configuration(self, default_saved_collections=None) -> bool:
        """Whether exactly the collections are saved that the framework saves without being asked."""
        return set(self.include_collections) == set(default_saved_collections or self._default_include_collections)

    def has_default_configuration(self) -> bool:
        """The same; there is no other configuration."""
        return self.has_default_hook_configuration()

    def _has_default_configuration(self) -> bool:
        return self._engine_hook is None or self.has_default_hook_configuration()

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
