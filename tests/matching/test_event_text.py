"""`event_text()` is all that an event says, in every way of matching."""

from __future__ import annotations

import json
import random
from datetime import date
from pathlib import Path
from typing import Any

import pyarrow as pa
import pyarrow.parquet as pq
import pytest

import covey
from covey.cli.run import main
from covey.errors import FilterSyntaxError
from covey.filters import matches
from covey.filters.event_texts import text_of
from covey.filters.semantics import SEMANTICS, Semantics

EVENTS: list[dict[str, Any]] = [
    {}, {"a": None}, {"a": "Bad"}, {"r": {"s": [{"t": "so bad"}, 7]}}, {"a": 4688}, {"a": True, "b": 2.5},
    {"a": "line\nbad"}, {"ä": "BÄD"}, {"a": ["ba", "d"]}, {"bad": 1},
]  # fmt: skip
TESTS = [
    "event_text() ILIKE '%bad%'", "event_text() LIKE '%4688%'", "event_text() RLIKE 'b.d'", "event_text() = ''",
    "contains(event_text(), 'tru')", "event_text() ILIKE 'b%d'", "a IS NULL",
]  # fmt: skip


def test_it_is_the_values_one_a_line() -> None:
    event = {"a": "x", "r": {"b": [1, None, {"c": True}]}, "d": date(2024, 5, 6), "e": 2.5, "n": None}
    assert text_of(event) == "x\n1\ntrue\n2024-05-06\n2.5"
    assert text_of({}) == ""


@pytest.mark.parametrize("semantics", SEMANTICS)
def test_all_ways_of_matching_are_as_interpreted(semantics: Semantics, tmp_path: Path) -> None:
    draw = random.Random(semantics)
    rules = {}
    for at in range(60):
        one, other = draw.sample(TESTS, 2)
        rules[str(at)] = draw.choice([one, f"NOT {one}", f"{one} AND {other}", f"{one} OR NOT {other}"])
    wanted = [
        {id for id, rule in rules.items() if matches(covey.parse(rule), event, semantics=semantics)} for event in EVENTS
    ]
    index = covey.Index(semantics=semantics)
    index.add_many(rules.items())
    index.save(tmp_path / "index")
    for one_index in (index, covey.Index.open(tmp_path / "index")):
        assert [set(ids) for ids in one_index.match_batch(EVENTS).to_pylist()] == wanted
        assert [set(one_index.match(event)) for event in EVENTS] == wanted
        lines = "\n".join(map(json.dumps, EVENTS)).encode()
        assert [set(ids) for ids in one_index.match_json_lines(lines).to_pylist()] == wanted
        assert [set(one_index.match_json(json.dumps(event).encode())) for event in EVENTS] == wanted
    assert any(wanted)


def test_tables_are_read_whole(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    table = pa.table({"a": ["x", "bad"], "b": [1, 2], "c": [{"d": "BAD"}, None]})
    index = covey.Index()
    index.add("one", "event_text() LIKE '%BAD%'")
    index.add("two", "a = 'bad' AND event_text() LIKE '%2%'")
    assert index.match_batch(table).to_pylist() == [["one"], ["two"]]
    pq.write_table(table, tmp_path / "events.parquet")
    (tmp_path / "rules.jsonl").write_text('{"id": "one", "filter": "event_text() LIKE \'%BAD%\'"}\n')
    assert main(["match", str(tmp_path / "rules.jsonl"), str(tmp_path / "events.parquet")]) == 0
    assert "one" in capsys.readouterr().out


def test_a_schema_leaves_it_alone() -> None:
    schema = covey.Schema({"a": "int"})
    index = covey.Index(schema=schema)
    index.add("one", "event_text() LIKE '%x%'")
    assert index.match({"a": 5, "b": "x"}) == ["one"]
    assert index.match_batch([{"a": 5, "b": "x"}, {"a": 5}]).to_pylist() == [["one"], []]


def test_it_prints_and_relates_as_a_text_of_its_own() -> None:
    broad, narrow = covey.parse("event_text() ILIKE '%bad%'"), covey.parse("event_text() LIKE '%bad%' AND a = 1")
    assert covey.parse(str(narrow)) == narrow
    assert broad.covers(narrow)
    assert not narrow.covers(broad)
    assert narrow.attributes() == {"a"}


@pytest.mark.parametrize("text", ["lower(event_text()) = 'x'", "event_text() || a = 'x'", "event_text(a) = 'x'"])
def test_it_stands_alone(text: str) -> None:
    with pytest.raises(FilterSyntaxError, match="event_text"):
        covey.parse(text)
