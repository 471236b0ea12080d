"""Which kinds of values can meet a test: a value of another kind counts as missing, so the test is unknown of it."""

from __future__ import annotations

from typing import Final

from covey.filters.predicates import ArrayContains, Between, Compare, ElementTest, In, Predicate, TextTest
from covey.filters.values import Kind, Value, kind_of

HELD: Final = {kind: f"{kind.value}s" for kind in Kind}
"""What an attribute holds, in words."""
ONE: Final = {kind: f"a {kind.value}" for kind in Kind}
"""One of them."""
SQL: Final = {Kind.NUMBER: "DOUBLE", Kind.TIMESTAMP: "TIMESTAMP", Kind.BOOLEAN: "BOOLEAN"}
SCHEMA: Final = {Kind.NUMBER: "double", Kind.TIMESTAMP: "timestamp", Kind.BOOLEAN: "boolean", Kind.STRING: "string"}


def met_by(test: Predicate) -> frozenset[Kind] | None:
    """The kinds of values that can meet a test; None where any can."""
    match test:
        case Compare(_, _, value):
            constants: tuple[object, ...] = (value,)
        case Between(_, low, high):
            constants = (low, high)
        case In(_, values):
            constants = tuple(values)
        case TextTest():
            return frozenset((Kind.STRING, Kind.LIST))
        case ArrayContains() | ElementTest():
            return frozenset((Kind.LIST,))
        case _:
            return None
    return frozenset(kind_of(value) for value in constants if value is not None)  # type: ignore[arg-type]


def mismatch(test: Predicate, value: Value) -> str | None:
    """What is wrong with the kinds of a test and a value, in words; None where they fit."""
    wanted = met_by(test)
    if wanted is None or not wanted or kind_of(value) in wanted:
        return None
    return f"{ONE[kind_of(value)]}, where the test is of {HELD[min(wanted, key=lambda kind: kind.value)]}"


def remedy(name: str, held: frozenset[Kind], wanted: frozenset[Kind]) -> str:
    """What to do where an attribute holds values of other kinds than a test is of."""
    kind = min(wanted, key=lambda kind: kind.value)
    if held == {Kind.STRING} and kind in SQL:
        return f'give a schema with {{"{name}": "{SCHEMA[kind]}"}}, or write CAST({name} AS {SQL[kind]})'
    if kind is Kind.STRING and held == {Kind.NUMBER}:
        return "write the constant without quotes"
    return f"compare it with {HELD[min(held, key=lambda kind: kind.value)]}"
