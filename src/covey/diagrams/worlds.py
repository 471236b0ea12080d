"""Which truths the tests on one attribute can have together.

The tests on an attribute are related: where `n = 10` holds, `n > 8` does. All such relations at once are the set of
*worlds*: the combinations of truths that some value of the attribute (or its absence) gives. `u` implies `v` where
no world has `u` without `v`; Campailla et al.'s dependency function d(A) (section 6) is the pairwise part of this.

The constants in the tests cut an ordered kind into cells, points and the gaps between them; within a cell no test
changes, so each cell is one world. Booleans have two points. Tests on texts are decided exactly at points (the
constants, and every part of a short SubstringOf text), and elsewhere take each combination that the relations'
`text_facts.py` doesn't rule out. A list may hold any of the asked constants, and a NULL.

Sound: every combination that an event can give is among the worlds, so what holds in all worlds holds for all
events. There may be worlds that no event gives (a gap between neighbouring floats, two patterns that exclude each
other for deeper reasons); they only leave a simplification undone. For comparisons and sets over one kind the worlds
are exact but for such gaps.

Worlds are bit masks over the tests, in the order given. Cost: cells times tests, and 2^m for m tests on texts;
`limit` bounds it, beyond it there is no answer (None) and the caller treats the tests as unrelated.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass
from itertools import product
from typing import Any

from covey.diagrams.attribute_tests import truth_of
from covey.errors import CoveyError
from covey.filters.algebra import Is
from covey.filters.predicates import (
    ArrayContains,
    Compare,
    ElementTest,
    In,
    IsNull,
    Predicate,
    SubstringOf,
    TextTest,
)
from covey.filters.two_valued import Test, predicate_of
from covey.filters.values import Kind, Scalar, kind_of, order_key
from covey.relations import text_facts

WORLD_LIMIT = 64
"""Worlds of one attribute: a set of them is one machine word."""

_FREE_TESTS = 8
_SHORT_TEXT = 6
_SET_VALUES = 256
_POSITION = {
    "=": lambda at, of: at == of,
    "!=": lambda at, of: at != of,
    "<": lambda at, of: at < of,
    "<=": lambda at, of: at <= of,
    ">": lambda at, of: at > of,
    ">=": lambda at, of: at >= of,
}


@dataclass(frozen=True, slots=True)
class Domain:
    """What is known of an attribute beforehand, from a schema or the semantics."""

    kind: Kind | None = None
    """The kind of its value wherever it is defined; None if any."""
    required: bool = False
    """Whether every event defines it."""


ANY = Domain()


def worlds(tests: Sequence[Test], domain: Domain = ANY, limit: int = WORLD_LIMIT) -> list[int] | None:
    """The worlds of `tests` on one attribute of a `domain`, ascending; None where there are more than `limit`."""
    if not _is_small({predicate_of(test) for test in tests}):
        return None
    found: set[int] = set()
    if not domain.required:
        found.add(_mask(truth_of(test, None) is True for test in tests))
    kinds = {kind for test in tests if (kind := kind_of_test(test)) is not None}
    if domain.kind is None or domain.kind not in kinds:
        found.add(_mask(_holds_across_kinds(test) for test in tests))
    for kind in kinds:
        if domain.kind not in (None, kind):
            continue
        for world in _worlds_of_kind(tests, kind):
            found.add(world)
            if len(found) > limit:
                return None
    return sorted(found)


def implies(given: Test, asked: Test, domain: Domain = ANY) -> bool:
    """Whether `asked` certainly holds for every event for which `given` holds, its attribute being in the `domain`."""
    if given == asked:
        return True
    found = worlds((given, asked), domain)
    return found is not None and all(world != 0b01 for world in found)


def _is_small(predicates: set[Predicate]) -> bool:
    listed = sum(len(predicate.values) for predicate in predicates if isinstance(predicate, In))
    free = sum(isinstance(predicate, (ArrayContains, ElementTest, TextTest)) for predicate in predicates)
    return listed <= _SET_VALUES and free <= _FREE_TESTS


def kind_of_test(test: Test) -> Kind | None:
    """The kind of value that a test is about; None for IS NULL, which is about all."""
    predicate = predicate_of(test)
    match predicate:
        case Compare(_, operator, value) if value is not None and operator != "<=>":
            return kind_of(value)
        case In(_, values) if None not in values:
            return kind_of(_scalars(values)[0])
        case ArrayContains(_, value) if value is not None:
            return Kind.LIST
        case ElementTest():
            return Kind.LIST
        case IsNull():
            return None
        case _ if isinstance(predicate, TextTest):
            return Kind.STRING
    raise CoveyError(f"{predicate} is not a canonical test; lower it first")


def _holds_across_kinds(test: Test) -> bool:
    """Whether a test holds for a value that none of the tests is about."""
    return isinstance(test, Is) and isinstance(test.part, IsNull)


def _mask(truths: Iterable[bool]) -> int:
    return sum(1 << at for at, truth in enumerate(truths) if truth)


def _worlds_of_kind(tests: Sequence[Test], kind: Kind) -> Iterator[int]:
    about = [(1 << at, test) for at, test in enumerate(tests) if kind_of_test(test) is kind]
    always = _mask(_holds_across_kinds(test) for test in tests)
    cells = _list_worlds(about) if kind is Kind.LIST else _cells(about, kind)
    return (always | cell for cell in cells)


def _cells(tests: list[tuple[int, Test]], kind: Kind) -> Iterator[int]:
    """One world for each cell of an ordered kind."""
    text_tests = [(bit, test) for bit, test in tests if isinstance(predicate_of(test), TextTest)]
    ordered = [(bit, test) for bit, test in tests if not isinstance(predicate_of(test), TextTest)]
    points = {order_key(value): value for _, test in ordered for value in _constants(test)}
    if kind is Kind.BOOLEAN:
        points = {order_key(value): value for value in (False, True)}
    short = {predicate_of(test) for _, test in text_tests if _is_short(predicate_of(test))}
    for predicate in short:
        assert isinstance(predicate, SubstringOf)
        points |= {order_key(part): part for part in _parts(predicate.text)}
    keys = sorted(points)
    positions = {key: 2 * at + 1 for at, key in enumerate(keys)}
    for key in keys:
        world = _at(ordered, positions[key], positions)
        yield world | sum(bit for bit, test in text_tests if truth_of(test, points[key]))
    if kind is Kind.BOOLEAN:
        return
    # Above NaN there is no number; `(1, 0)` is its key.
    last = len(keys) - (1 if keys and keys[-1][0] == 1 else 0)
    gaps = {_at(ordered, 2 * at, positions) for at in range(last + 1)}
    yield from (gap | combination for gap, combination in product(gaps, _text_worlds(text_tests, short)))


def _at(tests: list[tuple[int, Test]], position: int, positions: dict[Any, int]) -> int:
    """The world of comparisons and sets at a position: odd ones are constants, even ones the gaps below them."""
    world = 0
    for bit, test in tests:
        predicate = predicate_of(test)
        if isinstance(predicate, Compare):
            assert predicate.value is not None
            holds = _POSITION[predicate.operator](position, positions[order_key(predicate.value)])
        else:
            holds = any(positions[order_key(value)] == position for value in _constants(test))
        if holds is not isinstance(test, Is):
            world |= bit
    return world


def _text_worlds(tests: list[tuple[int, Test]], short: set[Predicate]) -> list[int]:
    """Combinations for texts that aren't points; none of those is part of a short text."""
    predicates = list(dict.fromkeys(predicate_of(test) for _, test in tests))
    combinations: list[dict[Predicate, bool]] = [{}]
    for predicate in predicates:
        truths = [False] if predicate in short else [True] if text_facts.always(predicate) else [False, True]
        combinations = [
            {**combination, predicate: truth}
            for combination in combinations
            for truth in truths
            if all(_compatible(predicate, truth, other, its) for other, its in combination.items())
        ]
    return [
        sum(bit for bit, test in tests if combination[predicate_of(test)] is not isinstance(test, Is))
        for combination in combinations
    ]


