"""All that an event says, as one text: its values, one a line, in the event's order, through records and lists.

`event_text()` is that text, which is searched where a rule doesn't say in which attribute something stands. Texts are
as they are, numbers and times as they print, truths as `true` and `false`; what is null says nothing.
"""

from __future__ import annotations

from collections.abc import Mapping
from datetime import date
from typing import Any


def text_of(event: Mapping[str, Any]) -> str:
    """The text of an event."""
    found: list[str] = []
    for value in event.values():
        kind = type(value)
        if kind is str:
            found.append(value)
        elif kind is int:
            found.append(str(value))
        else:
            found += _texts(value)
    return "\n".join(found)


def _texts(event: Any) -> list[str]:
    """What is said by a value of any kind."""
    found: list[str] = []
    waiting: list[Any] = [event]
    while waiting:
        value = waiting.pop()
        if isinstance(value, str):
            found.append(value)
        elif isinstance(value, Mapping):
            waiting += reversed(list(value.values()))
        elif isinstance(value, (list, tuple)):
            waiting += reversed(value)
        elif isinstance(value, bool):
            found.append("true" if value else "false")
        elif isinstance(value, date):
            found.append(value.isoformat())
        elif value is not None:
            found.append(str(value))
    return found
