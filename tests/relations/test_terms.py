"""Relations with terms are sound: what they say holds for all events, by brute force."""

from __future__ import annotations

import random
from itertools import product
from typing import Any

import pytest

from covey.filters import SEMANTICS, Filter, Semantics, Supposed, matches
from covey.language import parse
from covey.relations.covering import CoveringTable
from covey.relations.relate import relate

TESTS = [
    "x + y {op} {c}", "x * 2 {op} {c}", "x {op} y", "-x {op} {c}", "x / y {op} {c}", "coalesce(x, y) {op} {c}",
    "CASE WHEN x > 1 THEN y ELSE 0 END {op} {c}", "x {op} {c}", "y {op} {c}", "x + y IS NULL", "x IS NULL",
    "x + y IN (0, {c})", "x - y BETWEEN {c} AND 2", "abs(x) {op} y",
]  # fmt: skip
VALUES: list[Any] = [None, -2, -1, 0, 0.5, 1, 2, 3, "a"]
EVENTS = [
    {name: value for name, value in zip("xy", pair, strict=True) if value is not None}
    for pair in product(VALUES, repeat=2)
]
DEFAULTS = {"x": 1}


def _filter(rng: random.Random, depth: int = 2) -> str:
    if not depth or rng.random() < 0.3:
        test = rng.choice(TESTS).format(op=rng.choice(["=", "!=", "<", "<=", ">", ">="]), c=rng.randint(-1, 3))
        return f"NOT ({test})" if rng.random() < 0.2 else test
    joined = rng.choice([" AND ", " OR "]).join(f"({_filter(rng, depth - 1)})" for _ in range(2))
    return f"NOT ({joined})" if rng.random() < 0.2 else joined


def _matching(condition: Filter, semantics: Semantics) -> set[int]:
    found = (n for n, e in enumerate(EVENTS) if matches(condition, e, semantics=semantics, defaults=DEFAULTS))
    return set(found)


@pytest.mark.parametrize("semantics", SEMANTICS)
def test_what_relations_say_holds_for_all_events(semantics: Semantics) -> None:
    rng = random.Random(f"terms {semantics}")
    covering = disjoint = 0
    for at in range(250):
        f, g = parse(_filter(rng)), parse(_filter(rng))
        if at % 3 == 0:
            f = f | (g & parse(_filter(rng, 1)))
            f, g = f, g & f
        relation = relate(f, g, semantics=semantics, defaults=DEFAULTS)
        in_f, in_g = _matching(f, semantics), _matching(g, semantics)
        if relation.covers:
            covering += 1
            assert in_g <= in_f, (str(f), str(g))
        if relation.covered:
            assert in_f <= in_g, (str(f), str(g))
        if relation.equivalent:
            assert in_f == in_g, (str(f), str(g))
        if relation.overlaps is False:
            disjoint += 1
            assert not in_f & in_g, (str(f), str(g))
        assert f.covers(g, semantics=semantics, defaults=DEFAULTS) is bool(relation.covers)
    assert covering > 30
    assert disjoint > 3


@pytest.mark.parametrize("semantics", SEMANTICS)
def test_covering_tables_with_terms_lose_no_event(semantics: Semantics) -> None:
    rng = random.Random(f"table {semantics}")
    table = CoveringTable(semantics=semantics, defaults=DEFAULTS)
    filters = {str(number): parse(_filter(rng, 1)) for number in range(60)}
    for id, condition in filters.items():
        table.insert(id, condition)
    roots = {str(id) for id in table.roots()}
    for event in EVENTS:
        wanted = any(matches(one, event, semantics=semantics, defaults=DEFAULTS) for one in filters.values())
        found = any(matches(filters[id], event, semantics=semantics, defaults=DEFAULTS) for id in roots)
        assert wanted == found, event
    assert len(roots) < len(filters)


def test_a_term_is_an_attribute_of_its_own() -> None:
    assert parse("price * quantity > 5").covers(parse("price * quantity > 10"))
    assert not parse("price * quantity > 5").overlaps(parse("quantity * price < 5"))
    assert parse("a < b").overlaps(parse("b < a AND c = 1")) is False
    assert not parse("a + 1 > 5").covers(parse("a > 4"))  # so it is, but that isn't known


def test_examples_with_terms_are_marked() -> None:
    relation = relate("a + b > 5", "a + b > 10")
    assert relation.covers
    assert relation.supposed
    assert isinstance(relation.only_f, Supposed)
    assert 5 < relation.only_f["=a + b"] <= 10
    assert not relate("a > 5", "a > 10").supposed
