"""Hypothesis strategies for filters, events and values, shared by all tests.

Constants and event values are drawn from the same small pools of extremes, so that they meet often.
"""

from __future__ import annotations

import math
from datetime import UTC, datetime
from functools import lru_cache
from typing import Any

from hypothesis import strategies as st

from covey.filters import (
    FALSE,
    TRUE,
    UNKNOWN,
    And,
    Filter,
    Is,
    Like,
    Not,
    Or,
)
from covey.filters.predicates import OPERATORS
from tests.predicate_table import ADDRESSES, NETWORKS, Line, lines

INTEGERS = (0, 1, -1, 2, 7, 2**31, 2**53, 2**53 + 1, -(2**53) - 1, 2**63 - 1, 2**63, -(2**63), 10**30)
FLOATS = (0.0, -0.0, 0.5, 1.0, -1.0, 7.0, 1e22, 5e-324, 1.7976931348623157e308, float(2**53), float(2**63))
NOT_FINITE = (math.nan, math.inf, -math.inf)
STRINGS = (
    "",
    "a",
    "ab",
    "abc",
    "b",
    "IBM",
    "it's",
    "50%",
    "a_b",
    "é",
    "É",
    "AB",
    "ΑΣ",
    "İ",
    "e\u0301",
    "𝔘",
    "\U0001f600x",
    "a\\b",
    "\n",
    "\0",
    *ADDRESSES[:3],
)
TIMESTAMPS = (
    datetime(1970, 1, 1, tzinfo=UTC),
    datetime(2024, 1, 31, 12, 0, 0, 1, tzinfo=UTC),
    datetime(2024, 2, 29, tzinfo=UTC),
    datetime(1, 1, 1, tzinfo=UTC),
    datetime(9999, 12, 31, 23, 59, 59, 999999, tzinfo=UTC),
)
PATTERNS = ("", "%", "_", "a%", "%b", "%b%", "a_c", "\\%", "\\_\\\\", "é%", "𝔘_", "it's", "%%", "_%_", "A%", "%Σ", "i_")
REGULAR_EXPRESSIONS = ("", "a", "^a", "b$", "^a.c$", "[ab]+", "(?i)ibm", "\\d+", "é|𝔘", "it's", "a\\\\b")

NUMBER_NAMES = ("i", "d", "nested.x")
KIND_OF_NAME = {"i": "number", "d": "number", "nested.x": "number", "s": "string", "b": "boolean", "t": "timestamp"}
NAMES = (*KIND_OF_NAME, "l")


def numbers() -> st.SearchStrategy[int | float]:
    """Numbers, mostly extremes."""
    pools = st.sampled_from(INTEGERS) | st.sampled_from(FLOATS) | st.sampled_from(NOT_FINITE)
    return pools | st.integers(-10, 10) | st.integers() | st.floats()


def strings() -> st.SearchStrategy[str]:
    """Strings, mostly from a small pool."""
    return st.sampled_from(STRINGS) | st.sampled_from(STRINGS) | st.text(max_size=5)


def timestamps() -> st.SearchStrategy[datetime]:
    """Timestamps in UTC, mostly from a small pool."""
    return st.sampled_from(TIMESTAMPS) | st.datetimes().map(lambda moment: moment.replace(tzinfo=UTC, fold=0))


_OF_KIND: dict[str, st.SearchStrategy[Any]] = {
    "number": numbers(),
    "string": strings(),
    "boolean": st.booleans(),
    "timestamp": timestamps(),
}


def values(kind: str | None = None) -> st.SearchStrategy[Any]:
    """Scalars of one kind (`number`, `string`, `boolean`, `timestamp`), or of any."""
    return _OF_KIND[kind] if kind else st.one_of(*_OF_KIND.values())


def lists() -> st.SearchStrategy[list[Any]]:
    """Lists of scalars, with a missing one among them sometimes."""
    return st.lists(st.none() | values(), max_size=4) | st.lists(st.sampled_from((0, 1, 2, 7, "a", "b")), max_size=4)


