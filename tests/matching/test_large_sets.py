"""IN with a hundred thousand constants: read, printed, matched in every way, saved; brokers have smaller limits."""

from __future__ import annotations

from datetime import UTC, datetime, timedelta
from pathlib import Path
from typing import Any

import pytest

import covey
from covey.filters import In, any_of, attr, matches
from covey.filters.semantics import SEMANTICS, Semantics
from covey.limits import BROKER_FILTER_LIMITS
from covey.matching.lowering import FEW_VALUES
from covey.routing.config import BrokerConfig

MANY = 100_000


def test_a_hundred_thousand_constants_are_read_printed_and_matched(tmp_path: Path) -> None:
    hosts = [f"host-{at}" for at in range(0, 2 * MANY, 2)]
    text = f"host IN ({', '.join(map(repr, hosts))})"
    condition = covey.parse(text)
    assert condition == In("host", tuple(hosts))
    assert str(condition) == text
    index = covey.Index()
    index.add_many(
        [
            ("in", text),
            ("not", f"NOT {text}"),
            ("and", f"port = 1 AND {text}"),
            *((f"n{at}", f"port = {at}") for at in range(99)),
        ]
    )
    events: list[dict[str, Any]] = [
        {"host": f"host-{at}", "port": at % 2} for at in (0, 1, 65_535, 65_536, 131_072, 199_998, 199_999, 200_000)
    ] + [{"host": 5}, {}]
    wanted = [
        [matches(one, event) for one in (condition, ~condition, condition & (attr("port") == 1))] for event in events
    ]
    index.save(tmp_path / "index")
    for one in (index, covey.Index.open(tmp_path / "index")):
        for event, found, truths in zip(events, one.match_batch(events).to_pylist(), wanted, strict=True):
            assert [id in found for id in ("in", "not", "and")] == truths
            assert [id in one.match(event) for id in ("in", "not", "and")] == truths
    assert sum(truths[0] for truths in wanted) == 4
    assert covey.parse(f"host IN ({', '.join(map(repr, hosts))}, 'more')").covers(condition)


@pytest.mark.parametrize("semantics", SEMANTICS)
@pytest.mark.parametrize("kind", ["number", "timestamp", "mixed"])
def test_long_lists_of_any_kind_are_as_interpreted(kind: str, semantics: Semantics) -> None:
    start = datetime(2024, 1, 1, tzinfo=UTC)
    count = FEW_VALUES + 1
    pools: dict[str, list[Any]] = {
        "number": [*range(count), 2.5, float("nan"), 2**70],
        "timestamp": [start + timedelta(seconds=at) for at in range(count)],
        "mixed": [*(f"t{at}" for at in range(count)), None],
    }
    listed = In("a", tuple(pools[kind]))
    rules = {"in": listed, "not": ~listed, "or": listed | (attr("b") == 1), "is": covey.parse("b = 1") & ~listed}
    index = covey.Index(semantics=semantics)
    index.add_many(list(rules.items()))
    values = [
        None,
        0,
        1.0,
        2.5,
        3.5,
        float("nan"),
        2**70,
        2**70 + 1,
        True,
        "t1",
        "x",
        start,
        start + timedelta(days=9),
        [1],
    ]
    events = [
        {name: value for name, value in (("a", value), ("b", b)) if value is not None}
        for value in values
        for b in (1, 2)
    ]
    wanted = [{id for id, rule in rules.items() if matches(rule, event, semantics=semantics)} for event in events]
    assert [set(ids) for ids in index.match_batch(events).to_pylist()] == wanted
    assert [set(index.match(event)) for event in events] == wanted


def test_brokers_have_smaller_limits() -> None:
    assert BrokerConfig("b").limits.filters == BROKER_FILTER_LIMITS
    long = f"a IN ({', '.join(map(str, range(FEW_VALUES + 1)))})"
    assert covey.parse(long)._named() == ("a",)
    with pytest.raises(covey.LimitError, match="the limit tokens"):
        covey.parse(long, limits=BROKER_FILTER_LIMITS)


def test_a_diagram_has_no_more_nodes_than_can_be_numbered() -> None:
    index = covey.Index(limits=covey.Limits(diagram_nodes=1 << 24))
    condition = (attr("b") == 1) & any_of(attr("a").between(4 * at, 4 * at + 1) for at in range(70_000))
    with pytest.raises(covey.CoveyError, match="limit \\(diagram_nodes\\) of 65,000 nodes"):
        index.add_many([("one", condition), *((f"n{at}", f"b = {at}") for at in range(100))])
