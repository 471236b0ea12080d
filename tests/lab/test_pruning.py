"""Figure 1 of Bittner and Hinze: points against interpreters and real brokers, sentences against the rows."""

from __future__ import annotations

from itertools import pairwise
from typing import Any

import numpy as np
import pyarrow as pa
import pytest

from covey.filters import Filter
from covey.filters.algebra import leaves
from covey.filters.semantics import matches
from covey.history import EventSample
from covey.lab import pruned_lines, pruned_tables, pruning, pruning_lines
from covey.lab.experiments import Row
from covey.lab.points import Point
from covey.lab.pruned_tables import BROKERS, SHARES, crossings, match, workload
from covey.matching import Index
from covey.relations.pruning import DIMENSIONS, Dimension, Pruner
from covey.routing import PruningOptions
from tests.lab.in_process import GivenLab

SMALL: Row = {"subscriptions": 200, "events": 120, "class": 0, "seed": 3}


@pytest.fixture(scope="module")
def drawn() -> tuple[list[tuple[str, Filter]], pa.Table]:
    return workload(SMALL)


def interpreted(filters: list[tuple[str, Filter]], events: pa.Table) -> list[set[int]]:
    """For each event the numbers of the filters that it meets."""
    return [{int(id) for id, one in filters if matches(one, event)} for event in events.to_pylist()]


@pytest.mark.parametrize("dimension", DIMENSIONS)
def test_rows_count_what_the_interpreter_finds_on_the_pruned_filters(
    dimension: Dimension, drawn: tuple[list[tuple[str, Filter]], pa.Table]
) -> None:
    filters, events = drawn
    rows = pruned_tables.pruned_tables({**SMALL, "dimension": dimension, "steps": "coarse"})
    pruner = Pruner(filters, EventSample(events), dimension)
    whole = sum(1 for _, one in filters for _ in leaves(one))
    for row in rows:
        share = row["prunings"]
        assert isinstance(share, float)
        pruner.prune_to(round(share * pruner.total_possible))
        left = list(pruner.filters())
        found = interpreted(left, events)
        pairs = sum(map(len, found))
        assert row["matching share"] == pytest.approx(pairs / len(filters) / events.num_rows, abs=1e-7)
        assert row["fewer associations"] == pytest.approx(
            1 - sum(1 for _, one in left for _ in leaves(one)) / whole, abs=1e-4
        )
        assert row["links an event"] == pytest.approx(walked(found) / events.num_rows, abs=1e-4)


def walked(found: list[set[int]]) -> int:
    """Links crossed, walking from each event's broker to both ends while somebody beyond wants it."""
    links = 0
    for number, wanted in enumerate(found):
        publisher, homes = number % BROKERS, {id % BROKERS for id in wanted}
        links += sum(any(home > broker for home in homes) for broker in range(publisher, BROKERS - 1))
        links += sum(any(home < broker for home in homes) for broker in range(publisher, 0, -1))
    return links


@pytest.mark.parametrize("dimension", DIMENSIONS)
def test_more_prunings_match_a_superset_with_fewer_predicates(dimension: Dimension) -> None:
    rows = pruned_tables.pruned_tables({**SMALL, "dimension": dimension, "steps": "fine"})
    assert [row["prunings"] for row in rows] == list(SHARES)
    for column in ("matching share", "fewer associations", "fewer bytes", "links an event"):
        assert all(before <= after for before, after in pairwise(row[column] for row in rows)), column  # type: ignore[operator]
    assert rows[-1]["matching share"] > rows[0]["matching share"]  # type: ignore[operator]


def test_matching_stops_after_enough_pairs(drawn: tuple[list[tuple[str, Filter]], pa.Table]) -> None:
    filters, events = drawn
    index = Index()
    index.add_many(filters)
    many = pa.concat_tables([events] * 8)
    everything = match(index, many)
    assert everything.events == many.num_rows
    part = match(index, many, most=1)
    assert 0 < part.events < many.num_rows
    assert part.pairs < everything.pairs


def test_crossings_of_every_set_of_brokers_and_publisher() -> None:
    for bits in range(1 << BROKERS):
        wanted = {broker for broker in range(BROKERS) if bits >> broker & 1}
        for publisher in range(BROKERS):
            found = crossings(np.array([bits], np.uint8), np.array([publisher]))
            padded: list[set[int]] = [set()] * publisher + [wanted]
            assert found.tolist() == [walked(padded)]


def test_one_class_alone_has_that_class_only() -> None:
    filters, _ = workload({**SMALL, "class": 2})
    assert len(filters) == SMALL["subscriptions"]
    assert all("author" in one.attributes() for _, one in filters)


def test_brokers_forward_what_their_own_pruned_entries_match(
    drawn: tuple[list[tuple[str, Filter]], pa.Table],
) -> None:
    filters, events = drawn
    sample = EventSample(events)
    unpruned = pruned_lines.publish(pruned_lines.brokers(filters, None, sample), events)
    assert unpruned.forwarded == walked(interpreted(filters, events))
    assert unpruned.false_positives == 0
    network = pruned_lines.brokers(filters, PruningOptions("memory", 0.5), sample)
    found = pruned_lines.publish(network, events)
    assert found.forwarded == forwarded_by_each(filters, events, "memory", 0.5)
    assert (found.deliveries, found.matches) == (unpruned.deliveries, unpruned.matches)
    assert found.forwarded - found.false_positives == unpruned.forwarded