def predicates(names: tuple[str, ...] = NAMES) -> st.SearchStrategy[Filter]:
    """One predicate on one of the names; the constant mostly has the kind that events give the attribute."""
    return st.one_of(*(_predicates_on(name) for name in names))


@lru_cache
def _predicates_on(name: str) -> st.SearchStrategy[Filter]:
    usual = KIND_OF_NAME.get(name)
    scalars = [_drawn(name, line, kind) for kind in _OF_KIND for line in lines("scalars")]
    texts, lists_ = ([_drawn(name, line) for line in lines(on)] for on in ("texts", "lists"))
    texts.append(st.builds(Like, st.just(name), st.sampled_from(("a!%", "!!b%", "_!_")), st.just("!")))
    others = [_drawn(name, line) for line in lines("anything")]
    # Tests that mean something on strings or lists only: elsewhere few of them are enough.
    special = [*texts, *lists_] if name == "s" else [*lists_, *lists_, st.one_of(texts)]
    mostly = special if usual is None else [_drawn(name, line, usual) for line in _OFTEN[usual]]
    branches = [st.one_of(mostly)] * (3 if usual is None else 4)
    branches += [st.one_of(scalars), st.one_of(special), st.one_of(others)]
    return st.sampled_from(branches).flatmap(lambda branch: branch)


_OFTEN = {kind: [lines("scalars")[0], *lines("scalars")] for kind in _OF_KIND}


def _drawn(name: str, line: Line, kind: str | None = None) -> st.SearchStrategy[Filter]:
    """What a line of the table makes of constants of one kind."""
    constants = values(kind) | st.none()
    pools: dict[str, st.SearchStrategy[Any]] = {
        "operator": st.sampled_from(OPERATORS),
        "constant": constants,
        "ends": st.tuples(constants, constants),
        "constants": st.lists(constants, min_size=1, max_size=4).map(tuple),
        "text": strings(),
        "pattern": st.sampled_from(PATTERNS),
        "expression": st.sampled_from(REGULAR_EXPRESSIONS),
        "network": st.sampled_from(NETWORKS),
        "element": st.none() | values() | st.sampled_from((0, 1, 2, 7, "a", "b")),
    }

    @st.composite
    def made(draw: st.DrawFn) -> Filter:
        return line.make(name, lambda what: draw(pools[what]))

    return made()


@lru_cache
def filters(names: tuple[str, ...] = NAMES, max_leaves: int = 8) -> st.SearchStrategy[Filter]:
    """Any filter: nested And, Or, Not and IS over predicates and constants."""
    leaves = st.one_of(predicates(names), st.sampled_from((TRUE, FALSE, UNKNOWN)))
    return st.recursive(
        leaves,
        lambda inner: st.one_of(
            st.builds(Not, inner),
            st.lists(inner, min_size=2, max_size=3).map(lambda parts: And(tuple(parts))),
            st.lists(inner, min_size=2, max_size=3).map(lambda parts: Or(tuple(parts))),
            st.builds(Is, inner, st.sampled_from((True, False, None))),
        ),
        max_leaves=max_leaves,
    )


@st.composite
def events(draw: st.DrawFn, names: tuple[str, ...] = NAMES) -> dict[str, Any]:
    """A partial event: attributes missing or None, a value of the usual kind, and sometimes of another."""
    event: dict[str, Any] = {}
    for name in names:
        roll = draw(st.integers(0, 9))
        if roll == 0:
            event[name] = None
        elif roll == 1:
            event[name] = draw(values() | lists())
        elif roll > 3:
            event[name] = draw(values(KIND_OF_NAME[name]) if name in KIND_OF_NAME else lists())
    if "nested.x" in event and draw(st.booleans()):
        event["nested"] = {"x": event.pop("nested.x")}
    return event
