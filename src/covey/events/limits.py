"""The bounds on what reading one event may cost. Each has a name, a default and a reason."""

from __future__ import annotations

from dataclasses import dataclass


@dataclass(frozen=True, slots=True)
class EventLimits:
    """Limits on events that come from outside. Pass another instance to a reader to change them."""

    line_length: int = 16 * 1024 * 1024
    """Characters (or bytes) of one line of JSON: a file without line ends must not fill memory."""

    document_length: int = 1024 * 1024
    """Characters of one XML document."""

    depth: int = 64
    """Nesting of records: flattening and looking up are recursive."""


DEFAULT_EVENT_LIMITS = EventLimits()
