"""What a first day starts with: alert rules with mistakes among them, and events in three kinds of files."""

from __future__ import annotations

import gzip
import json
from datetime import UTC, datetime, timedelta
from pathlib import Path

import pyarrow as pa
import pyarrow.csv
import pyarrow.parquet as pq

RULES = [
    {"id": "slow", "filter": "latency_ms > 1000"},
    {"id": "slow-de", "filter": "latency_ms > 1000 AND country = 'DE'"},
    {"id": "errors", "filter": "status >= 500"},
    {"id": "errors too", "filter": "NOT status < 500"},
    {"id": "misspelt", "filter": "statis >= 500"},
    {"id": "contradiction", "filter": "status > 500 AND status < 400"},
    {"id": "operator", "filter": "status => 500"},
    {"id": "slow", "filter": "latency_ms > 5000"},
]
"""The last two can't be used: an operator that is none, and an id that is there already."""

COUNT = 400
START = datetime(2026, 1, 1, tzinfo=UTC)


def events() -> pa.Table:
    """Requests of two days; some have no latency."""
    numbers = range(COUNT)
    return pa.table(
        {
            "at": pa.array([START + timedelta(minutes=7 * n) for n in numbers], pa.timestamp("us", "UTC")),
            "latency_ms": pa.array([None if n % 10 == 0 else float(n * 37 % 1500) for n in numbers]),
            "country": ["DE" if n % 3 else "FR" for n in numbers],
            "status": [503 if n % 50 == 7 else 200 for n in numbers],
        }
    )


def write(folder: Path) -> None:
    """`rules.jsonl`, `events.jsonl.gz`, `events.csv` and a directory `days` of Parquet, one partition a day."""
    table = events()
    (folder / "rules.jsonl").write_text("".join(json.dumps(rule) + "\n" for rule in RULES))
    rows = [{**row, "at": row["at"].isoformat()} for row in table.to_pylist()]
    present = [{name: value for name, value in row.items() if value is not None} for row in rows]
    (folder / "events.jsonl.gz").write_bytes(gzip.compress("".join(json.dumps(row) + "\n" for row in present).encode()))
    pyarrow.csv.write_csv(table, folder / "events.csv")
    pq.write_to_dataset(
        table.append_column("day", pa.array([str(at.date()) for at in table["at"].to_pylist()])),
        folder / "days",
        partition_cols=["day"],
    )
