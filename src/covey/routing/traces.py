"""Trace context: a publisher's W3C `traceparent` goes with its events to whoever gets them.

Brokers pass it on as it is and look at nothing in it but its form, where it enters the network. Who makes spans of it
is outside (`network/spans.py`). It isn't part of what an event says: no filter sees it, and copies of an event that
came along different ways are the same event whatever their traces.
"""

from __future__ import annotations

import re
from typing import Final

from covey.errors import EventError

_FORM: Final = re.compile(r"(?!ff)[0-9a-f]{2}-(?!0{32})[0-9a-f]{32}-(?!0{16})[0-9a-f]{16}-[0-9a-f]{2}")


def is_trace(text: str) -> bool:
    """Whether a text is a `traceparent`, of version 00 or a later one with the same four parts."""
    return _FORM.fullmatch(text) is not None


def check_trace(text: str) -> None:
    """Raise an EventError for what is no `traceparent`."""
    if not is_trace(text):
        raise EventError(
            f"{text[:60]!r} is not a traceparent; it is four groups of hexadecimal digits: "
            "00-4bf92f3577b34da6a3ce929d0e0e4736-00f067aa0ba902b7-01"
        )
