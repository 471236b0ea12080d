"""Whoever waits for a long match can see how far it is, and the answers are the same."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager
from typing import Any

import pyarrow as pa
import pytest

from covey import Index, report
from covey.matching import progress


@pytest.fixture
def index() -> Index:
    made = Index()
    made.add_many({number: f"n % 10 = {number}" for number in range(10)} | {100: "n < 5"})
    made.add(200, "n > 299996")
    return made


@pytest.fixture
def told(monkeypatch: pytest.MonkeyPatch) -> list[int]:
    """What bars were told, in a notebook."""
    heard: list[int] = []

    @contextmanager
    def bar(total: int, what: str) -> Iterator[Any]:
        yield lambda done, _: heard.append(done)

    monkeypatch.setattr(progress, "_bar", bar)
    monkeypatch.setattr(progress, "in_notebook", lambda: True)
    return heard


@pytest.mark.parametrize("count", [0, 3, 300_000])
def test_a_function_is_told_how_far_it_is(index: Index, count: int) -> None:
    events = pa.table({"n": pa.array(range(count), pa.int64())})
    heard: list[tuple[int, int]] = []
    found = index.match_batch(events, progress=lambda done, total: heard.append((done, total)))
    assert found.pairs().equals(index.match_batch(events).pairs())
    assert [done for done, _ in heard] == [min(done, count) for done in range(65_536, count + 65_536, 65_536)] or [0]
    assert heard[-1] == (count, count)


def test_a_notebook_has_a_bar_for_many_events(index: Index, told: list[int]) -> None:
    few = [{"n": n} for n in range(100)]
    index.match_batch(few)
    assert told == []
    index.match_batch(few, progress=True)
    assert told == [100]
    index.match_batch(pa.table({"n": range(300_000)}))
    assert told[-1] == 300_000
    told.clear()
    index.match_batch(pa.table({"n": range(300_000)}), progress=False)
    assert told == []


def test_a_bar_can_be_drawn(index: Index) -> None:
    assert len(index.match_batch([{"n": 1}, {"n": 2}], progress=True)) == 4


def test_adding_many_tells_how_far_it_is() -> None:
    heard: list[tuple[int, int]] = []
    rows = [(number, f"n = {number}") for number in range(300)]
    made = Index()
    made.add_many(rows, progress=lambda done, total: heard.append((done, total)))
    assert heard == [(100, 300), (200, 300), (300, 300)]
    assert made.match({"n": 7}) == [7]
    made.add_many([(1000, "n = 7")], progress=True)
    assert made.match({"n": 7}) == [7, 1000]


def test_a_report_tells_how_far_it_is() -> None:
    heard: list[tuple[int, int]] = []
    rules = {number: f"n < {number}" for number in range(150)}
    found = report(rules, [{"n": n} for n in range(10)], progress=lambda done, total: heard.append((done, total)))
    assert heard == [(10, 10), (0, 150), (100, 150), (150, 150)]
    assert found.fired == report(rules, [{"n": n} for n in range(10)]).fired


def test_a_notebook_has_a_bar_for_many_rules(told: list[int]) -> None:
    report({number: f"n < {number}" for number in range(1_001)})
    assert told[-1] == 1_001