def forwarded_by_each(filters: list[tuple[str, Filter]], events: pa.Table, dimension: Dimension, share: float) -> int:
    """Every broker prunes what comes from others, and passes an event on where a pruned entry of that side matches."""
    tables = []
    for broker in range(BROKERS):
        told = [(id, one) for id, one in filters if int(id) % BROKERS != broker]
        pruner = Pruner(told, EventSample(events), dimension)
        pruner.prune_to(int(share * pruner.total_possible))
        tables.append([(int(id) % BROKERS, one) for id, one in pruner.filters()])
    links = 0
    for number, event in enumerate(events.to_pylist()):
        for step in (1, -1):
            broker = number % BROKERS
            while 0 <= broker + step < BROKERS and any(
                (home - broker) * step > 0 and matches(one, event) for home, one in tables[broker]
            ):
                links, broker = links + 1, broker + step
    return links


def curves_of(load: dict[str, float], saved: dict[str, float], links: float = 1.0) -> Any:
    """Rows in which a dimension's matches rise from a share on, and predicates fall in proportion."""

    def given(point: Point, function: str) -> list[Row]:
        dimension = str(point["dimension"])
        shares = pruned_lines.SHARES if function == "pruned_lines" else SHARES
        return [
            {
                "prunings": share,
                "matched events": 100,
                "µs an event": 10.0 + share,
                "matching share": 0.001 + max(0.0, share - load[dimension]),
                "fewer associations": round(saved[dimension] * share, 4),
                "fewer bytes": round(saved[dimension] * share, 4),
                "links an event": links * (1 + max(0.0, share - load[dimension])),
                "links by the table alone": links * (1 + max(0.0, share - load[dimension])),
                "neighbours' predicates": round(1000 * (1 - saved[dimension] * share)),
            }
            for share in shares
        ]

    return given


AS_IN_THE_PAPER = {"network": 0.75, "throughput": 0.5, "memory": 0.05}
SAVED = {"network": 0.9, "throughput": 0.88, "memory": 0.95}


def test_the_bends_are_read_off_the_rows() -> None:
    good = pruning.figure_1b(GivenLab(curves_of(AS_IN_THE_PAPER, SAVED)))
    assert good.holds
    assert "75% (network), 5% (memory), 50% (throughput)" in good.sentence
    bad = pruning.figure_1b(GivenLab(curves_of(AS_IN_THE_PAPER | {"network": 0.2}, SAVED)))
    assert bad.holds is False
    assert "20% (network)" in bad.sentence


def test_the_crossing_of_times_is_read_off_the_rows() -> None:
    given = curves_of(AS_IN_THE_PAPER, SAVED)
    slopes = {"network": -4.0, "throughput": 1.0, "memory": 9.0}

    def timed(faster: float) -> Any:
        def rows(point: Point, function: str) -> list[Row]:
            dimension = str(point["dimension"])
            start = faster if dimension == "throughput" else 10.0
            found: list[Row] = given(point, function)
            return [row | {"µs an event": start + slopes[dimension] * float(str(row["prunings"]))} for row in found]

        return rows

    good = pruning.figure_1a(GivenLab(timed(8.0)))
    assert good.holds
    assert "from 40% on" in good.sentence
    assert "an event has 90,200 matches" in good.sentence
    never = pruning.figure_1a(GivenLab(timed(1.0)))
    assert never.holds is False
    assert "pruning never" in never.sentence


def test_memory_based_pruning_must_be_ahead_by_a_little() -> None:
    good = pruning.figure_1c(GivenLab(curves_of(AS_IN_THE_PAPER, SAVED)))
    assert good.holds
    assert "67.5%" in good.sentence
    for other in ({"memory": 0.5}, {"memory": 1.4}, {"network": 0.5}):
        assert pruning.figure_1c(GivenLab(curves_of(AS_IN_THE_PAPER, SAVED | other))).holds is False


def test_a_small_scale_gives_no_verdict() -> None:
    assert pruning.figure_1c(GivenLab(curves_of(AS_IN_THE_PAPER, SAVED), scale=0.01)).holds is None


def test_the_load_of_the_line_is_compared_with_the_unpruned() -> None:
    outcome = pruning_lines.figure_1e(GivenLab(curves_of(AS_IN_THE_PAPER, SAVED, links=2.0)))
    rows = [row for row in outcome.rows if row["dimension"] == "memory" and row["prunings"] == 1.0]
    assert [row["load increase"] for row in rows] == [0.95]
    assert outcome.holds is False
    assert "+0% (+0%) for network at 75%" in outcome.sentence
    assert "crosses 2.00 links" in outcome.sentence


def test_time_on_the_line_counts_every_broker_that_an_event_comes_to() -> None:
    outcome = pruning_lines.figure_1d(GivenLab(curves_of(AS_IN_THE_PAPER, SAVED, links=2.0)))
    assert outcome.rows[0]["µs on the line"] == pytest.approx(30.0)
    assert outcome.holds is False


def test_brokers_that_save_less_than_the_tables_are_told_apart() -> None:
    same = pruning_lines.figure_1f(GivenLab(curves_of(AS_IN_THE_PAPER, SAVED)))
    assert same.holds
    given = curves_of(AS_IN_THE_PAPER, SAVED)

    def lazy(point: Point, function: str) -> list[Row]:
        rows: list[Row] = given(point, function)
        return [row | {"neighbours' predicates": 1000} for row in rows] if function == "pruned_lines" else rows

    apart = pruning_lines.figure_1f(GivenLab(lazy))
    assert apart.holds is False
    assert "shrink by 0.0% there" in apart.sentence
