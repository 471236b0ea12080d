"""Which kinds of values can meet a test: a value of another kind counts as missing, so the test is unknown of it."""

from __future__ import annotations

from decimal import Decimal
from typing import Final

from covey.filters.predicates import (
    ArrayContains,
    Between,
    Compare,
    ElementTest,
    In,
    Predicate,
    TextTest,
    compared_with,
)
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
        case Compare() | Between() | In():
            return frozenset(kind_of(value) for value in compared_with(test) if value is not None)
        case TextTest():
            return frozenset((Kind.STRING, Kind.LIST))
        case ArrayContains() | ElementTest():
            return frozenset((Kind.LIST,))
        case _:
            return None


def asked_kind(wanted: frozenset[Kind]) -> Kind:
    """The kind that a test is of, in words: that of texts, where lists of them can meet it too."""
    return Kind.STRING if Kind.STRING in wanted else min(wanted, key=lambda kind: kind.value)


def mismatch(test: Predicate, value: Value) -> str | None:
    """What is wrong with the kinds of a test and a value, in words; None where they fit."""
    wanted = met_by(test)
    if wanted is None or not wanted or kind_of(value) in wanted:
        return None
    return f"{ONE[kind_of(value)]}, where the test is of {HELD[asked_kind(wanted)]}"


def remedy(test: Predicate, held: frozenset[Kind], wanted: frozenset[Kind]) -> str:
    """What to do where an attribute holds values of other kinds than a test is of."""
    name, kind = test.term.sql, asked_kind(wanted)
    if held == {Kind.STRING} and kind in SQL:
        quoted = "put the constant in quotes, " if kind is Kind.NUMBER else ""
        return f'{quoted}give a schema with {{"{name}": "{SCHEMA[kind]}"}}, or write CAST({name} AS {SQL[kind]})'
    if kind is Kind.STRING and isinstance(test, TextTest) and len(held) == 1 and Kind.LIST not in held:
        return f"write CAST({name} AS STRING)"
    if kind is Kind.STRING and held == {Kind.NUMBER} and all(map(_is_number, compared_with(test))):
        return f'write the constant without quotes, or give a schema with {{"{name}": "string"}} for CSV'
    return f"compare it with {HELD[min(held, key=lambda kind: kind.value)]}"


def _is_number(value: object) -> bool:
    try:
        return isinstance(value, str) and bool(Decimal(value).is_finite())
    except ArithmeticError:
        return False
