from __future__ import annotations

import random
from typing import Any

import pytest

import covey
from covey.errors import DuplicateIdError, UnknownIdError
from covey.events.schema import Schema
from covey.filters import FALSE, TRUE, Filter
from covey.filters.semantics import SEMANTICS, Semantics
from covey.relations.conjunctions import conjunction_of
from covey.relations.covering import CoveringLimits, CoveringTable, Insertion, Removal
from covey.relations.covering.sieve import WitnessSieve
from covey.relations.covering.table import SIEVED_TOGETHER
from covey.relations.exact import covers
from covey.relations.steps import Budget
from tests.random_worlds import filter_of
from tests.relations.covering.small_worlds import DEFAULTS, NAMES, Oracle, boolean, conjunctive

LIMITS = {
    "all known": CoveringLimits(exact_decisions=10_000),
    "labels alone": CoveringLimits(exact_decisions=10_000, related_variables=0),
    "signatures one by one": CoveringLimits(exact_decisions=10_000, related_signatures=0),
    "a small relation": CoveringLimits(exact_decisions=10_000, relation_bytes=300),
}


def table_of(semantics: Semantics = "sql", **options: Any) -> CoveringTable:
    return CoveringTable(semantics=semantics, defaults=DEFAULTS if semantics == "default" else None, **options)


def inserted(table: CoveringTable, **texts: str) -> dict[str, Insertion]:
    return {id: table.insert(id, covey.parse(text)) for id, text in texts.items()}


def check_against(table: CoveringTable, oracle: Oracle) -> None:
    roots = table.roots()
    assert len(roots) == table.root_count()
    assert sorted(oracle.matched[root] for root in roots) == sorted(oracle.greatest())
    for id in table:
        above = table.covered_by(id)
        assert (above is None) == (id in roots)
        if above is not None:
            assert oracle.covers(above, id)
            assert id in table.covered(above)


def live(rng: random.Random, table: CoveringTable, oracle: Oracle, draw: Any, steps: int) -> None:
    """Random insertions, singly and many at a time, and removals, each held against the oracle."""
    names = NAMES[:2]
    for step in range(steps):
        before = set(table.roots())
        if len(table) > 3 and rng.random() < 0.4:
            id = rng.choice(list(table))
            removal = table.remove(id)
            del oracle.matched[id]
            assert not removal.covers
            assert before.isdisjoint(removal.recovered)
            assert set(table.roots()) == (before - {id}) | set(removal.recovered)
        elif rng.random() < 0.5:
            condition = draw(rng, names)
            oracle.add(step, condition)
            told = table.insert(step, condition)
            if told.covered_by is None:
                assert set(table.roots()) == (before - set(told.covers)) | {step}
                assert before.issuperset(told.covers)
            else:
                assert not told.covers
                assert oracle.covers(told.covered_by, step)
                assert set(table.roots()) == before
        else:
            many = [((step, number), draw(rng, names)) for number in range(rng.randint(0, 6))]
            for id, condition in many:
                oracle.add(id, condition)
            table.insert_many(many)
        check_against(table, oracle)


@pytest.mark.parametrize("semantics", SEMANTICS)
@pytest.mark.parametrize("limits", LIMITS.values(), ids=LIMITS)
def test_conjunctions_have_the_roots_that_brute_force_over_all_events_finds(
    semantics: Semantics, limits: CoveringLimits
) -> None:
    for seed in range(4):
        live(
            random.Random(seed),
            table_of(semantics, limits=limits),
            Oracle(semantics, NAMES[:2]),
            conjunctive,
            40,
        )


@pytest.mark.parametrize("semantics", SEMANTICS)
def test_boolean_filters_have_the_roots_that_brute_force_over_all_events_finds(semantics: Semantics) -> None:
    for seed in range(4):
        table = table_of(semantics, limits=LIMITS["all known"])
        live(random.Random(seed), table, Oracle(semantics, NAMES[:2]), boolean, 25)


@pytest.mark.parametrize("semantics", SEMANTICS)
@pytest.mark.parametrize("draw", [conjunctive, boolean])
def test_many_at_once_are_told_what_they_would_be_told_one_by_one(semantics: Semantics, draw: Any) -> None:
    for seed in range(4):
        rng = random.Random(seed)
        filters = [draw(rng, NAMES[:2]) for _ in range(40)]
        many, single = table_of(semantics), table_of(semantics)
        started = many.insert_many(enumerate(filters[:20]))
        told = started + many.insert_many((number, filters[number]) for number in range(20, len(filters)))
        assert told == [single.insert(number, condition) for number, condition in enumerate(filters)]
        assert many.roots() == single.roots()


def test_filters_with_patterns_and_every_kind_of_value_are_never_put_under_one_that_does_not_cover_them() -> None:
    for seed in range(6):
        rng = random.Random(seed)
        table = CoveringTable()
        filters = {number: filter_of(rng, 2) for number in range(40)}
        table.insert_many(filters.items())
        for id in rng.sample(sorted(filters), 10):
            table.remove(id)
        for id in table:
            above = table.covered_by(id)
            assert above is None or covers(table.filter(above), table.filter(id))


