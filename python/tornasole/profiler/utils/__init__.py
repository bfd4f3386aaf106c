"""Small functions that scripts take from here: truth values given as text, and times in other units."""

from __future__ import annotations

from datetime import datetime, timezone
from enum import Enum
from typing import Any

from tornasole.core.truth_values import str2bool

__all__ = [
    "TimeUnits",
    "convert_utc_datetime_to_microseconds",
    "convert_utc_datetime_to_nanoseconds",
    "convert_utc_timestamp_to_microseconds",
    "convert_utc_timestamp_to_nanoseconds",
    "convert_utc_timestamp_to_seconds",
    "ns_since_epoch_to_human_readable_time",
    "str2bool",
    "us_since_epoch_to_human_readable_time",
]

class TimeUnits(Enum):
    """What a number that is a time counts."""

    SECONDS = 1
    MILLISECONDS = 2
    MICROSECONDS = 3
    NANOSECONDS = 4


# How many nanoseconds each is.
_NANOSECONDS = {
    TimeUnits.SECONDS: 10**9,
    TimeUnits.MILLISECONDS: 10**6,
    TimeUnits.MICROSECONDS: 10**3,
    TimeUnits.NANOSECONDS: 1,
}


def _convert(timestamp: float, unit: TimeUnits, wanted: TimeUnits) -> Any:
    """Whole numbers, except of nanoseconds, of which every part is kept."""
    of_unit, of_wanted = _NANOSECONDS[unit], _NANOSECONDS[wanted]
    if unit is wanted and unit is TimeUnits.NANOSECONDS:
        return timestamp
    if of_unit >= of_wanted:
        return int(timestamp * (of_unit // of_wanted))
    parts = timestamp / (of_wanted // of_unit)
    return parts if unit is TimeUnits.NANOSECONDS else int(parts)


def convert_utc_timestamp_to_nanoseconds(timestamp: float, unit: TimeUnits = TimeUnits.MICROSECONDS) -> Any:
    """A time in nanoseconds."""
    return _convert(timestamp, unit, TimeUnits.NANOSECONDS)


def convert_utc_timestamp_to_microseconds(timestamp: float, unit: TimeUnits = TimeUnits.MICROSECONDS) -> Any:
    """A time in microseconds."""
    return _convert(timestamp, unit, TimeUnits.MICROSECONDS)


def convert_utc_timestamp_to_seconds(timestamp: float, unit: TimeUnits = TimeUnits.MICROSECONDS) -> Any:
    """A time in seconds."""
    return _convert(timestamp, unit, TimeUnits.SECONDS)


def convert_utc_datetime_to_nanoseconds(timestamp_datetime: datetime) -> int:
    """A moment as nanoseconds since 1970."""
    return convert_utc_timestamp_to_nanoseconds(timestamp_datetime.timestamp(), TimeUnits.SECONDS)


def convert_utc_datetime_to_microseconds(timestamp_datetime: datetime) -> int:
    """A moment as microseconds since 1970."""
    return convert_utc_timestamp_to_microseconds(timestamp_datetime.timestamp(), TimeUnits.SECONDS)


def _readable(seconds: float) -> str:
    return datetime.fromtimestamp(seconds, timezone.utc).strftime("%Y-%m-%dT%H:%M:%S:%f")


def us_since_epoch_to_human_readable_time(us_since_epoch: float) -> str:
    """``2024-01-31T12:00:00:000000``, of microseconds since 1970, in UTC."""
    return _readable(us_since_epoch / 1e6)


def ns_since_epoch_to_human_readable_time(ns_since_epoch: float) -> str:
    """``2024-01-31T12:00:00:000000``, of nanoseconds since 1970, in UTC."""
    return _readable(ns_since_epoch / 1e9)
