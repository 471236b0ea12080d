"""What became of an entry on its way to a neighbour, as the stages have it."""

from __future__ import annotations

import pytest
from hypothesis import given
from hypothesis import strategies as st

from covey.relations.merging import MergingPolicy
from covey.relations.subsumption import Number, Space
from covey.routing.config import BrokerConfig, MergingOptions, Strategy, SubsumptionOptions
from covey.routing.exports import Export, subscription_export
from covey.routing.known_filters import KnownFilters

MERGE_AT_ONCE = MergingOptions(policy=MergingPolicy(at_arrivals=1))


def export(strategy: Strategy, *texts: str, advertisements: bool = False) -> Export:
    known = KnownFilters()
    space = SubsumptionOptions(Space([Number("x")])) if strategy == "subsumption" else None
    config = BrokerConfig(
        "a", strategy=strategy, subsumption=space, merging=MERGE_AT_ONCE, advertisements=advertisements
    )
    made = subscription_export(config, known)
    made.change({f"c:{at}\nkey{at}": known.parse(text) for at, text in enumerate(texts)}, (), 0.0)
    made.catch_up(1.0)
    return made


def verdicts(strategy: Strategy, *texts: str) -> list[tuple[str, str | None]]:
    return [
        (verdict.reason, None if verdict.by is None else str(verdict.by))
        for verdict in export(strategy, *texts).verdicts()
    ]


def test_simple_routing_forwards_everything() -> None:
    assert verdicts("simple", "x < 5", "x < 5") == [("forwarded", None), ("forwarded", None)]


def test_an_equal_filter_is_told_once_and_the_other_names_it() -> None:
    assert verdicts("identity", "x < 5", "x < 5", "NOT x >= 5") == [
        ("forwarded", None), ("identity", "x < 5"), ("identity", "x < 5"),
    ]  # fmt: skip


def test_a_covered_filter_names_what_the_neighbour_knows_instead() -> None:
    assert verdicts("covering", "x < 1", "x < 5", "x < 3") == [
        ("covering", "x < 5"), ("forwarded", None), ("covering", "x < 5"),
    ]  # fmt: skip


def test_covering_says_the_same_where_there_are_many() -> None:
    texts = [f"x < {bound}" for bound in range(100)]
    found = verdicts("covering", *texts)
    assert found[-1] == ("forwarded", None)
    assert set(found[:-1]) == {("covering", "x < 99")}


def test_what_a_union_holds_is_subsumed_by_several_together() -> None:
    assert verdicts("subsumption", "x >= 0 AND x <= 5", "x >= 4 AND x <= 9", "x >= 3 AND x <= 8")[-1] == (
        "subsumption",
        None,
    )


def test_parts_of_a_merger_name_it() -> None:
    made = export("merging", "x >= 0 AND x <= 5", "x >= 4 AND x <= 9", "y = 1")
    found = list(made.verdicts())
    assert [verdict.reason for verdict in found] == ["merging", "merging", "forwarded"]
    merger = found[0].by
    assert merger is not None
    assert merger.matches({"x": 9})
    assert found[0].told == merger
    assert merger in made.outcome.values()


def test_what_no_advertisement_overlaps_stays_here() -> None:
    made = export("covering", "x < 5", "x > 7", advertisements=True)
    assert [verdict.reason for verdict in made.verdicts()] == ["advertisements", "advertisements"]
    made.advertise({"k": KnownFilters().parse("x < 4")}, 0.0)
    assert [verdict.reason for verdict in made.verdicts()] == ["forwarded", "advertisements"]


@pytest.mark.parametrize("strategy", ["simple", "identity", "covering", "subsumption", "merging"])
@given(bounds=st.lists(st.tuples(st.integers(0, 9), st.integers(0, 9)), max_size=8))
def test_what_is_told_instead_matches_whatever_the_entry_matches(
    strategy: Strategy, bounds: list[tuple[int, int]]
) -> None:
    made = export(strategy, *(f"x >= {low} AND x <= {high}" for low, high in bounds))
    found = list(made.verdicts())
    assert len(found) == len(made)
    forwarded = {str(verdict.told) for verdict in found if verdict.told is not None}
    assert forwarded == {str(one) for one in made.outcome.values()}
    for verdict in found:
        for value in range(10):
            if verdict.told is not None and verdict.condition.matches({"x": value}):
                assert verdict.told.matches({"x": value})


def test_looking_changes_nothing() -> None:
    made = export("merging", "x < 1", "x < 5", "y = 1")
    before = dict(made.outcome)
    first = list(made.verdicts())
    assert list(made.verdicts()) == first
    assert made.outcome == before
