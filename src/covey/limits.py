"""The bounds on what one subscription or one event may cost. Each has a name, a default and a reason."""

from __future__ import annotations

from dataclasses import dataclass


@dataclass(frozen=True, slots=True)
class Limits:
    """Limits on filters. Pass another instance to `covey.parse` or `covey.Index` to change them.

    The defaults are for a library, whose filters are its user's own: lists of a hundred thousand constants fit. A
    broker takes filters from anyone, and has smaller ones (`BROKER_FILTER_LIMITS`).
    """

    text_length: int = 16_777_216
    """Characters in a filter's text: parsing is linear, so this bounds the time of one `add`."""

    tokens: int = 1_048_576
    """Tokens in a filter's text."""

    depth: int = 100
    """Nesting of parentheses, NOT and Boolean operators: recursion stays far below Python's own limit."""

    set_values: int = 262_144
    """Constants in one IN list."""

    pattern_length: int = 1_024
    """Characters in one LIKE pattern or regular expression: RE2's automaton grows with it."""

    term_depth: int = 64
    """Terms within terms: evaluating one recurses that deep."""

    terms: int = 1_024
    """Distinct terms in one index, attributes not counted: each is a column that is computed for every batch."""

    diagram_nodes: int = 16_384
    """Nodes of one subscription's decision diagram, 65,000 at most."""


DEFAULT_LIMITS = Limits()

BROKER_FILTER_LIMITS = Limits(text_length=65_536, tokens=8_192, set_values=4_096)
"""What a broker takes of those who connect to it, unless it is configured otherwise."""
