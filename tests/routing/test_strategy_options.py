"""Options of strategies reach the stages, and rules for when to merge fire."""

from __future__ import annotations

import pytest

from covey.filters import Filter
from covey.language import parse
from covey.relations.merging import MergerTable, MergingPolicy
from covey.relations.subsumption import Number, Space
from covey.routing import BrokerConfig
from covey.routing.config import ConfigError, MergingOptions, SubsumptionOptions
from covey.routing.known_filters import KnownFilters
from covey.routing.merging_stage import Merging
from covey.routing.stages import Change
from covey.routing.strategies import subscription_stages
from covey.routing.subsumption_stage import Subsumption

SPACE = Space([Number("p"), Number("q")])


def test_entries_arriving_fast_are_merged_before_any_merging_was() -> None:
    table: MergerTable[str] = MergerTable(policy=MergingPolicy(at_rate=10.0))
    start = 1_700_000_000.0
    table.add("0", parse("a < 0"))
    assert not table.due(start), "one entry says nothing about a rate"
    for at in range(1, 40):
        table.add(str(at), parse(f"a < {at}"))
    assert table.due(start + 2.0)
    table.merge(start + 2.0)
    table.add("late", parse("b = 1"))
    assert not table.due(start + 60.0)


def test_busy_links_make_a_broker_merge() -> None:
    known = KnownFilters()
    stage = Merging(known, MergingPolicy(at_bandwidth=1_000.0))
    entries: dict[str, Filter] = {str(at): parse(f"a = {at}") for at in range(4)}
    stage.change(Change(dict(entries)), 1.0)
    assert stage.catch_up(1.0) is None
    known.bandwidth = 1_000.0
    found = stage.catch_up(2.0)
    assert found is not None
    assert len(found.added) == 1


def test_the_threshold_by_traffic_is_the_configurations() -> None:
    config = BrokerConfig("a", strategy="merging", merging=MergingOptions(0.2, measure="traffic"))
    (merging,) = [one for one in subscription_stages(config, KnownFilters()) if isinstance(one, Merging)]
    assert merging._table._measure == "traffic"


def test_all_options_of_subsumption_reach_the_negative_space() -> None:
    options = SubsumptionOptions(SPACE, True, k=7, metric="benefit", dynamic_threshold=True, rebuild_after=5)
    config = BrokerConfig("a", strategy="subsumption", subsumption=options)
    (stage,) = [one for one in subscription_stages(config, KnownFilters()) if isinstance(one, Subsumption)]
    negative = stage._negative
    assert (negative.method, negative.k, negative.metric, negative.dynamic_threshold) == (
        "approximate", 7, "benefit", True,
    )  # fmt: skip
    assert stage.defers


def test_a_rebuild_comes_after_so_many_went_and_keeps_every_event() -> None:
    stage = Subsumption(KnownFilters(), SubsumptionOptions(SPACE, True, k=0, rebuild_after=3))
    boxes = {
        f"{x}{y}": parse(f"p BETWEEN {x} AND {x + 3} AND q BETWEEN {y} AND {y + 3}")
        for x in range(0, 6, 2)
        for y in range(0, 6, 2)
    }
    out: dict[str, Filter] = {}
    inside = dict(boxes)

    def apply(change: Change | None) -> None:
        if change is not None:
            for key in change.removed:
                del out[key]
            out.update(change.added)

    apply(stage.change(Change(dict(boxes)), 1.0))
    for at, key in enumerate(list(boxes)[:4], 1):
        del inside[key]
        apply(stage.change(Change({}, {key}), 1.0))
        found = stage.catch_up(1.0)
        assert (found is not None) == (at == 3)
        apply(found)
        for p in range(10):
            for q in range(10):
                event = {"p": p, "q": q}
                wanted = any(one.matches(event) for one in inside.values())
                assert any(one.matches(event) for one in out.values()) == wanted


@pytest.mark.parametrize(
    ("options", "said"),
    [({"k": -1}, "give 0 or more"), ({"metric": "luck"}, "use one of"), ({"rebuild_after": 0}, "give 1 or more")],
)
def test_options_out_of_range_are_refused(options: dict[str, object], said: str) -> None:
    with pytest.raises(ConfigError, match=said):
        SubsumptionOptions(SPACE, **options)  # type: ignore[arg-type]
