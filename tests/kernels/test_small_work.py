"""A handful of subscriptions and events is answered before anything is loaded, and answered alike."""

from __future__ import annotations

import random
import subprocess
import sys
import textwrap

import pytest
from tests.random_worlds import event_of, filter_of

import covey
from covey.filters import SEMANTICS, Semantics
from covey.matching import index as index_module


@pytest.fixture(autouse=True)
def nothing_is_loaded(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(index_module, "kernels_loaded", lambda: False)


@pytest.mark.parametrize("semantics", SEMANTICS)
def test_interpreted_handfuls_equal_compiled_ones(semantics: Semantics, monkeypatch: pytest.MonkeyPatch) -> None:
    rng = random.Random(semantics)
    for _ in range(8):
        rows = [(f"s{number}", str(filter_of(rng))) for number in range(12)]
        batch = [event_of(rng) for _ in range(12)]
        small = covey.Index(semantics=semantics)
        small.add_many(rows)
        found = small.match_batch(batch)
        assert small.stats().segments == 0
        with monkeypatch.context() as patch:
            patch.setattr(index_module, "kernels_loaded", lambda: True)
            compiled = covey.Index(semantics=semantics)
            compiled.add_many(rows)
            expected = compiled.match_batch(batch)
            assert compiled.stats().segments == 1
        assert found.to_pylist() == expected.to_pylist()
        assert found.pairs().to_pylist() == expected.pairs().to_pylist()
        assert found.lists().to_pylist() == expected.lists().to_pylist()


def test_bad_rows_are_told_alike(monkeypatch: pytest.MonkeyPatch) -> None:
    rows = [("a", "x >"), ("b", "x > 1"), ("b", "x > 2"), ("", "x > 1"), ("c", 7), ("a0", "x < 1")]
    reports = []
    for loaded in (False, True):
        monkeypatch.setattr(index_module, "kernels_loaded", lambda loaded=loaded: loaded)
        index = covey.Index()
        index.add("a0", "x > 5")
        report = index.add_many(rows, on_error="collect")  # type: ignore[arg-type]
        with pytest.raises(covey.AddManyError) as raised:
            covey.Index().add_many(rows)  # type: ignore[arg-type]
        told = [(bad.row, bad.id, str(bad.error)) for bad in report.errors]
        reports.append((report.added, told, str(raised.value), index.match({"x": 7})))
    assert reports[0] == reports[1]


def test_an_event_that_cannot_be_read_is_told_alike(monkeypatch: pytest.MonkeyPatch) -> None:
    words = []
    for loaded in (False, True):
        monkeypatch.setattr(index_module, "kernels_loaded", lambda loaded=loaded: loaded)
        index = covey.Index()
        index.add("a", "x > 5")
        with pytest.raises(covey.EventError) as raised:
            index.match_batch([{"x": 1}, {"x": object()}])
        words.append(str(raised.value))
    assert words[0] == words[1]


def test_the_first_answers_import_no_numba() -> None:
    script = """
        import sys

        import covey

        index = covey.Index()
        index.add("ann", "company = 'IBM' AND price < 150")
        assert index.match({"company": "IBM", "price": 142.5}) == ["ann"]
        heavy = {f"covey.matching.{name}" for name in ("segment", "tables", "encoding", "storage", "bulk")}
        assert not heavy & sys.modules.keys(), "a first match took what only segments need"
        index.add_many([("bob", "price > 100"), ("cyd", "company LIKE 'D%'")])
        assert index.match({"company": "IBM", "price": 142.5}) == ["ann", "bob"]
        assert index.match_batch([{"company": "Dell", "price": 1}]).to_pylist() == [["cyd"]]
        assert "numba" not in sys.modules, "Numba was imported"
    """
    subprocess.run([sys.executable, "-c", textwrap.dedent(script)], check=True, timeout=300)
