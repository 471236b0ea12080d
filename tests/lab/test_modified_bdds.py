"""Section 6 of Li, Hou and Jacobsen: points against interpreters and brute force, sentences against the rows."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path
from typing import Any

import numpy as np
import pyarrow as pa
import pytest

from covey.filters import And, Compare, Filter
from covey.filters.semantics import matches
from covey.kernels.scanning import scan
from covey.kernels.value_sets import COVERED, COVERS
from covey.lab import covering_passes, imperfect_merging, merged_tables, modified_bdds
from covey.lab.covering_passes import OVERS, WAYS, RootTable, normal
from covey.lab.experiments import Row
from covey.lab.merged_tables import METHODS, ORDERS, SINGLE_PIECE, compacted, publications
from covey.lab.points import Lab, Point
from covey.lab.workloads.predicate_pools import ATTRIBUTES, IMT_SET, SET_A, Pool, draw
from covey.relations.conjunctions import Conjunction
from covey.relations.covering.roots import BOTH
from covey.relations.merging import Merger, merge_table
from tests.lab.in_process import GivenLab

# Few predicates on few attributes: much is covered and merged even among a few hundred.
DENSE = Pool("dense", 120, ((1, 0.1), (2, 0.5), (3, 0.4)), 0.4, 2.0, None)

# Equal but for one test, with values between that nobody asked for.
APART: list[Filter] = [
    *(And((Compare("a00", "<=", 6), Compare("a01", "=", value))) for value in (0, 3, 7, 12)),
    *(And((Compare("a02", ">=", 9), Compare("a03", "=", value))) for value in (1, 5)),
]


@pytest.fixture(scope="module")
def dense() -> list[Filter]:
    return draw(DENSE, 400, 5).subscriptions()


@pytest.fixture(scope="module")
def events() -> pa.Table:
    return publications(DENSE, 150, 5)


def met(filters: list[Filter], events: pa.Table) -> list[bool]:
    """Which events anybody wants, by the interpreter."""
    return [any(matches(one, event) for one in filters) for event in events.to_pylist()]


def test_each_method_leaves_no_more_entries_than_the_one_before(dense: list[Filter]) -> None:
    sizes = [len(compacted(DENSE, dense, method, 0.1)) for method in METHODS]
    assert sizes == sorted(sizes, reverse=True)
    assert sizes[0] > sizes[1] > sizes[3]


def test_covering_leaves_what_no_other_subscription_covers(dense: list[Filter]) -> None:
    found = set(normal(draw(DENSE, 400, 5)))
    roots = {one for one in found if not any(other != one and other.covers(one) for other in found)}
    assert len(compacted(DENSE, dense, "covering", 0.0)) == len(roots)


@pytest.mark.parametrize("method", METHODS[1:3])
def test_covering_and_perfect_merging_forward_the_same_events(
    method: str, dense: list[Filter], events: pa.Table
) -> None:
    assert met(compacted(DENSE, dense, method, 0.1), events) == met(dense, events)


def test_imperfect_merging_forwards_a_superset(events: pa.Table) -> None:
    wanted, forwarded = met(APART, events), met(compacted(DENSE, APART, "imperfect merging", 1.0), events)
    assert all(after or not before for before, after in zip(wanted, forwarded, strict=True))
    assert sum(forwarded) > sum(wanted)


def test_false_positives_are_counted_as_the_interpreter_does(events: pa.Table) -> None:
    few = APART
    merged = merge_table(enumerate(few), imt=1.0, chances=merged_tables.uniform(DENSE), max_pieces=SINGLE_PIECE)
    assert any(not entry.perfect for entry in merged)
    row = merged_tables.in_vain(merged_tables.pairs_of(few, events), merged, len(few), events)
    listed = events.to_pylist()
    pairs = [(entry, event) for entry in merged for event in listed if matches(entry.filter, event)]
    vain = [(entry, event) for entry, event in pairs if not any(matches(few[part], event) for part in entry.parts)]
    wanted, forwarded = sum(met(few, events)), sum(met([entry.filter for entry in merged], events))
    assert (row["pairs"], row["wanted"], row["forwarded"]) == (len(pairs), wanted, forwarded)
    assert row["false pairs"] == pytest.approx(len(vain) / len(pairs), abs=1e-5)
    assert row["false events"] == pytest.approx(1 - wanted / forwarded, abs=1e-5)
    assert vain


def test_nothing_is_in_vain_where_entries_are_the_subscriptions(dense: list[Filter], events: pa.Table) -> None:
    own = [Merger(one, (at,), True, 0.0) for at, one in enumerate(dense)]
    row = merged_tables.in_vain(merged_tables.pairs_of(dense, events), own, len(dense), events)
    assert (row["false pairs"], row["false events"]) == (0.0, 0.0)


def test_publications_are_what_is_advertised() -> None:
    (advertised,) = merged_tables.advertisement(IMT_SET, 0.5)
    drawn = publications(IMT_SET, 300, 1, 0.5)
    assert all(matches(advertised, event) for event in drawn.to_pylist())
    everything = publications(IMT_SET, 300, 1)
    assert not all(matches(advertised, event) for event in everything.to_pylist())
    assert merged_tables.advertisement(IMT_SET, 1.0) == ()
    assert max(everything[ATTRIBUTES[0]].to_pylist()) <= merged_tables.highest(IMT_SET)


def test_thresholds_never_make_a_table_larger_and_zero_is_exact() -> None:
    point: Row = {
        "set": "IMT", "subscriptions": 1_000, "publications": 60, "measure": "traffic", "advertised": 1.0,
        "steps": "fine", "seed": 1,
    }  # fmt: skip
    rows = merged_tables.merged_tables(point)
    sizes = [row["entries"] for row in rows]
    assert sizes == sorted(sizes, reverse=True)  # type: ignore[type-var]
    assert sizes[0] > sizes[-1]  # type: ignore[operator]
    assert rows[0]["false pairs"] == 0.0
    assert rows[-1]["false pairs"] > 0.0  # type: ignore[operator]


def test_an_order_decides_which_subscriptions_are_candidates() -> None:
    point: Row = {"set": "A", "subscriptions": 1_200, "width": 2, "equalities": 0.95, "skew": 0.85, "seed": 2}
    rows = merged_tables.merged_by_order(point)
    assert [row["order"] for row in rows] == list(ORDERS)
    assert len({row["with the same rest"] for row in rows}) > 1
    for row in rows:
        assert row["entries"] < row["covering"]  # type: ignore[operator]


def test_the_first_attribute_of_popular_first_is_the_most_popular() -> None:
    assert merged_tables.attribute_order("popular first", 1)[ATTRIBUTES[0]] == 0
    assert merged_tables.attribute_order("popular last", 1)[ATTRIBUTES[0]] == len(ATTRIBUTES) - 1
    assert sorted(merged_tables.attribute_order("random", 1).values()) == list(range(len(ATTRIBUTES)))


def test_subscriptions_differ_in_the_first_attribute_only() -> None:
    filters: list[Filter] = [And((Compare("a00", "=", 1), Compare("a01", "=", value))) for value in (1, 2, 3)]
    assert merged_tables._merged_first(filters, "popular last", 1) == {"with the same rest": 2, "entries": 1}
    assert merged_tables._merged_first(filters, "popular first", 1) == {"with the same rest": 0, "entries": 3}


@pytest.fixture(scope="module")
def conjunctions() -> list[Conjunction]:
    return normal(draw(DENSE, 300, 8))


@pytest.mark.parametrize("cached", [True, False])
def test_the_roots_are_those_that_nothing_covers(cached: bool, conjunctions: list[Conjunction]) -> None:
    table = RootTable(cached=cached)
    for first in range(0, len(conjunctions), 70):
        table.insert(conjunctions[first : first + 70])
    greatest = {one for one in conjunctions if not any(other != one and other.covers(one) for other in conjunctions)}
    assert {conjunctions[root] for root in table.roots().tolist()} == greatest
    assert len(table.roots()) == len(greatest)


def test_one_pass_two_passes_and_a_scan_agree(conjunctions: list[Conjunction]) -> None:
    wide = [one for one in conjunctions if len(one.sets) > 1][::2]
    table = RootTable()
    table.insert(wide)
    roots = [wide[root] for root in table.roots().tolist()]
    variables, starts = table.rows()
    hits = np.empty(len(starts), np.int64)
    seen = set()
    for new in conjunctions:
        covered = any(root.covers(new) for root in roots)
        covers = {at for at, root in enumerate(roots) if new.covers(root)}
        seen.add((covered, bool(covers)))
        box = table.box(new)
        for wanted in (BOTH, COVERED):
            assert (table.store.search(box, table.variables, wanted).witness >= 0) == covered
            assert (scan(table.assignment(box), starts, variables, wanted, hits)[0] >= 0) == covered
        if not covered:
            for wanted in (BOTH, COVERS):
                _, count = scan(table.assignment(box), starts, variables, wanted, hits)
                assert set(hits[:count].tolist()) == covers
                found = table.store.search(box, table.variables, wanted).hits
                assert {table.roots().tolist().index(hit) for hit in found} == covers
    assert {(True, False), (False, True), (False, False)} <= seen


def test_a_point_of_figure_13_has_a_row_for_every_way_of_looking() -> None:
    rows = covering_passes.passes({"set": "A", "subscriptions": 600, "points": 2, "seed": 1})
    assert [row["table"] for row in rows] == [300] * 4 + [600] * 4
    for over, size in ((over, size) for over in OVERS for size in (300, 600)):
        asked = [row["asked"] for row in rows if row["over"] == over and row["table"] == size]
        assert sum(asked) == covering_passes.ASKED  # type: ignore[arg-type]
    table = RootTable()
    table.insert(normal(draw(SET_A, 600, 1)))
    assert rows[-1]["roots"] == len(table.roots())


def test_covered_and_open_ones_are_weighed_by_their_numbers() -> None:
    both: list[Row] = [
        {
            "set": "A", "table": 10, "roots": 5, "over": OVERS[0], "the new one is": outcome, "asked": asked,
            "insert, µs": 1.0, "insert without cache, µs": 2.0, **{f"{way}, µs": time for way in WAYS},
        }
        for outcome, asked, time in (("covered", 30, 1.0), ("not covered", 10, 5.0))
    ]  # fmt: skip
    (row,) = modified_bdds._together(both)
    assert (row["asked"], row["covered"], row["one pass, µs"]) == (40, 0.75, 2.0)


def one_or_two(once: float, twice: float) -> Callable[[Point, str], list[Row]]:
    def given(point: Point, function: str) -> list[Row]:
        if function == "looks":
            return [
                {"table": 100, "roots": 9, "covered": 0.5, "one pass, looks": once, "two passes, looks": twice}
            ]  # fmt: skip
        return [
            {
                "table": point["subscriptions"], "roots": 9, "over": over, "the new one is": outcome, "asked": 50,
                "one pass, µs": 50.0, "two passes, µs": 100.0, "always both, µs": 200.0,
                "insert, µs": 5.0, "insert without cache, µs": 10.0,
            }
            for over in OVERS
            for outcome in ("covered", "not covered")
        ]  # fmt: skip

    return given


def test_the_verdict_on_one_pass_follows_the_looks_that_were_counted() -> None:
    fast = modified_bdds.figure_13(GivenLab(one_or_two(55.0, 100.0)))
    assert fast.verdict == "holds"
    assert fast.settings[0].checks[0].ours == pytest.approx(0.45)
    assert "saves 75% over covey's index and 75% over a scan" in fast.sentence
    assert "insertion 50% shorter" in fast.sentence
    slow = modified_bdds.figure_13(GivenLab(one_or_two(90.0, 100.0)))
    assert slow.verdict == "does not hold"
    assert "one pass looks at fewer tests, by 10%" in slow.because


def test_one_pass_looks_at_less_than_two_that_always_run() -> None:
    rows = covering_passes.looks({"set": "A", "subscriptions": 600, "asked": 20, "seed": 1})
    assert [row["table"] for row in rows] == [150, 300, 600]
    for row in rows:
        assert 0 < row["one pass, looks"] < row["two passes, looks"]  # type: ignore[operator]


def tables_of(
    rates: dict[str, float], merged: tuple[float, float], other: Row | None = None
) -> Callable[[Point, str], Any]:
    """What covering removes, and which part of its rest each kind of merging leaves."""

    def given(point: Point, function: str) -> Any:
        if function == "drawn_set":
            return other or {"covered": 0.5, **{merged_tables.merged_by(one): 0.1 for one in merged_tables.PIECES}}
        if function == "merged_by_order":
            return [{"order": one, "covering": 50, "entries": 40 + at} for at, one in enumerate(ORDERS)]
        at, count = METHODS.index(str(point["method"])), 200_000
        rest = count * (1 - rates[str(point["set"])])
        left = (count, round(rest), round(rest * merged[0]), round(rest * merged[0] * merged[1]))
        times = {"batch µs": 9.0 - at, "single µs": 9.0 - at, "scan µs": 900.0 - 100 * at}
        return {
            "entries": left[at], "removed": 1 - left[at] / count, "matches a publication": 9.0 - at, **times,
        }  # fmt: skip

    return given


def test_the_verdict_on_table_sizes_follows_the_rows() -> None:
    rates = {"A": 0.74, "B": 0.46}
    good = modified_bdds.figure_12(GivenLab(tables_of(rates, (0.7, 0.9))))
    assert good.settings[0].holds
    assert good.verdict == "holds in this range", "other ways of drawing don't cover as much"
    assert "random order leaves +1 entries" in good.sentence
    bad = modified_bdds.figure_12(GivenLab(tables_of({"A": 0.6, "B": 0.46}, (0.7, 0.9))))
    assert bad.verdict == "does not hold"
    assert "covered of set A 60%, where 70% to 80% would count" in bad.because


def test_merging_that_takes_off_next_to_nothing_is_not_the_papers() -> None:
    rates = {"A": 0.75, "B": 0.45}
    outcome = modified_bdds.figure_12(GivenLab(tables_of(rates, (0.994, 0.6))))
    assert outcome.verdict == "does not hold"
    assert "perfect merging of set A's rest 0.6%, where 16% or more would count" in outcome.because


def test_the_verdict_on_routing_time_follows_the_entries() -> None:
    good = modified_bdds.table_2(GivenLab(tables_of({"A": 0.75, "B": 0.45}, (0.8, 0.8))))
    assert [check.ours for check in good.settings[0].checks] == [pytest.approx(0.84), pytest.approx(0.648)]
    assert good.verdict == "does not hold"
    assert "set B looks at fewer, by 64.8%" in good.because
    near = modified_bdds.table_2(GivenLab(tables_of({"A": 0.83, "B": 0.45}, (0.95, 0.9))))
    assert near.verdict == "holds"


def thresholds(sizes: dict[float, int], false: float, advertised: float) -> Callable[[Point, str], list[Row]]:
    def given(point: Point, _: str) -> list[Row]:
        factor = advertised if point["advertised"] != 1.0 else 1.0
        steps = merged_tables.THRESHOLDS if point["steps"] == "fine" else merged_tables.COARSE
        return [
            {
                "imt": imt, "entries": round(sizes[imt] * factor), "wanted": 900, "forwarded": 900,
                "false events": 0.0, "pairs": 1000, "false pairs": false * imt,
            }
            for imt in steps
        ]  # fmt: skip

    return given


BENT = {0.0: 33_000, 0.025: 31_000, 0.05: 29_000, 0.1: 26_000, 0.15: 24_000, 0.3: 23_500, 0.6: 23_200, 1.0: 23_000}
STRAIGHT = {imt: round(33_000 - 10_000 * imt) for imt in BENT}


def test_the_verdict_on_thresholds_follows_the_rows() -> None:
    good = imperfect_merging.figure_14(GivenLab(thresholds(BENT, 0.1, 0.9)))
    assert good.verdict == "holds"
    assert "loses 9,000 of the 10,000" in good.sentence
    assert good.settings[0].checks[-1].ours == pytest.approx(0.1)
    for sizes, advertised in ((STRAIGHT, 0.9), (BENT, 1.0)):
        outcome = imperfect_merging.figure_14(GivenLab(thresholds(sizes, 0.1, advertised)))
        assert outcome.verdict == "does not hold"


def test_the_verdict_on_false_positives_follows_the_rows() -> None:
    good = imperfect_merging.figure_15(GivenLab(thresholds(BENT, 0.1, 0.9)))
    assert good.verdict == "holds"
    assert good.settings[0].checks[1].ours == pytest.approx(0.005)
    assert good.settings[0].name == "50 subscriptions, 18.0% of publications wanted"
    assert imperfect_merging.figure_15(GivenLab(thresholds(BENT, 0.9, 0.9))).verdict == "does not hold"


@pytest.mark.long
def test_a_figure_runs_as_spark_tasks(spark: Any, tmp_path: Path) -> None:
    lab = Lab(spark, tmp_path, name="figure 13", scale=0.01)
    outcome = modified_bdds.figure_13(lab)
    assert outcome.verdict == "can't tell"
    assert {row["set"] for row in outcome.rows} == {"A", "B"}
    assert len(list((tmp_path / "points" / "covering_passes").glob("*.json"))) == 4 + 2 * len(modified_bdds.OTHER_LOOKS)


def test_pairs_of_publications_and_filters(dense: list[Filter], events: pa.Table) -> None:
    found = set(zip(*(part.tolist() for part in merged_tables.pairs_of(dense[:40], events)), strict=True))
    listed = events.to_pylist()
    assert found == {
        (at, place)
        for (at, event), (place, one) in ((a, b) for a in enumerate(listed) for b in enumerate(dense[:40]))
        if matches(one, event)
    }
    assert found
