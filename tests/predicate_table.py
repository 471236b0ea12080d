"""Every predicate that random filters are made of, once: what it is tried on and how it is drawn.

`strategies.py` (Hypothesis), `random_worlds.py`, `relations/small_worlds.py` and `spark/random_tables.py` draw from it,
each with its own attributes and constants, so every property test knows every operator. A new one is one line here.

A line makes a predicate on an attribute with `draw`, which each of the four has: `draw("text")` is a constant for tests
on text, `"pattern"` one for LIKE, `"expression"` a regular expression, `"network"` one
of `NETWORKS`; `"constant"` is what the attribute is compared
with, `"constants"` some of one kind, `"ends"` two of one kind, `"operator"` a comparison, `"element"` what a list may
hold.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any, Literal, NamedTuple, TypeAlias

from covey.filters import (
    ArrayContains,
    Between,
    CidrMatch,
    Compare,
    Contains,
    ElementTest,
    EndsWith,
    Filter,
    IContains,
    IEndsWith,
    IEquals,
    ILike,
    In,
    IsNull,
    IStartsWith,
    Like,
    Not,
    RLike,
    StartsWith,
    SubstringOf,
)

Draw: TypeAlias = Callable[[str], Any]
On: TypeAlias = Literal["anything", "scalars", "texts", "lists"]


NETWORKS = ("10.0.0.0/8", "10.0.0.0/9", "10.128.0.0/9", "10.0.0.1", "0.0.0.0/0", "::/0", "2001:db8::/32")
"""Of which the second and third are the first; `ADDRESSES` are inside and outside of them."""
ADDRESSES = ("10.0.0.1", "10.200.0.1", "11.0.0.1", "::ffff:10.0.0.1", "2001:db8::1", "10.0.0.01")


class Line(NamedTuple):
    """A predicate, and the kind of values that it is about."""

    on: On
    make: Callable[[str, Draw], Filter]
    on_spark: bool = True
    """Whether Spark SQL reads its text."""
    exact: bool = True
    """Whether relations decide it beside any other test; else they are sound, and some stay unknown."""


PREDICATES: list[Line] = [
    Line("anything", lambda name, draw: IsNull(name)),
    Line("scalars", lambda name, draw: Compare(name, draw("operator"), draw("constant"))),
    Line("scalars", lambda name, draw: Between(name, *draw("ends"))),
    Line("scalars", lambda name, draw: In(name, draw("constants"))),
    Line("texts", lambda name, draw: Like(name, draw("pattern"))),
    Line("texts", lambda name, draw: RLike(name, draw("expression"))),
    Line("texts", lambda name, draw: StartsWith(name, draw("text"))),
    Line("texts", lambda name, draw: EndsWith(name, draw("text"))),
    Line("texts", lambda name, draw: Contains(name, draw("text"))),
    Line("texts", lambda name, draw: SubstringOf(name, draw("text")), on_spark=False),
    Line("texts", lambda name, draw: ILike(name, draw("pattern"))),
    Line("texts", lambda name, draw: IEquals(name, draw("text")), on_spark=False),
    Line("texts", lambda name, draw: IStartsWith(name, draw("text")), on_spark=False),
    Line("texts", lambda name, draw: IEndsWith(name, draw("text")), on_spark=False),
    Line("texts", lambda name, draw: IContains(name, draw("text")), on_spark=False),
    Line("texts", lambda name, draw: CidrMatch(name, draw("network")), on_spark=False, exact=False),
    Line("lists", lambda name, draw: ArrayContains(name, draw("element"))),
    Line("lists", lambda name, draw: ElementTest(name, Compare("x", draw("operator"), draw("element"))), exact=False),
    Line("lists", lambda name, draw: ElementTest(name, Compare("x", ">=", draw("element")), every=True), exact=False),
    Line("lists", lambda name, draw: ElementTest(name, In("x", (draw("element"),))), exact=False),
    Line("lists", lambda name, draw: ElementTest(name, Not(IsNull("x")), every=True), exact=False),
    Line("lists", lambda name, draw: ElementTest(name, Not(ILike("x", draw("pattern")))), on_spark=False, exact=False),
]


def lines(on: On, *, on_spark: bool = False, exact: bool = False) -> list[Line]:
    """The predicates about one kind of values, all or those that Spark reads, or that relations decide."""
    return [
        line for line in PREDICATES if line.on == on and (line.on_spark or not on_spark) and (line.exact or not exact)
    ]