def test_no_root_covers_another_among_thousands_with_one_signature() -> None:
    rng = random.Random(7)
    table = CoveringTable()
    filters: list[Filter] = []
    for _ in range(900):
        low, other = rng.randint(0, 300), rng.randint(0, 300)
        text = f"name = 'n{rng.randint(0, 40)}' AND a >= {low} AND b BETWEEN {other} AND {other + rng.randint(0, 40)}"
        filters.append(covey.parse(text))
    table.insert_many(enumerate(filters))
    for id in range(0, 900, 3):
        table.remove(id)
    conjunctions = {id: conjunction_of(filters[id]) for id in table}
    greatest = {
        one
        for one in conjunctions.values()
        if one is not None
        and not any(two is not None and two != one and two.covers(one) for two in set(conjunctions.values()))
    }
    assert {conjunctions[id] for id in table.roots()} == greatest
    assert len(table.roots()) == len(greatest) > 200


def test_a_price_of_80_is_covered_by_a_price_below_150_as_in_figure_6() -> None:
    rest = "AND time = '2004-07-20' AND destination = 'Ottawa'"
    table = CoveringTable()
    told = inserted(table, s=f"price < 150 {rest}", new=f"price = 80 {rest}")
    assert told["new"] == Insertion("s", ())
    assert table.roots() == ("s",)
    assert inserted(table, wide=f"price <= 150 {rest}")["wide"] == Insertion(None, ("s",))
    assert inserted(table, other="price = 80 AND time = '2004-07-20'")["other"] == Insertion(None, ())


def test_of_equal_filters_the_first_is_the_root_and_the_next_oldest_follows_it() -> None:
    table = CoveringTable()
    told = inserted(table, one="a > 1 AND a < 3", two="a < 3 AND NOT a <= 1", three="a > 1 AND a < 3")
    assert told["two"] == told["three"] == Insertion("one", ())
    assert table.covered("one") == ("two", "three")
    assert table.remove("one") == Removal(("two",))
    assert table.remove("three") == Removal(())
    assert table.roots() == ("two",)


def test_removing_a_root_recovers_what_nobody_else_covers_and_no_more() -> None:
    table = CoveringTable()
    inserted(table, narrow="a < 1", middle="a < 2", left="a < 3 AND b = 1", wide="a < 4", other="b = 1")
    assert set(table.roots()) == {"wide", "other"}
    assert table.remove("wide") == Removal(("middle",))
    assert table.covered_by("left") == "other"
    assert table.covered_by("narrow") == "middle"


def test_removing_a_covered_one_leaves_what_is_under_it_covered() -> None:
    table = CoveringTable()
    inserted(table, narrow="a < 1", middle="a < 2", wide="a < 4")
    assert table.remove("middle") == Removal(())
    assert table.covered_by("narrow") == "wide"


def test_what_nothing_meets_is_covered_by_anything_and_covers_nothing_else() -> None:
    table = CoveringTable()
    told = inserted(table, never="a < 1 AND a > 2", again="FALSE", wide="a < 1")
    assert told == {"never": Insertion(None, ()), "again": Insertion("never", ()), "wide": Insertion(None, ("never",))}
    assert table.remove("wide") == Removal(("never",))
    assert table.insert_many([("x", covey.parse("a = 1 OR b = 1")), ("y", covey.parse("c = 1"))]) == [
        Insertion(None, ("never",)),
        Insertion(None, ()),
    ]
    contradiction = covey.parse("name LIKE '%a%' AND NOT name LIKE '%a%'")
    assert table.insert("z", contradiction) == Insertion("never", ())


def test_what_everything_meets_covers_all() -> None:
    table = CoveringTable()
    inserted(table, one="a = 1", two="b = 1 OR c = 1")
    assert set(table.insert("all", TRUE).covers) == {"one", "two"}
    assert table.insert("none", FALSE).covered_by == "all"
    assert table.roots() == ("all",)


def test_an_integer_type_makes_three_and_five_exclusive_mean_four() -> None:
    table = CoveringTable(schema=Schema({"a": "int"}))
    told = inserted(table, four="a = 4", between="a > 3 AND a < 5")
    assert told["between"] == Insertion("four", ())


def test_exact_decisions_are_bounded_and_what_is_beyond_is_not_covered() -> None:
    # No box of the first has the second's `a = 4 AND b >= 0` in it; only both together do, which bounds can't tell.
    cover, covered = "a < 5 AND b < 5 OR a > 3 AND b > 3", "a = 4 AND b >= 0 OR a = 4 AND b < 0 AND c = 1"
    decided, bounded = CoveringTable(), CoveringTable(limits=CoveringLimits(exact_decisions=0))
    assert inserted(decided, wide=cover, narrow=covered)["narrow"] == Insertion("wide", ())
    assert inserted(bounded, wide=cover, narrow=covered)["narrow"] == Insertion(None, ())


