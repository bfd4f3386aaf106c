"""What a hook was told: its options, its collections, and what of both was changed since the engine was told."""

from __future__ import annotations

import copy
import os
from typing import TYPE_CHECKING, Any

from tornasole import _engine
from tornasole.core.collection import Collection, _flat_texts
from tornasole.core.collection_manager import CollectionManager
from tornasole.core.edits import edits
from tornasole.core.guard import configuration_error, guarded, let_through
from tornasole.core.logger import get_logger
from tornasole.core.pending_collections import take_pending
from tornasole.core.query_arguments import is_spellable
from tornasole.core.reduction_config import ReductionConfig
from tornasole.core.save_config import SaveConfig
from tornasole.core.truth_values import switch_of
from tornasole.exceptions import SMDebugError, SMDebugTypeError

if TYPE_CHECKING:
    from typing_extensions import Self

_RULE_OPTIONS = ("rules", "on_rule", "rule_poll", "rule_detail_steps", "rule_profile")


def _as_text(path: Any) -> Any:
    return os.fspath(path) if isinstance(path, os.PathLike) else path


class HookSettings:
    """The half of a hook that is configured. Scripts may change all of it until the end: the next step goes by it."""

    _framework = "cpp"
    _framework_version = ""
    _collection_class: type[Collection] = Collection

    _engine_hook: Any = None  # stays so in a copy, which captures nothing
    _rules: Any = None  # that run inside the training
    prepared_collections = False

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

    # ---- for frameworks to say

    def _get_worker_rank(self) -> tuple[int, int]:
        """Rank of this process among the workers, and how many there are. Asked at construction and at preparation."""
        return 0, 1

    def _get_worker_name(self) -> str:
        return f"worker_{self._get_worker_rank()[0]}"

    def _get_num_workers(self) -> int:
        return self._get_worker_rank()[1]

    def _prepare_framework_collections(self) -> None:
        """What collections were told in terms of the framework becomes patterns and names."""

    def _tensor_name_of(self, arg: object) -> str | None:
        """The name under which an object, such as a parameter, is saved; None if it is not known."""
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

    def has_default_hook_configuration(self, default_saved_collections=None) -> bool:
        """Whether exactly the collections are saved that the framework saves without being asked."""
        return set(self.include_collections) == set(default_saved_collections or self._default_include_collections)

    def has_default_configuration(self) -> bool:
        """The same; there is no other configuration."""
        return self.has_default_hook_configuration()

    def _has_default_configuration(self) -> bool:
        return self._engine_hook is None or self.has_default_hook_configuration()
