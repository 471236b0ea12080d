"""`covey demo` on Spark: what it prints and draws is what the library finds in the same market."""

from __future__ import annotations

import re
import tempfile
import xml.etree.ElementTree as ElementTree
from collections import Counter
from collections.abc import Callable
from itertools import pairwise
from pathlib import Path

import pytest
from pyspark.sql import SparkSession

import covey as library
from covey.cli.spark.joins import joined, shape
from covey.cli.spark.page import Batch, Page, bars, columns, html
from covey.cli.stocks import changes, market, quotes, wishes
from tests.cli.conftest import Outcome
from tests.spark.conftest import spark  # noqa: F401

Run = Callable[..., Outcome]
SVG = "{http://www.w3.org/2000/svg}"
TRADERS, QUOTES = 1000, 4000


def numbers(drawing: ElementTree.Element) -> list[int]:
    """What the titles of a chart's bars say."""
    return [int(re.findall(r"[\d,]+", title.text or "")[-1].replace(",", "")) for title in drawing.iter(f"{SVG}title")]


@pytest.mark.long
@pytest.mark.usefixtures("spark")
def test_the_demo_draws_what_the_library_finds(covey: Run, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    page, scratch = tmp_path / "page.html", tmp_path / "scratch"
    scratch.mkdir()
    monkeypatch.setattr(tempfile, "tempdir", str(scratch))
    done = covey("demo", "--traders", TRADERS, "--quotes", QUOTES, "-o", page)
    assert (done.code, done.err) == (0, "")
    left = [path.name for path in scratch.iterdir() if not path.name.startswith("covey-spark-")]
    assert left == []  # what matched DataFrames need stays until the driver ends

    stocks = market(1)
    index, day = library.Index(), quotes(stocks, QUOTES, 1)
    index.add_many(wishes(stocks, TRADERS, 1))
    expected: Counter[str] = Counter()
    for symbol, found in zip(day["symbol"].to_pylist(), index.match_batch(day).counts().tolist(), strict=True):
        expected[symbol] += found
    total = sum(expected.values())
    assert f"{total:,}" in done.out
    symbols, heard = list(ElementTree.parse(page).iter(f"{SVG}svg"))
    assert numbers(symbols) == sorted(expected.values(), reverse=True)[:20]

    # You join before micro-batch 1 and leave before 5, and hear of one stock.
    later = quotes(stocks, int(QUOTES * 0.3), 2)["symbol"].to_pylist()
    edges = [len(later) * place // 6 for place in range(7)]
    asked = [later[first:last].count(stocks.symbols[0]) for first, last in pairwise(edges)]
    assert numbers(heard) == [0, *asked[1:5], 0]
    assert sum(asked[1:5]) > 0

    assert [line.split()[1] for line in done.out.splitlines() if line.startswith("  batch ")] == list("012345")
    assert [line.split()[1] for line in done.out.splitlines() if line.startswith("  version ")] == ["2:", "3:", "4:"]
    for part in ("1,000 traders", "4,000 quotes", "matches: it is true", "on 2 cores", "times slower", str(page)):
        assert part in done.out


def test_joins_match_what_the_library_matches(spark: SparkSession) -> None:  # noqa: F811
    stocks = market(3)
    texts, day = wishes(stocks, 400, 3), quotes(stocks, 300, 3)
    assert shape("symbol IN ('A1', 'B') AND change <= -1.5 AND volume > 300") == (
        "symbol IN (words[0], words[1]) AND change <= numbers[0] AND volume > numbers[1]", ["A1", "B"], [-1.5, 300.0],
    )  # fmt: skip
    numbered = day.append_column("n", [range(300)])
    found, joins = joined(spark, spark.createDataFrame(numbered), texts)
    index = library.Index()
    index.add_many(texts)
    lists = index.match_batch(day).to_pylist()
    expected = sorted((n, id) for n, ids in enumerate(lists) for id in ids)
    assert sorted((row.n, row.id) for row in found.collect()) == expected
    assert len({id for _, id in expected}) > 50
    assert joins < 30


def test_the_demos_changes_can_all_be_applied() -> None:
    stocks = market(5)
    alive = {name for name, _ in wishes(stocks, 97, 5)}
    for version in (2, 3, 4):
        rows = changes(stocks, 97, 11, 5, version)
        assert {row["version"] for row in rows} == {version}
        assert len({row["id"] for row in rows}) == len(rows) == 11
        for row in rows:
            assert row["id"] in alive
            if row["op"] == "remove":
                alive.remove(row["id"])
            else:
                library.parse(row["filter"])


def test_a_page_is_well_formed_whatever_it_says() -> None:
    nasty = "<b> & \"quotes\" 'too' ]]>"
    page = Page(nasty, nasty, [(nasty, nasty)], [(nasty, 3)], nasty, [Batch(1, 0)], nasty, [[nasty], [nasty]])
    root = ElementTree.fromstring(html(page))
    assert root.findtext("head/title") == nasty
    assert root.findtext("body/pre") == nasty


def test_the_longest_bar_fills_its_room_and_others_are_in_proportion() -> None:
    widths = [
        float(one.get("width", "")) for one in ElementTree.fromstring(bars([("a", 8), ("b", 2)])).iter(f"{SVG}rect")
    ]
    assert widths == [560.0, 140.0]
    heights = [
        float(one.get("height", "")) for one in ElementTree.fromstring(columns([("", 0), ("", 4)])).iter(f"{SVG}rect")
    ]
    assert heights == [0.0, 156.0]


def test_charts_of_nothing_are_drawn_too() -> None:
    assert numbers(ElementTree.fromstring(bars([]))) == []
    assert numbers(ElementTree.fromstring(columns([("v1", 0)]))) == [0]
