"""The morning: rules with mistakes, events of every kind, what rules are worth, all without a broker or Spark."""

from __future__ import annotations

import sys
import tempfile
from pathlib import Path

import duckdb
import polars as pl

import covey

sys.path.insert(0, str(Path(__file__).parent))
from files import RULES, events, write

with tempfile.TemporaryDirectory() as name:
    folder = Path(name)
    write(folder)

    # The mistakes are named, all of them, and the rest is used.
    index = covey.Index()
    report = index.add_many(folder / "rules.jsonl", on_error="skip")
    print(f"{report.added} rules")
    for bad in report.errors:
        print(f"  row {bad.row}, {bad.id}: {str(bad.error).splitlines()[0]}")
    assert {bad.id for bad in report.errors} == {"operator", "slow"}
    assert report.added == len(RULES) - 2

    # Whatever the events are in, the answers are the same.
    table = events()
    expected = index.match_batch(table).to_pylist()
    for kind, given in {
        "pandas": table.to_pandas(),
        "polars": pl.from_arrow(table),
        "DuckDB": duckdb.from_arrow(table),
        "JSON lines": folder / "events.jsonl.gz",
        "CSV": folder / "events.csv",
        "Parquet by day": folder / "days",
    }.items():
        assert index.match_batch(given).to_pylist() == expected, kind
        print(f"{kind}: {sum(map(len, expected)):,} matches")

    # Rules that can't fire, and what the others are worth.
    for finding in index.check_against(table):
        print(finding)
    found = covey.report(index, table)
    print(found)
    assert found.equal == [["errors", "errors too"]]
    assert found.covered == {"slow-de": "slow"}
    assert found.contradictory == ["contradiction"]
    assert "misspelt" in found.never_fired

    # One event, in words.
    print(index.explain("slow", table.to_pylist()[0]))

    # Answers go on as tables.
    slow = index.match_batch(table).to_polars().filter(pl.col("subscription").cast(pl.String) == "slow")
    print(f"{len(slow):,} slow requests")
