"""Imperfect mergers of Boolean filters, by pruning their disjunction."""

from __future__ import annotations

import random

import covey
from covey.filters import SEMANTICS, any_of
from covey.history import EventSample
from covey.relations import covers
from covey.relations.merging import imperfect_degree, merge
from tests.random_worlds import event_of, filter_of

EVENTS = EventSample([{"a": n % 10, "b": n % 7, "c": "x" if n % 49 else "y"} for n in range(700)])


def test_boolean_filters_merge_into_a_shorter_disjunction_within_the_threshold() -> None:
    parts = [covey.parse("a = 1 AND c = 'x' OR b = 2"), covey.parse("a = 3 AND c = 'x' OR b = 5")]
    merger = merge(parts, imperfect=True, imt=0.05, chances=EVENTS)
    assert not merger.perfect
    assert 0 < merger.degree <= 0.05
    assert merger.degree == imperfect_degree(merger.filter, parts, EVENTS)
    assert all(covers(merger.filter, part) for part in parts)
    assert len(str(merger.filter)) < len(str(any_of(parts)))


def test_where_the_threshold_allows_no_pruning_the_merger_is_perfect() -> None:
    parts = [covey.parse("a = 1 AND b = 2 OR c = 'y'"), covey.parse("a = 3 AND b = 5")]
    merger = merge(parts, imperfect=True, imt=0.001, chances=EVENTS)
    assert merger.perfect
    assert merger.degree == 0


def test_a_pruned_merger_matches_whatever_its_parts_match() -> None:
    rng = random.Random(7)
    events = [event_of(rng) for _ in range(200)]
    sample = EventSample(events[:100])
    for semantics in SEMANTICS:
        if semantics == "strict":
            continue
        for _ in range(15):
            parts = [filter_of(rng, 2) for _ in range(2)]
            merger = merge(parts, semantics=semantics, imperfect=True, imt=0.5, chances=sample)
            for event in events:
                if any(part.matches(event, semantics=semantics) for part in parts):
                    assert merger.filter.matches(event, semantics=semantics)
