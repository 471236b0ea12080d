from __future__ import annotations

import random
from concurrent.futures import Future
from typing import Any

import numpy as np
import pytest

import covey.routing.routing_table as tables
from covey.events import Meaning
from covey.filters import Filter
from covey.filters.semantics import SEMANTICS, Semantics
from covey.language import parse
from covey.matching import Index
from covey.routing import entry_index, undo, waiting_entries
from covey.routing.config import PruningOptions
from covey.routing.journal import Flaw
from covey.routing.known_filters import KnownFilters
from covey.routing.messages import Entry
from covey.routing.routing_table import Holding, PrunedTable, RoutingTable, differing_buckets
from covey.simulation.fixpoint import WORLD
from covey.simulation.scenarios import random_filter
from covey.simulation.uniform_chances import UniformChances
from tests.routing.harness import hops_by_event


@pytest.fixture(autouse=True)
def few_events_are_many(monkeypatch: pytest.MonkeyPatch) -> None:
    """A handful of events is matched together."""
    monkeypatch.setattr(tables, "BATCH", 8)


@pytest.mark.parametrize("few", [1_000, 8])
@pytest.mark.parametrize("seed", range(4))
def test_an_event_goes_to_the_hops_whose_entries_match(few: int, seed: int, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(tables, "FEW", few)
    rng = random.Random(seed)
    table, plain = RoutingTable(KnownFilters()), dict[tuple[str, str], Filter]()
    for number in range(60):
        if plain and rng.random() < 0.3 + 0.4 * (number > 40):
            hop, key = rng.choice(sorted(plain))
            del plain[hop, key]
            table.remove(hop, key)
        else:
            hop, key, condition = rng.choice("xyz"), str(rng.randrange(20)), parse(random_filter(rng))
            plain[hop, key] = condition
            table.add(hop, key, condition)
        assert len(table) == len(plain)
        for event in rng.sample(WORLD, 5):
            wanted: dict[str, list[str]] = {}
            for (hop, key), condition in sorted(plain.items()):
                if condition.matches(event):
                    wanted.setdefault(hop, []).append(key)
            assert {hop: sorted(keys) for hop, keys in table.match(event).items()} == wanted


@pytest.mark.parametrize("few", [1_000, 8])
@pytest.mark.parametrize("seed", range(4))
def test_hops_that_are_left_out_are_not_matched_and_come_back_with_all_that_they_have_by_then(
    few: int, seed: int, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(tables, "FEW", few)
    rng = random.Random(seed)
    table, plain = RoutingTable(KnownFilters()), dict[tuple[str, str], Filter]()
    left_out = frozenset[str]()
    for number in range(120):
        if number % 3 == 0:
            left_out = frozenset(rng.sample("xyz", rng.randrange(4)))
        before = dict(plain), left_out
        undo.begin()
        table.leave_out(left_out)
        if plain and rng.random() < 0.4:
            hop, key = rng.choice(sorted(plain))
            del plain[hop, key]
            table.remove(hop, key)
        else:
            hop = rng.choice("xyz")
            added = {str(rng.randrange(20)): parse(random_filter(rng)) for _ in range(rng.choice((1, 12)))}
            plain.update({(hop, key): condition for key, condition in added.items()})
            table.change_many(hop, added, ())
        if rng.random() < 0.2:
            undo.roll_back()
            plain, left_out = before
            if number % 3 == 0:
                table.leave_out(left_out)
        else:
            undo.end()
        assert len(table) == len(plain)
        events = rng.sample(WORLD, 9)
        for event, found in zip(events, hops_by_event(table.match_many(events), len(events)), strict=True):
            wanted: dict[str, list[str]] = {}
            for (hop, key), condition in sorted(plain.items()):
                if hop not in left_out and condition.matches(event):
                    wanted.setdefault(hop, []).append(key)
            assert {hop: sorted(keys) for hop, keys in found.items()} == wanted


def large_filter(seed: int, tests: int = 400) -> str:
    rng = random.Random(seed)
    pairs = (f"(a{rng.randrange(9)} <> {rng.randrange(9)} OR b{rng.randrange(9)} <> 1)" for _ in range(tests // 2))
    return " AND ".join(pairs)


def test_few_large_entries_are_indexed_and_many_small_ones_need_not_be() -> None:
    table = RoutingTable(KnownFilters())
    for number in range(tables.FEW):
        table.add("x", f"k{number}", parse(f"p = {number}"))
    assert table._index is None
    table.change_many("x", {}, [f"k{number}" for number in range(tables.FEW)])
    filters = {f"k{number}": parse(large_filter(number)) for number in range(3)}
    for key, condition in filters.items():
        table.add("x", key, condition)
    assert table._index is not None
    for event in ({}, {f"a{at}": 9 for at in range(9)} | {f"b{at}": 0 for at in range(9)}):
        assert table.match(event) == ({"x": list(filters)} if event else {})
    table.change_many("x", {}, filters)
    assert table._index is None
    assert len(table) == 0


@pytest.mark.parametrize("waiting", [4, 10**9])
@pytest.mark.parametrize("interpreted", [0, 10, 10**9])
def test_entries_that_wait_for_the_index_are_matched_all_the_same(
    interpreted: int, waiting: int, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(waiting_entries, "DEAR", interpreted)
    monkeypatch.setattr(tables, "FEW", 4)
    monkeypatch.setattr(entry_index, "WAITING", waiting)
    monkeypatch.setattr(entry_index, "MOST_WAITING", 3 * waiting)
    monkeypatch.setattr(entry_index, "ONE_BY_ONE", 2)
    rng = random.Random(interpreted)
    table, plain = RoutingTable(KnownFilters()), dict[str, Filter]()
    for round in range(30):
        added = {f"k{rng.randrange(40)}": parse(random_filter(rng)) for _ in range(rng.randrange(1, 6))}
        removed = rng.sample(sorted(plain), min(len(plain), rng.randrange(3)))
        table.change_many("x", added, removed)
        plain = {key: one for key, one in plain.items() if key not in removed} | added
        events = rng.sample(WORLD, 12 if round % 2 else 3)
        wanted = [sorted(key for key, one in plain.items() if one.matches(event)) for event in events]
        found = [sorted(hops.get("x", [])) for hops in hops_by_event(table.match_many(events), len(events))]
        assert found == wanted


@pytest.mark.parametrize("fails", [False, True])
def test_entries_that_are_being_compiled_are_matched_and_can_go(fails: bool, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(tables, "FEW", 4)
    monkeypatch.setattr(entry_index, "WAITING", 8)
    later: list[tuple[Future[Any], Any]] = []

    def prepare_later(self: Index, rows: Any, read: Any) -> Future[Any]:
        later.append((Future(), lambda: self.prepare(rows, read)))
        return later[-1][0]

    monkeypatch.setattr(Index, "prepare_later", prepare_later)
    known = KnownFilters()
    table = RoutingTable(known)
    for number in range(12):
        table.add("x", str(number), known.parse(f"p = {number % 4}"))
    assert len(later) == 1
    assert table.match({"p": 1}) == {"x": ["1", "5", "9"]}
    table.remove("x", "5")
    table.add("x", "9", known.parse("p = 2"))
    assert table.match({"p": 1}) == {"x": ["1"]}
    prepared, made = later[0]
    if fails:
        prepared.set_exception(ZeroDivisionError())
    else:
        prepared.set_result(made())
    assert table.match({"p": 1}) == {"x": ["1"]}
    assert table.match({"p": 2}) == {"x": ["2", "6", "10", "9"]}
    table.remove("x", "6")
    assert table.match_many(tables.BATCH * [{"p": 2}])["x"].keys == tables.BATCH * [["2", "10", "9"]]


def test_too_many_entries_wait_for_those_that_are_being_compiled(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(tables, "FEW", 4)
    monkeypatch.setattr(entry_index, "WAITING", 8)
    monkeypatch.setattr(entry_index, "MOST_WAITING", 16)
    asked: list[int] = []
    prepare = Index.prepare

    def prepare_later(self: Index, rows: Any, read: Any) -> Future[Any]:
        asked.append(len(rows))
        prepared: Future[Any] = Future()
        prepared.done = lambda: False  # type: ignore[method-assign]
        prepared.set_result(prepare(self, rows, read))
        return prepared

    monkeypatch.setattr(Index, "prepare_later", prepare_later)
    known = KnownFilters()
    table = RoutingTable(known)
    for number in range(60):
        table.add("x", str(number), known.parse(f"p = {number % 4}"))
    assert asked == [8, 16, 16, 16]
    assert [len(keys) for keys in table.match({"p": 3}).values()] == [15]


def test_two_holdings_differ_in_the_buckets_of_what_only_one_has() -> None:
    one, other = Holding(), Holding()
    for number in range(100):
        for holding in (one, other):
            holding.add(Entry(f"k{number}", f"p = {number}"), parse(f"p = {number}"))
    assert differing_buckets(one.digests(), other.digests()) == []
    one.remove("k7")
    other.add(Entry("k9", "p = 1000"), parse("p = 1000"))
    buckets = differing_buckets(one.digests(), other.digests())
    assert {"k7", "k9"} <= set(other.within(buckets))
    assert len(buckets) <= 2
    one.add(Entry("k7", "p = 7"), parse("p = 7"))
    one.add(Entry("k9", "p = 1000"), parse("p = 1000"))
    assert one.digests() == other.digests()


def test_an_empty_holding_has_no_digests() -> None:
    holding = Holding()
    holding.add(Entry("k", "p = 1"), parse("p = 1"))
    holding.remove("k")
    assert holding.digests() == []


@pytest.mark.parametrize("share", [0.0, 0.5, 1.0])
def test_a_pruned_table_matches_all_that_it_should_and_perhaps_more(share: float) -> None:
    rng = random.Random(7)
    known = KnownFilters()
    table, whole = RoutingTable(known), RoutingTable(known)
    pruned = PrunedTable(table, known, PruningOptions(share=share), UniformChances())
    for number in range(30):
        condition = parse(f"{random_filter(rng)} AND p != {rng.randrange(20)}")
        pruned.add("p:x", str(number), condition)
        whole.add("p:x", str(number), condition)
        if number % 5 == 4:
            pruned.remove("p:x", str(number - 2))
            whole.remove("p:x", str(number - 2))
        pruned.refresh()
    more = 0
    for event in WORLD:
        wanted, got = (set(one.match(event).get("p:x", [])) for one in (whole, table))
        assert wanted <= got
        more += len(got - wanted)
    assert (more > 0) == (share > 0)


def test_the_chances_are_counted() -> None:
    chances = UniformChances().chances([parse("TRUE"), parse("k = 'a'"), parse("p < 0")])
    assert np.allclose(chances, [1.0, 0.25, 0.0])


@pytest.mark.parametrize("semantics", SEMANTICS)
def test_events_together_match_as_one_by_one_under_all_semantics(semantics: Semantics) -> None:
    rng = random.Random(semantics)
    known = KnownFilters(Meaning(semantics, {"p": 3, "k": "a"}))
    table, few = RoutingTable(known), RoutingTable(known)
    for number in range(100):
        condition = parse(random_filter(rng))
        table.add(rng.choice("xy"), str(number), condition)
        if number < 60:
            few.add("x", str(number), condition)
    events = [*WORLD[::7], {"k": "b"}, {}]
    together = hops_by_event(table.match_many(events), len(events))
    assert together == [table.match(event) for event in events]
    for event, found in zip(events, hops_by_event(few.match_many(events), len(events)), strict=True):
        wanted = [key for key, one in few.entries("x").items() if known.matches(one, event)]
        assert found.get("x", []) == wanted
        more = table.match(event)
        assert set(wanted) <= {key for keys in more.values() for key in keys}


def test_an_entry_that_the_index_cant_take_is_matched_apart(monkeypatch: pytest.MonkeyPatch) -> None:
    add, prepare = Index.add, Index.prepare

    def add_or_raise(self: Index, id: str, filter: Any) -> None:
        if "poison" in str(filter):
            raise ZeroDivisionError(filter)
        add(self, id, filter)

    def prepare_or_raise(self: Index, rows: Any, read: Any) -> Any:
        if any("poison" in str(condition) for _, condition in rows):
            raise ZeroDivisionError
        return prepare(self, rows, read)

    monkeypatch.setattr(Index, "add", add_or_raise)
    monkeypatch.setattr(Index, "prepare", prepare_or_raise)
    reported: list[Flaw] = []
    table = RoutingTable(KnownFilters(), reported.append)
    for at in range(200):
        table.add("c:ann", str(at), parse(f"x = {at}"))
        if at in (3, 100, 199):
            table.add("c:bob", str(at), parse(f"poison = {at}"))
    assert table.match({"x": 7, "poison": 3}) == {"c:ann": ["7"], "c:bob": ["3"]}
    events = 3 * [{"x": at, "poison": at} for at in (3, 4, 100, 150, 199, 1, 2, 5, 6)]
    together = hops_by_event(table.match_many(events), len(events))
    assert together == [table.match(event) for event in events]
    assert together[2] == {"c:ann": ["100"], "c:bob": ["100"]}
    assert sorted(flaw.what for flaw in reported) == [f"an index can't take poison = {at}" for at in (100, 199, 3)]
    for at in (3, 100, 199):
        table.remove("c:bob", str(at))
    assert table.match({"x": 7, "poison": 3}) == {"c:ann": ["7"]}
