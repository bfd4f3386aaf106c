"""When tensors are saved: :class:`SaveConfigMode` is the schedule of one mode, :class:`SaveConfig` that of all."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from tornasole import _engine
from tornasole.core.edits import edits
from tornasole.core.json_text import JsonText
from tornasole.core.query_arguments import step_number
from tornasole.exceptions import SMDebugTypeError, SMDebugValueError
from tornasole.modes import ALLOWED_MODE_NAMES, ModeKeys

if TYPE_CHECKING:
    from typing_extensions import Self

_FIELDS = ("save_interval", "start_step", "end_step", "save_steps", "when_nan")
_DEFAULTS = _engine.complete_save_config((None,) * len(_FIELDS))
DEFAULT_SAVE_CONFIG_INTERVAL = _DEFAULTS[0]
DEFAULT_SAVE_CONFIG_START_STEP = _DEFAULTS[1]
DEFAULT_SAVE_CONFIG_END_STEP = _DEFAULTS[2]
DEFAULT_SAVE_CONFIG_SAVE_STEPS: list[int] = []
ALLOWED_PARAMS = list(_FIELDS)


class SaveConfigMode(JsonText):
    """The schedule of one mode.

    A step of the mode is saved if it is listed in ``save_steps``, or if it is a multiple of ``save_interval`` with
    ``start_step <= step < end_step``. ``end_step`` of 0 or less switches the schedule off, ``save_steps`` included.
    A step is saved besides if a tensor whose name matches a pattern of ``when_nan`` holds a NaN or an infinity in it.

    Integers may be given as their decimal text. What is left out has its default: interval 500, start 0, no end.
    """

    save_interval: int
    start_step: int
    end_step: int | None
    save_steps: list[int]
    when_nan: list[str]

    def __init__(self, save_interval=None, start_step=None, end_step=None, save_steps=None, when_nan=None) -> None:
        self._set(_engine.complete_save_config((save_interval, start_step, end_step, save_steps, when_nan)))

    def _set(self, values: tuple) -> None:
        self.__dict__.update(zip(_FIELDS, values))
        edits.note()

    def __setattr__(self, name: str, value: Any) -> None:
        if name not in _FIELDS:
            raise SMDebugValueError(f"{name!r} is no field of a schedule; allowed: {', '.join(_FIELDS)}")
        self._set(_engine.complete_save_config(tuple(value if f == name else getattr(self, f) for f in _FIELDS)))

    def _key(self) -> tuple:
        return (self.save_interval, self.start_step, self.end_step, tuple(self.save_steps), tuple(self.when_nan))

    def should_save_step(self, step_num: int) -> bool:
        """Whether this step of the mode is saved by the schedule (``when_nan`` aside)."""
        return _engine.should_save_step(self._key(), step_number(step_num))

    def to_json_dict(self) -> dict[str, Any]:
        """The fields by name; ``when_nan`` only if there is one."""
        fields = {name: getattr(self, name) for name in ("save_interval", "save_steps", "start_step", "end_step")}
        if self.when_nan:
            fields["when_nan"] = self.when_nan
        return fields

    @classmethod
    def from_dict(cls, params: dict[str, Any] | None, default_values: dict[str, Any] | None = None) -> Any:
        """A schedule from its fields by name, those left out from ``default_values``; None for None."""
        if params is None:
            return None
        for what, given in (("params", params), ("default_values", default_values or {})):
            if not isinstance(given, dict):
                raise SMDebugTypeError(f"{what}: {given!r} is not allowed; allowed: a dict")
        unknown = [name for name in params if name not in _FIELDS]
        if unknown:
            raise SMDebugValueError(f"{unknown[0]!r} is no field of a schedule; allowed: {', '.join(_FIELDS)}")
        return cls(**{**{k: v for k, v in (default_values or {}).items() if k in _FIELDS}, **params})

    def __eq__(self, other: object) -> bool:
        return self._key() == other._key() if isinstance(other, SaveConfigMode) else NotImplemented

    __hash__ = None  # type: ignore[assignment]

    def __repr__(self) -> str:
        fields = ", ".join(f"{name}={getattr(self, name)!r}" for name in _FIELDS)
        return f"SaveConfigMode({fields})"


def _mode_of(key: object) -> ModeKeys:
    if isinstance(key, ModeKeys):
        return key
    if isinstance(key, str) and key.upper() in ModeKeys.__members__:
        return ModeKeys[key.upper()]
    raise SMDebugValueError(f"{key!r} is not a mode; allowed: {', '.join(ALLOWED_MODE_NAMES)}")


class SaveConfig(JsonText):
    """A schedule for every mode.

    Without ``mode_save_configs`` the other arguments are the schedule of all four modes. With it, a dict from
    :class:`ModeKeys` to :class:`SaveConfigMode`, those modes have theirs; the others get the other arguments if any is
    given, and are unset otherwise: a hook then fills them with the defaults, a collection with those of its hook.

    The fields can be read and set here for all modes at once: ``config.save_interval = 10``.
    """

    mode_save_configs: dict[ModeKeys, SaveConfigMode | None]

    def __init__(
        self,
        mode_save_configs=None,
        save_interval=None,
        start_step=None,
        end_step=None,
        save_steps=None,
        when_nan=None,
    ) -> None:
        fields = (save_interval, start_step, end_step, save_steps, when_nan)
        modes: dict[ModeKeys, SaveConfigMode | None] = dict.fromkeys(ModeKeys)
        if mode_save_configs is None or any(field is not None for field in fields):
            modes = {mode: SaveConfigMode(*fields) for mode in ModeKeys}
        if mode_save_configs is not None:
            if not isinstance(mode_save_configs, dict):
                raise SMDebugValueError(
                    f"mode_save_configs: {mode_save_configs!r} is not allowed; allowed: a dict from a mode to a "
                    "SaveConfigMode"
                )
            for mode, schedule in mode_save_configs.items():
                if not isinstance(mode, ModeKeys):
                    raise SMDebugValueError(f"the key {mode!r} is not allowed; allowed: members of modes")
                modes[mode] = self._schedule_for(mode, schedule)
        self.__dict__["mode_save_configs"] = modes
        edits.note()

    @staticmethod
    def _schedule_for(mode: ModeKeys, value: object) -> SaveConfigMode | None:
        if value is None or isinstance(value, SaveConfigMode):
            return value
        if isinstance(value, SaveConfig):
            return value.get_save_config(mode)
        if isinstance(value, dict):
            return SaveConfigMode.from_dict(value)
        raise SMDebugValueError(
            f"{mode.name}: {value!r} is not allowed; allowed: a SaveConfigMode, a SaveConfig or a dict of its fields"
        )

    def __getattr__(self, name: str) -> Any:
        if name not in _FIELDS:
            raise AttributeError(f"a SaveConfig has no attribute {name!r}")
        values = [getattr(schedule, name) for schedule in self.mode_save_configs.values() if schedule is not None]
        if not values or any(value != values[0] for value in values):
            raise SMDebugValueError(f"{name} is not the same in all modes; ask get_save_config(mode).{name}")
        return values[0]

    def __setattr__(self, name: str, value: Any) -> None:
        if name == "mode_save_configs":
            self.__dict__[name] = SaveConfig(value).mode_save_configs
        elif name in _FIELDS:
            for mode in ModeKeys:
                if self.mode_save_configs[mode] is None:
                    self.mode_save_configs[mode] = SaveConfigMode(**{name: value})
                else:
                    setattr(self.mode_save_configs[mode], name, value)
        else:
            raise SMDebugValueError(f"{name!r} is no field of a SaveConfig; allowed: {', '.join(_FIELDS)}")
        edits.note()

    def get_save_config(self, mode: ModeKeys) -> SaveConfigMode:
        """The schedule of one mode; an error if it is unset."""
        schedule = self.mode_save_configs[_mode_of(mode)]
        if schedule is None:
            raise SMDebugValueError(f"the mode {_mode_of(mode).name} has no schedule yet in {self!r}")
        return schedule

    def set_save_config(self, mode: ModeKeys, save_config_mode: SaveConfigMode) -> None:
        """Sets the schedule of one mode."""
        if not isinstance(save_config_mode, SaveConfigMode):
            raise SMDebugValueError(f"{save_config_mode!r} is not allowed; allowed: a SaveConfigMode")
        self.mode_save_configs[_mode_of(mode)] = save_config_mode
        edits.note()

    def should_save_step(self, mode: ModeKeys, step_num: int) -> bool:
        """Whether this step of this mode is saved."""
        return self.get_save_config(mode).should_save_step(step_num)

    def merge_default_save_config(self, default_save_config: SaveConfig) -> None:
        """Fills the modes that are unset with those of another SaveConfig, or the defaults if that has none."""
        for mode in ModeKeys:
            if self.mode_save_configs[mode] is None:
                given = default_save_config.mode_save_configs[mode]
                self.set_save_config(mode, SaveConfigMode(*given._key()) if given else SaveConfigMode())

    def to_json_dict(self) -> dict[str, Any]:
        """``{"TRAIN": {...}, ...}``; null for a mode that is unset."""
        return {mode.name: s.to_json_dict() if s else None for mode, s in self.mode_save_configs.items()}

    @classmethod
    def from_dict(cls, params: dict[Any, Any] | None, default_values: dict[str, Any] | None = None) -> Any:
        """From a dict of modes, or their names in any case, to schedules, dicts of their fields, or None."""
        if params is None:
            return None
        if not isinstance(params, dict):
            raise SMDebugTypeError(f"{params!r} is not allowed; allowed: a dict from a mode to a SaveConfigMode")
        modes = {}
        for key, value in params.items():
            is_fields = isinstance(value, dict)
            modes[_mode_of(key)] = SaveConfigMode.from_dict(value, default_values) if is_fields else value
        return cls(mode_save_configs=modes)

    @classmethod
    def from_save_config_mode(cls, save_config_mode: SaveConfigMode) -> Self:
        """The same schedule for all modes; each mode has a copy of its own."""
        return cls(mode_save_configs={mode: SaveConfigMode(*save_config_mode._key()) for mode in ModeKeys})

    @classmethod
    def parse(cls, obj: object) -> SaveConfig:
        """From whatever a hook takes: None, a SaveConfig, a SaveConfigMode, or a dict of modes."""
        if obj is None:
            return cls()
        if isinstance(obj, SaveConfig):
            return obj
        if isinstance(obj, SaveConfigMode):
            return cls.from_save_config_mode(obj)
        if isinstance(obj, dict):
            return cls.from_dict(obj)
        raise SMDebugTypeError(
            f"save_config: {obj!r} is not allowed; allowed: a SaveConfig, a SaveConfigMode, or a dict of modes"
        )

    def _plain(self) -> dict[int, tuple]:
        """The modes that are set, as the engine takes them."""
        return {mode.value: s._key() for mode, s in self.mode_save_configs.items() if s is not None}

    @classmethod
    def _from_plain(cls, plain: dict[int, tuple]) -> SaveConfig:
        return cls({ModeKeys(mode): SaveConfigMode(*fields) for mode, fields in plain.items()})

    def __deepcopy__(self, memo: dict) -> SaveConfig:
        return SaveConfig._from_plain(self._plain())

    def __eq__(self, other: object) -> bool:
        if not isinstance(other, SaveConfig):
            return NotImplemented
        return self.mode_save_configs == other.mode_save_configs

    __hash__ = None  # type: ignore[assignment]

    def __repr__(self) -> str:
        return f"SaveConfig({ {mode.name: schedule for mode, schedule in self.mode_save_configs.items()} })"

    def __getstate__(self) -> dict:
        return self.__dict__

    def __setstate__(self, state: dict) -> None:
        self.__dict__.update(state)
