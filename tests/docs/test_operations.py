"""docs/operations.md names every metric, and no limit that isn't there."""

from __future__ import annotations

import re
from pathlib import Path

from covey.network import metrics
from covey.network.metrics import _COUNTERS, _GAUGES, _LINK_GAUGES
from tests.docs.pages import ROOT
from tests.docs.tables import Row, tables

TABLES = tables(ROOT / "docs" / "operations.md")


def rows(column: str) -> dict[str, Row]:
    """The rows of the table with that first column, by their first cell."""
    return {row[column].strip("`"): row for table in TABLES for row in table if next(iter(row)) == column}


def test_every_metric_is_listed() -> None:
    counters = {f"covey_{name}_total" for name in _COUNTERS}
    gauges = {f"covey_{name}" for name in _GAUGES}
    links = {f"covey_link_{name}" for name in [*_LINK_GAUGES, "told", "heard"]}
    # Those that are gathered one by one.
    source = Path(metrics.__file__).read_text(encoding="utf-8")
    single = re.findall(r'(Gauge|Counter|Histogram)MetricFamily\(\s*"(covey_[a-z_]+)"', source)
    assert len(single) > 3
    others = {f"{name}_total" if kind == "Counter" else name for kind, name in single}
    assert set(rows("metric")) == counters | gauges | links | others


def test_limits_that_the_text_speaks_of_exist() -> None:
    known = {name.removeprefix("timing.") for name in rows("limit")} | set(rows("metric"))
    text = (ROOT / "docs" / "operations.md").read_text(encoding="utf-8").partition("## Slow consumers")[2]
    named = re.findall(r"`([a-z]+(?:_[a-z]+)*)`", text.partition("## Sizing")[0])
    assert set(named) <= known
