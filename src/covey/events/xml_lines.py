"""Files of simple XML documents (`xml.py`): one document a line, or one that is the whole file.

Where the first line is no document by itself and all lines together are, the file is one; else every line is. A
document that isn't simple is a bad line, with what is wrong with it, and a line is read no further than a document may
be long.
"""

from __future__ import annotations

from collections.abc import Iterator
from typing import IO, Any, Final

from covey.errors import EventError
from covey.events.json_lines import BadLine
from covey.events.limits import DEFAULT_EVENT_LIMITS, EventLimits
from covey.events.schema import Schema
from covey.events.xml import xml_event

SHOWN: Final = 80
_MOST_BYTES: Final = 4
"""Of a character."""


def read_xml_lines(
    file: IO[bytes], schema: Schema | None = None, limits: EventLimits = DEFAULT_EVENT_LIMITS
) -> Iterator[tuple[int, dict[str, Any]] | BadLine]:
    """The events, each with its line's number from 1, and the lines between them that are none."""
    longest = _MOST_BYTES * limits.document_length
    number = 0
    first, whole = b"", None
    while not first.strip() and (line := file.readline(longest + 1)):
        number += bool(first)
        first = line
    if not _is_document(first, limits):
        # What stands on the first line may begin a document that goes on below it.
        rest = file.read(max(0, longest + 1 - len(first)))
        whole = first + rest
        if rest and _is_document(whole, limits):
            yield _read(number + 1, whole, schema, limits)
            return
    for line in _lines(first if whole is None else whole, file, longest):
        number += 1
        if line.strip():
            yield _read(number, line, schema, limits)


def _is_document(text: bytes, limits: EventLimits) -> bool:
    """Whether there is an event in a text that is XML, simple or not."""
    try:
        return bool(xml_event(text, limits=limits))
    except EventError as error:
        return not str(error).startswith("not XML")


def _lines(begun: bytes, file: IO[bytes], longest: int) -> Iterator[bytes]:
    """The lines of what was read and of what is left, none much longer than it may be."""
    *lines, last = begun.splitlines(keepends=True) or [b""]
    yield from lines
    line = last if last.endswith(b"\n") else last + file.readline(longest + 1)
    while line:
        yield line
        while len(line) > longest and not line.endswith(b"\n"):
            line = file.readline(longest + 1)
        line = file.readline(longest + 1)


def _read(number: int, line: bytes, schema: Schema | None, limits: EventLimits) -> tuple[int, dict[str, Any]] | BadLine:
    try:
        return number, xml_event(line, schema, limits=limits)
    except EventError as error:
        return BadLine(number, f"line {number}: {error}", line[:SHOWN].decode("utf-8", "replace").strip())