def test_an_id_that_is_there_already_is_refused_before_anything_changes() -> None:
    table = CoveringTable()
    inserted(table, one="a = 1")
    with pytest.raises(DuplicateIdError, match="'one' is in the covering table already"):
        table.insert_many([("two", TRUE), ("one", TRUE)])
    with pytest.raises(DuplicateIdError):
        table.insert_many([("two", TRUE), ("two", TRUE)])
    assert table.roots() == ("one",)


def test_an_id_that_is_not_there_can_not_be_asked_for() -> None:
    for ask in (CoveringTable().remove, CoveringTable().filter, CoveringTable().covered_by, CoveringTable().covered):
        with pytest.raises(UnknownIdError, match="'x' is not in the covering table"):
            ask("x")


def test_a_table_gives_filters_back_as_they_came() -> None:
    table = CoveringTable()
    condition = covey.parse("b = 1 AND a < 2")
    table.insert("filter", condition)
    conjunction = conjunction_of(condition)
    assert conjunction is not None
    assert table.insert("conjunction", conjunction) == Insertion("filter", ())
    assert table.filter("filter") == condition
    assert conjunction_of(table.filter("conjunction")) == conjunction


def test_an_emptied_table_keeps_no_variables() -> None:
    rng = random.Random(3)
    table = CoveringTable()
    for round in range(3):
        table.insert_many(
            (number, boolean(rng, depth=2) if number % 4 == 0 else conjunctive(rng)) for number in range(60)
        )
        for id in list(table):
            table.remove(id)
        assert (len(table), table.root_count(), table.roots(), len(table.variables)) == (0, 0, (), 0), round


@pytest.mark.parametrize("draw", [conjunctive, boolean])
@pytest.mark.parametrize("steps", [1, 250, 2_000])
def test_what_a_budget_leaves_is_not_in_the_table_and_comes_out_the_same_in_the_end(draw: Any, steps: int) -> None:
    rng = random.Random(f"{draw.__name__} {steps}")
    table, oracle = CoveringTable(limits=LIMITS["all known"]), Oracle("sql", NAMES[:2])
    filters: dict[int, Filter] = {}
    waiting: dict[int, Filter] = {}
    for number in range(120):
        if len(table) > 3 and rng.random() < 0.4:
            id = rng.choice(list(table))
            removal = table.remove(id, Budget(steps))
            del oracle.matched[id], filters[id]
            waiting |= {left: filters[left] for left in removal.left}
        else:
            waiting[number] = filters[number] = draw(rng, NAMES[:2])
            oracle.add(number, filters[number])
        before = len(table)
        done = table.insert_many(waiting.items(), Budget(steps))
        assert len(table) == before + len(done)
        for id in list(waiting)[: len(done)]:
            del waiting[id]
        assert set(table) == filters.keys() - waiting.keys()
        roots = table.roots()
        assert all(table.covered_by(id) in table for id in table if id not in roots)
    rounds = 0
    while waiting:
        done = table.insert_many(waiting.items(), Budget(steps))
        for id in list(waiting)[: len(done)]:
            del waiting[id]
        rounds += 1
        assert rounds < 5_000, "a budget gets nowhere"
    check_against(table, oracle)


def test_a_piece_of_work_reads_no_more_boolean_filters_than_it_files() -> None:
    """Reading takes steps too: what is read and not reached is read again in the next piece."""
    table = table_of()
    filters = [
        covey.parse(f"(a IN ({at}, {at + 1}) AND b BETWEEN {at} AND {at + 3}) OR (c = {at} AND NOT d < {at})")
        for at in range(200)
    ]
    spent = pieces = 0
    while len(table) < len(filters):
        budget = Budget(3_000)
        rest = enumerate(filters[len(table) : len(table) + 64], len(table))
        assert table.insert_many(rest, budget)
        spent += 3_000 - budget.left
        pieces += 1
    alone = Budget(10**9)
    other = table_of()
    assert len(other.insert_many(enumerate(filters), alone)) == len(filters)
    assert table.roots() == other.roots()
    assert spent < 1.5 * (10**9 - alone.left)
    assert pieces < 50


@pytest.mark.parametrize("text", ["x > 100 OR y < 5", "x < 2000 AND (y < 5 OR z = 1)"])
def test_conjunctions_get_witnesses_in_pieces_where_there_is_a_budget(
    text: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    conjunctions = [(number, covey.parse(f"x = {number} AND y < {number}")) for number in range(5 * SIEVED_TOGETHER)]
    whole, table = CoveringTable(), CoveringTable()
    whole.insert_many(conjunctions)
    table.insert_many(conjunctions)
    expected = whole.insert("wide", covey.parse(text))
    assert expected.covers
    made: list[int] = []
    add = WitnessSieve.add
    monkeypatch.setattr(WitnessSieve, "add", lambda sieve, form, *rest, **named: (
        made.append(form), add(sieve, form, *rest, **named))[1])  # fmt: skip
    pieces = []
    while not (found := table.insert_many([("wide", covey.parse(text))], Budget(1))):
        pieces.append(len(made))
        made.clear()
    assert found == [expected]
    assert len(pieces) >= 3
    assert max(pieces) <= SIEVED_TOGETHER