def _compatible(left: Predicate, left_truth: bool, right: Predicate, right_truth: bool) -> bool:
    if left_truth and right_truth:
        return not text_facts.excludes(left, right)
    if left_truth:
        return not text_facts.implies(left, right)
    return not (right_truth and text_facts.implies(right, left))


def _list_worlds(tests: list[tuple[int, Test]]) -> Iterator[int]:
    """A list holds any of the constants; with a NULL in it, the absence of the others is unknown."""
    predicates = list(dict.fromkeys(predicate_of(test) for _, test in tests))
    if any(isinstance(predicate, ElementTest) for predicate in predicates):
        yield from _free_worlds(tests, predicates)
        return
    for held in product((False, True), repeat=len(predicates)):
        contains = dict(zip(predicates, held, strict=True))
        positive = sum(bit for bit, test in tests if not isinstance(test, Is) and contains[predicate_of(test)])
        yield positive
        yield positive | sum(bit for bit, test in tests if isinstance(test, Is) and not contains[predicate_of(test)])


def _free_worlds(tests: list[tuple[int, Test]], predicates: list[Predicate]) -> Iterator[int]:
    """Every predicate true, false or unknown, whatever the others are: more worlds than there are, perhaps."""
    for held in product((True, False, None), repeat=len(predicates)):
        truths = dict(zip(predicates, held, strict=True))
        yield sum(bit for bit, test in tests if truths[predicate_of(test)] is not isinstance(test, Is))


def _constants(test: Test) -> list[Scalar]:
    match predicate_of(test):
        case Compare(_, _, value) if value is not None:
            return [value]
        case In(_, values):
            return _scalars(values)
    return []


def _scalars(values: Iterable[Scalar | None]) -> list[Scalar]:
    return [value for value in values if value is not None]


def _is_short(predicate: Predicate) -> bool:
    return isinstance(predicate, SubstringOf) and len(predicate.text) <= _SHORT_TEXT


def _parts(text: str) -> set[str]:
    return {text[start:end] for start in range(len(text) + 1) for end in range(start, len(text) + 1)}
