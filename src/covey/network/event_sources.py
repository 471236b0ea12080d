"""What a program publishes, in batches: mappings, lines of JSON, tables of Arrow."""

from __future__ import annotations

import json
import sys
from collections.abc import AsyncIterable, AsyncIterator, Iterable, Iterator, Mapping
from itertools import islice
from typing import TYPE_CHECKING, Any, Final, TypeAlias, cast

import msgspec

from covey.errors import EventError

if TYPE_CHECKING:
    import pyarrow as pa

Event: TypeAlias = "Mapping[str, Any] | bytes | str"
"""An event: a mapping, or a line of JSON."""
Source: TypeAlias = "Iterable[Event] | AsyncIterable[Event] | bytes | pa.Table | pa.RecordBatch | pa.RecordBatchReader"
"""Events: any iterable of them, a buffer of JSON lines, or a table with a row for each."""

_decode: Final = msgspec.json.Decoder(dict[str, Any]).decode


def read_line(line: bytes | str, where: str) -> dict[str, Any]:
    """The event of a line of JSON; raises EventError with the place."""
    try:
        return _decode(line)
    except (msgspec.DecodeError, RecursionError, ValueError):
        # What else Python reads as JSON, numbers out of range above all, or what is wrong in its words.
        return _read_slowly(line, where)


def _read_slowly(line: bytes | str, where: str) -> dict[str, Any]:
    try:
        event = json.loads(line.decode() if isinstance(line, bytes) else line)
    except UnicodeDecodeError as error:
        raise EventError(f"{where} isn't UTF-8: {error}") from None
    except (json.JSONDecodeError, RecursionError) as error:
        raise EventError(f"{where} isn't JSON: {error}") from None
    if not isinstance(event, dict):
        raise EventError(f"{where} isn't a JSON object of attributes")
    return event


def in_batches(source: Source, most: int) -> Iterator[list[Mapping[str, Any]]]:
    """Events, so many at a time; raises EventError for a line that is none. Blank lines are passed by."""
    table = _record_batches(source)
    if table is not None:
        for batch in table:
            for start in range(0, batch.num_rows, most):
                yield batch.slice(start, most).to_pylist()
        return
    if isinstance(source, AsyncIterable):
        raise TypeError("an asynchronous iterable can only be published by the client for asyncio")
    items = iter(source.split(b"\n") if isinstance(source, bytes) else cast("Iterable[Event]", source))
    reading = _Reading()
    while listed := list(islice(items, most)):
        events = reading.events(listed)
        if events:
            yield events


def _record_batches(source: Source) -> Iterable[pa.RecordBatch] | None:
    """The batches of what Arrow has; None for anything else, and where nobody has imported it."""
    arrow = sys.modules.get("pyarrow")
    if arrow is None:
        return None
    if isinstance(source, arrow.RecordBatch):
        return [source]
    if isinstance(source, arrow.Table):
        batches: Iterable[pa.RecordBatch] = source.to_reader()
        return batches
    return source if isinstance(source, arrow.RecordBatchReader) else None


async def in_batches_async(source: AsyncIterable[Event], most: int) -> AsyncIterator[list[Mapping[str, Any]]]:
    """The same of an asynchronous iterable."""
    reading = _Reading()
    listed: list[Event] = []
    async for item in source:
        listed.append(item)
        if len(listed) == most:
            yield reading.events(listed)
            listed = []
    if listed:
        yield reading.events(listed)


class _Reading:
    """Items that become events; those that are lines have numbers."""

    def __init__(self) -> None:
        self._line = 0

    def events(self, items: list[Event]) -> list[Mapping[str, Any]]:
        return [event for event in map(self._event, items) if event is not None]

    def _event(self, item: Event) -> Mapping[str, Any] | None:
        self._line += 1
        if isinstance(item, (bytes, str)):
            return read_line(item, f"line {self._line:,}") if item.strip() else None
        return item
