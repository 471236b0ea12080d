"""Events as lines of JSON, read one at a time: one object a line, blank lines skipped, UTF-8.

Integers are exact at any size (to the 4,300 digits that Python reads), NaN, Infinity and -Infinity are accepted as
JSON's usual extensions, and of equal keys in an object the last counts.
"""

from __future__ import annotations

import json
import os
from collections.abc import Iterator
from contextlib import nullcontext
from dataclasses import dataclass
from pathlib import Path
from typing import IO, Any, TypeAlias

from covey.errors import EventError
from covey.events.limits import DEFAULT_EVENT_LIMITS, EventLimits

Source: TypeAlias = "str | os.PathLike[str] | IO[str] | IO[bytes]"

_SHOWN = 200


@dataclass(frozen=True, slots=True)
class BadLine:
    """A line that isn't an event."""

    line: int
    message: str
    text: str
    """The line, or the start of a long one."""


def read_json_lines(
    source: Source,
    *,
    name: str | None = None,
    bad: list[BadLine] | None = None,
    limits: EventLimits = DEFAULT_EVENT_LIMITS,
) -> Iterator[dict[str, Any]]:
    """The events of a path or an open file, text or bytes.

    A line that isn't an event raises an EventError with its number, or is added to `bad` where that is given. `name`
    is what errors call the source; by itself it is the file's name.
    """
    if isinstance(source, (str, os.PathLike)):
        called = name or Path(source).name
        opened: Any = open(source, "rb")  # noqa: SIM115 (closed below, when the events have been read)
    else:
        called = name or os.path.basename(str(getattr(source, "name", "<stream>")))
        opened = nullcontext(source)
    with opened as file:
        for number, line, whole in _lines(file, limits.line_length):
            try:
                if not whole:
                    raise EventError(f"longer than {limits.line_length:,} characters; raise EventLimits.line_length")
                event = parse_json(line, first=number == 1)
            except EventError as error:
                message = f"{called} line {number}: {error}"
                if bad is None:
                    raise EventError(message) from None
                bad.append(BadLine(number, message, shown(line)))
                continue
            if event is not None:
                yield event


def shown(line: str | bytes) -> str:
    """A line as it is shown in a report: the start of a long one."""
    start = line[:_SHOWN]
    return start.decode("utf-8", "replace") if isinstance(start, bytes) else start


def _lines(file: IO[str] | IO[bytes], limit: int) -> Iterator[tuple[int, str | bytes, bool]]:
    """Lines with their numbers, never more of one in memory than the limit; False with one that was cut."""
    number = 0
    while line := file.readline(limit + 2):
        number += 1
        content = line.rstrip(b"\r\n") if isinstance(line, bytes) else line.rstrip("\r\n")
        start, whole = line, len(content) <= limit
        while not whole and line and line[-1:] not in ("\n", b"\n"):
            line = file.readline(limit)
        yield number, start, whole


def parse_json(line: str | bytes, *, first: bool = True) -> dict[str, Any] | None:
    """The event of one line; None of a blank one. `first`: a byte order mark may stand before it."""
    try:
        text = line.decode("utf-8") if isinstance(line, bytes) else line
    except UnicodeDecodeError as error:
        raise EventError(f"not UTF-8 at byte {error.start}") from None
    if first:
        text = text.removeprefix("\ufeff")
    if not text or text.isspace():
        return None
    try:
        event = json.loads(text)
        if "\\ud" in text or "\\uD" in text:
            json.dumps(event, ensure_ascii=False).encode()
    except json.JSONDecodeError as error:
        raise EventError(f"not JSON: {error.msg} at column {error.colno}") from None
    except RecursionError:
        raise EventError("nested too deeply") from None
    except UnicodeEncodeError:
        raise EventError("half of a surrogate pair in a string; write both halves") from None
    except ValueError:
        raise EventError("an integer has more digits than can be read (4,300)") from None
    if not isinstance(event, dict):
        raise EventError(f"a JSON {_called(event)}, not an object with attributes")
    return event


def _called(value: Any) -> str:
    match value:
        case list():
            return "array"
        case str():
            return "string"
        case bool():
            return "boolean"
        case None:
            return "null"
    return "number"
