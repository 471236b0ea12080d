"""Times: their texts, their fields, and where they are cut off; all in UTC, on the calendar that Spark has."""

from __future__ import annotations

import re
from collections.abc import Callable
from datetime import UTC, datetime, timedelta, timezone, tzinfo
from datetime import date as day_of
from typing import Final
from zoneinfo import ZoneInfo

from covey.filters.values import EPOCH

_DATE: Final = r"([0-9]{4})(?:-([0-9]{1,2})(?:-([0-9]{1,2})"
_TIMESTAMP: Final = re.compile(
    _DATE + r"(?:[ T]\s*([0-9]{1,2}):([0-9]{1,2})(?::([0-9]{1,2})(?:\.([0-9]{0,9}))?)?\s*([A-Za-z+-].{0,40})?)?)?)?"
)
_DATE_ONLY: Final = re.compile(_DATE + r")?)?")
_OFFSET: Final = re.compile(r"(?:UTC|GMT|UT)?([+-])([0-9]{1,2})(?::?([0-9]{2})(?::?([0-9]{2}))?)?")
_UTC: Final = frozenset({"Z", "UTC", "GMT", "UT"})
_AFTER_DATE: Final = re.compile(_DATE + r"(?:[ T].*)?)?)?", re.DOTALL)


def timestamp(literal: str) -> datetime:
    """A timestamp's text; a ValueError that says what is wrong with it. Without a zone it is UTC."""
    match = _TIMESTAMP.fullmatch(literal.strip())
    if match is None:
        raise ValueError(f"{literal!r} is not a timestamp; write it as '2024-01-31 12:00:00', with a zone if not UTC")
    year, month, day, hour, minute, second, fraction, zone = match.groups()
    try:
        local = datetime(
            int(year),
            int(month or 1),
            int(day or 1),
            int(hour or 0),
            int(minute or 0),
            int(second or 0),
            int((fraction or "0").ljust(6, "0")[:6]),
            _zone(zone.strip()) if zone else UTC,
        )
        return local.astimezone(UTC)
    except (ValueError, OverflowError) as error:
        raise ValueError(f"{literal!r} is not a timestamp: {error}") from None


def date(literal: str) -> datetime:
    """A date's text as the timestamp of its midnight in UTC."""
    if _DATE_ONLY.fullmatch(literal.strip()) is None:
        raise ValueError(f"{literal!r} is not a date; write it as '2024-01-31', or use TIMESTAMP")
    return timestamp(literal)


def _zone(name: str) -> tzinfo:
    if name in _UTC:
        return UTC
    match = _OFFSET.fullmatch(name)
    if match is not None:
        sign, hours, minutes, seconds = match.groups()
        offset = timedelta(hours=int(hours), minutes=int(minutes or 0), seconds=int(seconds or 0))
        if offset > timedelta(hours=18):
            raise ValueError("a zone is at most 18 hours from UTC")
        return timezone(-offset if sign == "-" else offset)
    try:
        return ZoneInfo(name)
    except (KeyError, ValueError, OSError):
        raise ValueError(f"the zone {name!r} is not known; write an offset such as +01:00") from None


def parse_timestamp(text: str) -> datetime:
    """What CAST makes of a text; ValueError where it is no time."""
    return timestamp(text)


def parse_date(text: str) -> day_of:
    """What CAST makes of a text: a date, whatever follows it; ValueError where there is none."""
    match = _AFTER_DATE.fullmatch(text)
    if match is None:
        raise ValueError("not a date")
    year, month, day = match.groups()
    return day_of(int(year), int(month or 1), int(day or 1))


def moment(value: day_of) -> datetime:
    """A date's midnight; a timestamp itself."""
    return value if isinstance(value, datetime) else datetime(value.year, value.month, value.day, tzinfo=UTC)


FIELDS: Final[dict[str, Callable[[datetime], int]]] = {
    "year": lambda time: time.year,
    "quarter": lambda time: (time.month + 2) // 3,
    "month": lambda time: time.month,
    "weekofyear": lambda time: time.isocalendar().week,
    "day": lambda time: time.day,
    "dayofyear": lambda time: time.timetuple().tm_yday,
    "weekday": lambda time: time.weekday(),
    "dayofweek": lambda time: time.isoweekday() % 7 + 1,
    "hour": lambda time: time.hour,
    "minute": lambda time: time.minute,
    "second": lambda time: time.second,
}
"""The parts of a time that have a function."""

_CUTS: Final[dict[str, Callable[[datetime], datetime]]] = {
    "year": lambda time: datetime(time.year, 1, 1, tzinfo=UTC),
    "quarter": lambda time: datetime(time.year, (time.month + 2) // 3 * 3 - 2, 1, tzinfo=UTC),
    "month": lambda time: datetime(time.year, time.month, 1, tzinfo=UTC),
    "week": lambda time: _cut(time, timedelta(days=1)) - timedelta(days=time.weekday()),
    "day": lambda time: _cut(time, timedelta(days=1)),
    "hour": lambda time: _cut(time, timedelta(hours=1)),
    "minute": lambda time: _cut(time, timedelta(minutes=1)),
    "second": lambda time: _cut(time, timedelta(seconds=1)),
    "millisecond": lambda time: _cut(time, timedelta(milliseconds=1)),
    "microsecond": lambda time: time,
}
_UNITS: Final = {"yyyy": "year", "yy": "year", "mon": "month", "mm": "month", "dd": "day"}
UNITS: Final[dict[str, timedelta]] = {
    "week": timedelta(weeks=1), "day": timedelta(days=1), "hour": timedelta(hours=1), "minute": timedelta(minutes=1),
    "second": timedelta(seconds=1), "millisecond": timedelta(milliseconds=1), "microsecond": timedelta(microseconds=1),
}  # fmt: skip
"""Intervals of fixed length, by the name of their unit."""


def _cut(time: datetime, length: timedelta) -> datetime:
    return time - (time - EPOCH) % length


def truncated(unit: str, value: day_of) -> datetime | None:
    """`date_trunc`: the start of the year, week, hour … that a time is in; None for a unit that isn't known."""
    name = unit.lower()
    cut = _CUTS.get(_UNITS.get(name, name))
    return None if cut is None else cut(moment(value))
