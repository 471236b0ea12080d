"""The bounds on what one subscription or one event may cost. Each has a name, a default and a reason."""

from __future__ import annotations

from dataclasses import dataclass


@dataclass(frozen=True, slots=True)
class Limits:
    """Limits on filters. Pass another instance to `covey.parse` or `covey.Index` to change them."""

    text_length: int = 65_536
    """Characters in a filter's text: parsing is linear, so this bounds the time of one `add`."""

    tokens: int = 8_192
    """Tokens in a filter's text."""

    depth: int = 100
    """Nesting of parentheses, NOT and Boolean operators: recursion stays far below Python's own limit."""

    set_values: int = 4_096
    """Constants in one IN list."""

    pattern_length: int = 1_024
    """Characters in one LIKE pattern or regular expression: RE2's automaton grows with it."""

    diagram_nodes: int = 16_384
    """Nodes of one subscription's decision diagram."""


DEFAULT_LIMITS = Limits()
