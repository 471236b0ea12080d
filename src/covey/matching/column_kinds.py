"""What a subscription asks of a table's columns that can never be, because of what these hold.

A term over columns of wrong kinds (`length(status)` of a number, `day = status`) is missing in every row, and a test of
another kind than it gives is unknown of every row. Of a table that is known before a row is read, and SQL refuses it or
casts what isn't written. So it is refused, in words that say what to write: nothing is cast unless the text says so.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator
from typing import Final, TypeAlias

import pyarrow as pa

from covey.events.types import type_of_arrow
from covey.filters import Filter, Predicate
from covey.filters.algebra import leaves
from covey.filters.conditional import Case, Truth
from covey.filters.kinds import HELD, ONE, asked_kind, met_by, remedy
from covey.filters.predicates import ElementTest
from covey.filters.terms import Call, Fixed, Path, Present, Term
from covey.filters.values import Kind

Types: TypeAlias = Callable[[str], pa.DataType | None]
"""The type of what stands under a dotted name; None where that isn't known, or differs."""

_ONE_KIND: Final = frozenset({"+", "-", "compare", "coalesce", "nullif", "greatest", "least"})
"""Functions whose arguments are of one kind, as far as they have kinds: an interval has none."""
_FIRST: Final = frozenset({"coalesce", "nullif", "greatest", "least"})
"""Those that give one of their arguments."""


def mistakes(condition: Filter, types: Types) -> Iterator[str]:
    """What is wrong with a subscription, in words."""
    for test in leaves(condition):
        if not isinstance(test, Predicate):
            continue
        found = list(_of_term(test.term, types))
        yield from found
        if not found:
            yield from _of_test(test, types)


def _of_test(test: Predicate, types: Types) -> Iterator[str]:
    held, wanted = kind_of_term(test.term, types), met_by(test)
    if held is not None and wanted and held not in wanted:
        rest = remedy(test, frozenset((held,)), wanted)
        yield f"{test.term.sql} holds {HELD[held]}, and {test} is of {HELD[asked_kind(wanted)]}; {rest}"
    elif isinstance(test, ElementTest) and isinstance(test.term, Path):
        yield from mistakes(test.condition, _of_elements(types(test.term.name), test.variable))


def _of_elements(kind: pa.DataType | None, variable: str) -> Types:
    """The types of what a test of a list's elements names: an element, or the fields of one that is a record."""
    element = kind.value_type if kind is not None and _is_list(kind) else None

    def known(name: str) -> pa.DataType | None:
        if element is None or name == variable:
            return None if element is None or pa.types.is_struct(element) else element
        return within(element, name.partition(".")[2])

    return known


def _of_term(term: Term, types: Types) -> Iterator[str]:
    if isinstance(term, Path):
        kind = types(term.name)
        if kind is not None and pa.types.is_struct(kind):
            inner = next((f", such as {term.sql}.{one.name}" for one in kind), "")
            yield f"{term.sql} is a record; name one of its fields{inner}"
        elif kind is not None and pa.types.is_map(kind):
            yield f"{term.sql} is a map; name one of its keys, such as {term.sql}.key"
        elif kind is not None and is_bytes(kind):
            yield f"column {term.name!r} is of Arrow type {kind}, which filters can't compare; cast it first"
    for part in term.parts():
        yield from _of_term(part, types)
    if isinstance(term, Truth):
        yield from mistakes(term.condition, types)
    elif isinstance(term, Case):
        for condition, _ in term.branches:
            yield from mistakes(condition, types)
    elif isinstance(term, Call):
        yield from _of_call(term, types)


def _of_call(term: Call, types: Types) -> Iterator[str]:
    function = term.function
    kinds = [(argument, kind_of_term(argument, types)) for argument in term.arguments]
    for place, (argument, kind) in enumerate(kinds):
        if kind is not None and not function.accepts(place, kind):
            yield (
                f"{function.shown} takes {function.wanted(place)} here, and {_has(argument, kind)}; "
                f"write CAST({argument.sql} AS …) if that is meant"
            )
            return
    known = [(argument, kind) for argument, kind in kinds if kind is not None]
    if function.name in _ONE_KIND and known:
        first, kind = known[0]
        other = next((one for one in known if one[1] is not kind), None)
        if other is not None:
            yield f"{_has(first, kind)} and {_has(*other)}; write CAST(… AS …) so that they are of one kind"


def _has(term: Term, kind: Kind) -> str:
    return f"{term.sql} is {ONE[kind]}" if isinstance(term, Fixed) else f"{term.sql} holds {HELD[kind]}"


def kind_of_term(term: Term, types: Types) -> Kind | None:
    """The kind of a term's values over such columns, where it is always the same."""
    if term.kind is not None or isinstance(term, Present):
        return term.kind
    if isinstance(term, Path):
        return _kind(types(term.name))
    if isinstance(term, Call) and term.function.name == "element":
        kind = types(term.arguments[0].name) if isinstance(term.arguments[0], Path) else None
        return _kind(kind.value_type) if kind is not None and _is_list(kind) else None
    kinds = [kind_of_term(part, types) for part in term.parts() if not _is_null(part)]
    if isinstance(term, Call) and term.function.name not in _FIRST:
        return Kind.NUMBER if set(kinds) == {Kind.NUMBER} else None  # +, - and the sign: of times they give others
    return kinds[0] if len(set(kinds)) == 1 else None


def _is_null(term: Term) -> bool:
    return isinstance(term, Fixed) and term.constant is None


def _kind(kind: pa.DataType | None) -> Kind | None:
    found = None if kind is None or pa.types.is_null(kind) else type_of_arrow(kind)
    if found is None:
        return Kind.LIST if kind is not None and _is_list(kind) else None
    return found.kind


def within(kind: pa.DataType, path: str) -> pa.DataType | None:
    """The type of what stands under a dotted name in values of a type; None where that is several things, or none."""
    if pa.types.is_map(kind):
        return kind.item_type
    if not pa.types.is_struct(kind):
        return None
    first, dot, rest = path.partition(".")
    for one in kind:
        if one.name == path:
            return one.type
        if dot and one.name == first:
            return within(one.type, rest)
    return None


def _is_list(kind: pa.DataType) -> bool:
    return bool(pa.types.is_list(kind) or pa.types.is_large_list(kind) or pa.types.is_fixed_size_list(kind))


def is_bytes(kind: pa.DataType) -> bool:
    """Whether values of a type are bytes, which filters can't compare."""
    return bool(
        pa.types.is_binary(kind) or pa.types.is_large_binary(kind) or pa.types.is_fixed_size_binary(kind)
        or pa.types.is_binary_view(kind)
    )  # fmt: skip
