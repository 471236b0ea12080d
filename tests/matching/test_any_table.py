"""Whatever people have as a table goes in, and matches come out as what they work with."""

from __future__ import annotations

import gzip
import json
from collections import namedtuple
from collections.abc import Callable
from pathlib import Path
from typing import Any

import duckdb
import numpy as np
import pandas as pd
import polars as pl
import pyarrow as pa
import pyarrow.csv
import pyarrow.dataset
import pyarrow.parquet as pq
import pytest

from covey import AddManyError, CoveyError, EventError, Index, SchemaError, UnknownIdError, report
from covey.matching.matches import Tally

RULES = {"slow": "latency_ms > 1000", "germany": "country = 'DE'", "odd": "latency_ms IS NULL"}
COLUMNS: dict[str, list[Any]] = {"latency_ms": [1500.0, None, 3.0], "country": ["FR", "DE", "DE"]}
EXPECTED = [["slow"], ["germany", "odd"], ["germany"]]
RECORDS = [{"latency_ms": 1500.0, "country": "FR"}, {"country": "DE"}, {"latency_ms": 3.0, "country": "DE"}]


def arrow() -> pa.Table:
    return pa.table(COLUMNS)


class Array:
    """What has nothing but the C interface of one array."""

    def __init__(self) -> None:
        self._batch = arrow().to_batches()[0]

    def __arrow_c_array__(self, requested_schema: object = None) -> object:
        return self._batch.__arrow_c_array__(requested_schema)


TABLES: dict[str, Callable[[], Any]] = {
    "arrow": arrow,
    "record batch": lambda: arrow().to_batches()[0],
    "reader": lambda: arrow().to_reader(),
    "C array": Array,
    "pandas": lambda: pd.DataFrame(COLUMNS),
    "pandas with types of Arrow": lambda: arrow().to_pandas(types_mapper=pd.ArrowDtype),
    "polars": lambda: pl.DataFrame(COLUMNS),
    "lazy polars": lambda: pl.LazyFrame(COLUMNS),
    "duckdb": lambda: duckdb.from_arrow(arrow()),
    "list": lambda: RECORDS,
    "generator": lambda: (record for record in RECORDS),
}


@pytest.fixture
def index() -> Index:
    found = Index()
    found.add_many(RULES)
    return found


@pytest.mark.parametrize("kind", TABLES)
def test_events_of_every_kind_are_matched_alike(index: Index, kind: str) -> None:
    assert index.match_batch(TABLES[kind]()).to_pylist() == EXPECTED


def test_a_dataset_is_a_table(index: Index, tmp_path: Path) -> None:
    pq.write_table(arrow(), tmp_path / "events.parquet")
    assert index.match_batch(pyarrow.dataset.dataset(tmp_path)).to_pylist() == EXPECTED


def test_a_column_of_mixed_values_is_read_record_by_record(index: Index) -> None:
    mixed = pd.DataFrame({"latency_ms": [1500.0, "slow", None], "country": ["FR", "DE", "DE"]})
    assert index.match_batch(mixed).to_pylist() == [["slow"], ["germany"], ["germany", "odd"]]


def test_one_row_is_matched_as_it_is_explained(index: Index) -> None:
    for (_, row), expected in zip(pd.DataFrame(COLUMNS).iterrows(), EXPECTED, strict=True):
        assert index.match(row) == expected
        assert [id for id in index.ids() if index.explain(id, row).matched] == expected


def test_named_tuples_are_events(index: Index) -> None:
    event = namedtuple("Event", ["latency_ms", "country"])(2000, "DE")
    assert index.match(event) == ["slow", "germany"]


def test_what_is_no_event_is_refused_by_name(index: Index) -> None:
    for given in ("text", 5, [1, 2]):
        with pytest.raises(EventError, match="an event is a mapping of attributes, not"):
            index.match(given)  # type: ignore[arg-type]
    with pytest.raises(EventError, match=r"match\(\) takes one event"):
        index.match_batch({"latency_ms": 5})
    with pytest.raises(EventError, match="match_json_lines"):
        index.match_batch(b'{"latency_ms": 5}\n')


# Missing values


def test_nan_of_pandas_is_missing_however_it_comes() -> None:
    index = Index()
    index.add_many(RULES)
    frame = pd.DataFrame(COLUMNS)
    assert index.match_batch(frame).to_pylist() == EXPECTED
    assert index.match(frame.iloc[1]) == ["germany", "odd"]


def test_nan_in_records_is_a_number_unless_it_is_said_to_be_missing() -> None:
    records = pd.DataFrame(COLUMNS).to_dict("records")
    strict, lenient = Index(), Index(nan_is_missing=True)
    for index in (strict, lenient):
        index.add_many(RULES)
    assert strict.match_batch(records).to_pylist()[1] == ["slow", "germany"]
    assert lenient.match_batch(records).to_pylist() == EXPECTED
    assert [lenient.match(record) for record in records] == EXPECTED
    assert lenient.explain("odd", records[1]).matched
    lines = "\n".join(map(json.dumps, records)).encode()
    assert lenient.match_json_lines(lines).to_pylist() == EXPECTED
    assert [lenient.match_json(line) for line in lines.splitlines()] == EXPECTED
    many = records * 400
    assert lenient.match_batch(many).to_pylist() == EXPECTED * 400
    assert lenient.match_batch(pa.Table.from_pylist(records)).to_pylist() == EXPECTED


@pytest.mark.parametrize("missing", [pd.NA, pd.NaT, np.datetime64("NaT"), None])
@pytest.mark.parametrize("count", [1, 2000])
def test_missing_values_of_pandas_are_missing(missing: Any, count: int) -> None:
    index = Index()
    index.add_many({"before": "at < TIMESTAMP '2030-01-01 00:00:00'", "none": "at IS NULL"})
    now = pd.Timestamp("2026-01-01")
    assert index.match({"at": missing}) == ["none"]
    assert index.match_batch([{"at": missing}, {"at": now}] * count).to_pylist() == [["none"], ["before"]] * count


# Rules


@pytest.mark.parametrize(
    "kind", ["pairs", "mapping", "records", "arrow", "pandas", "polars", "duckdb", "index", "generator"]
)
def test_rules_of_every_kind_are_added_alike(kind: str) -> None:
    pairs = list(RULES.items())
    table = pa.table({"id": list(RULES), "filter": list(RULES.values())})
    other = Index()
    other.add_many(pairs)
    given: dict[str, Any] = {
        "pairs": pairs,
        "mapping": RULES,
        "records": [{"id": id, "filter": text} for id, text in pairs],
        "arrow": table,
        "pandas": table.to_pandas(),
        "polars": pl.from_arrow(table),
        "duckdb": duckdb.from_arrow(table),
        "index": other,
        "generator": iter(pairs),
    }
    index = Index()
    assert index.add_many(given[kind]).added == 3
    assert dict(index.rows()) == RULES


def test_columns_of_rules_can_have_other_names() -> None:
    index = Index()
    index.add_many(pd.DataFrame({"rule": ["a"], "where": ["price < 5"]}), id="rule", filter="where")
    assert index.match({"price": 1}) == ["a"]
    with pytest.raises(CoveyError, match=r"have no column 'id'; theirs are rule, where \(id= chooses\)"):
        index.add_many(pd.DataFrame({"rule": ["a"], "where": ["price < 5"]}))


def test_what_is_no_rule_is_refused_by_its_row() -> None:
    with pytest.raises(CoveyError, match="row 1 of the subscriptions is 'r1'; a row is a pair of id and filter"):
        Index().add_many([("r0", "price < 5"), "r1"])
    with pytest.raises(AddManyError, match="no filter; a subscription to all events has the filter TRUE"):
        Index().add_many({"r1": None})


@pytest.mark.parametrize("suffix", ["jsonl", "jsonl.gz", "csv", "parquet", "covey"])
def test_paths_work_as_on_the_command_line(tmp_path: Path, suffix: str) -> None:
    rules, events = tmp_path / f"rules.{suffix}", tmp_path / f"events.{suffix}"
    table = pa.table({"id": list(RULES), "filter": list(RULES.values())})
    if suffix == "covey":
        saved = Index()
        saved.add_many(RULES)
        saved.save(rules)
        events = tmp_path / "events.parquet"
    for path, content in ((rules, table), (events, arrow())):
        if path.suffix == ".parquet":
            pq.write_table(content, path)
        elif path.suffix == ".csv":
            pyarrow.csv.write_csv(content, path)
        elif path.suffix != ".covey":
            text = "".join(json.dumps(row) + "\n" for row in content.to_pylist()).encode()
            path.write_bytes(gzip.compress(text) if path.suffix == ".gz" else text)
    index = Index()
    index.add_many(rules)
    assert dict(index.rows()) == RULES
    assert index.match_batch(events).to_pylist() == EXPECTED
    assert index.match_batch(str(events)).to_pylist() == EXPECTED


# Ids


def test_integer_ids_come_back_as_they_went_in(tmp_path: Path) -> None:
    index = Index()
    index.add(1, "price < 10")
    index.add_many(pd.DataFrame({"id": [2, 30], "filter": ["price < 5", "price > 100"]}))
    index.add_many([(np.int64(4), "price = 1")])
    assert index.match({"price": 1}) == [1, 2, 4]
    assert index.match_json(b'{"price": 1}') == [1, 2, 4]
    index.save(tmp_path / "ids.covey")
    for one in (index, Index.open(tmp_path / "ids.covey")):
        assert list(one.ids()) == [1, 2, 30, 4]
        found = one.match_batch([{"price": 1}, {"price": 500}] * 600)
        assert found.to_pylist() == [[1, 2, 4], [30]] * 600
        assert found.lists().to_pylist()[0] == [1, 2, 4]
        assert found.pairs()["subscription"].cast(pa.int64()).to_pylist()[:3] == [1, 2, 4]
        assert 2 in one
        assert "2" not in one
        assert one.text(30) == "price > 100"
        assert one.explain(30, {"price": 500}).subscription == 30
        with pytest.raises(UnknownIdError):
            one.text("30")
        one.replace(30, "price > 1000")
        one.remove(2)
        assert one.match({"price": 1}) == [1, 4]


def test_ids_of_one_index_are_of_one_kind() -> None:
    index = Index()
    index.add(1, "price < 10")
    with pytest.raises(CoveyError, match="the id 'a' is text, and other ids are integers"):
        index.add("a", "price < 10")
    report = index.add_many([(2, "price < 1"), ("b", "price < 2"), (1, "TRUE"), (True, "TRUE")], on_error="skip")
    assert [bad.id for bad in report.errors] == ["b", 1, True]
    assert list(index.ids()) == [1, 2]
    with pytest.raises(AddManyError, match="the id 7 is an integer, and other ids are text"):
        Index().add_many([("a", "price < 10"), (7, "price < 10")])


# Results


def test_matches_go_where_people_work(index: Index) -> None:
    found = index.match_batch(arrow())
    pairs = [(0, "slow"), (1, "germany"), (1, "odd"), (2, "germany")]
    assert list(found.to_pandas().itertuples(index=False, name=None)) == pairs
    assert found.to_polars().rows() == pairs
    assert pl.DataFrame(found).rows() == pairs
    relation = duckdb.from_arrow(pa.table(found))
    assert relation.filter("subscription = 'germany'").count("*").fetchall() == [(2,)]
    assert found.fired() == {"germany": 2, "slow": 1, "odd": 1}
    assert found.counts().tolist() == [1, 2, 1]


# Paths, as the command line takes them


def test_lines_that_cannot_be_read_are_bad_rows_like_others(tmp_path: Path) -> None:
    (tmp_path / "r.jsonl").write_text('{"id": "a", "filter": "x = 1"}\nnope\n{"id": "b", "filter": "x =>"}\n')
    (tmp_path / "r.csv").write_text("id,filter\na,x = 1\nb,x = 2,3\nc,\n")
    for name, bad in (("r.jsonl", ["line 2: not JSON", "=> is not"]), ("r.csv", ["no filter", "line 3: 3 fields"])):
        index = Index()
        report = index.add_many(tmp_path / name, on_error="skip")
        assert list(index.ids()) == ["a"]
        assert [said in str(one.error) for said, one in zip(bad, report.errors, strict=True)] == [True, True], report
        with pytest.raises(AddManyError):
            Index().add_many(tmp_path / name)


def test_a_table_of_something_else_is_named_in_one_line(tmp_path: Path) -> None:
    (tmp_path / "e.jsonl").write_text('{"price": 1}\n' * 1_000)
    (tmp_path / "e.csv").write_text("price,name\n1,x\n")
    (tmp_path / "r.csv").write_text("name,filter\na,x = 1\n")
    with pytest.raises(CoveyError, match=r"no row has 'id' and 'filter'; are these events\?$"):
        Index().add_many(tmp_path / "e.jsonl")
    with pytest.raises(CoveyError, match=r"no column 'id'; it has price, name; are these events\?$"):
        Index().add_many(tmp_path / "e.csv")
    with pytest.raises(CoveyError, match=r"no column 'id'; it has name, filter$"):
        Index().add_many(tmp_path / "r.csv")
    assert Index().add_many(tmp_path / "r.csv", id="name").added == 1


def test_a_directory_may_have_a_rule_a_file(tmp_path: Path) -> None:
    rule = "title: a\nlogsource: {category: x}\ndetection:\n  one:\n    cmd|contains: evil\n  condition: one\n"
    (tmp_path / "rules").mkdir()
    (tmp_path / "rules" / "evil.yml").write_text(rule)
    (tmp_path / "rules" / "bytes.yml").write_bytes(b"\xff")
    index = Index(dialect="sigma")
    report = index.add_many(tmp_path / "rules", on_error="skip")
    assert [(bad.id, str(bad.error)) for bad in report.errors] == [("bytes.yml", "the file is not UTF-8 at byte 0")]
    assert index.match({"cmd": "an evil one"}) == ["evil.yml"]


def test_a_row_of_csv_that_does_not_fit_is_named_by_its_line(tmp_path: Path, capfd: pytest.CaptureFixture[str]) -> None:
    (tmp_path / "e.csv").write_text("x,y\n1,2\n1,2,3\n")
    index = Index()
    index.add("a", "x = 1")
    with pytest.raises(EventError, match=r"e\.csv line 3: 3 fields where the header has 2$"):
        index.match_batch(tmp_path / "e.csv")
    assert capfd.readouterr().err == ""


def test_a_schema_may_be_a_mapping_its_json_or_a_file(tmp_path: Path) -> None:
    (tmp_path / "schema.json").write_text('{"ts": "timestamp"}')
    for given in ({"ts": "timestamp"}, '{"ts": "timestamp"}', tmp_path / "schema.json", str(tmp_path / "schema.json")):
        index = Index(schema=given)
        index.add("new", "ts > '2026-01-01'")
        assert index.match({"ts": "2026-02-01T00:00:00Z"}) == ["new"]
    (tmp_path / "schema.json").write_text("[]")
    with pytest.raises(SchemaError, match=r"schema\.json: not a schema in JSON"):
        Index(schema=tmp_path / "schema.json")
    with pytest.raises(SchemaError, match=r"not int$"):
        Index(schema=5)  # type: ignore[arg-type]


def test_a_report_reads_rules_as_an_index_does(tmp_path: Path) -> None:
    (tmp_path / "r.csv").write_text("rule,where\n1,x > 1\n2,x > 2\n3,x >\n")
    found = report(tmp_path / "r.csv", [{"x": 2}], id="rule", filter="where", on_error="skip")
    assert (found.covered, found.never_fired) == ({"2": "1"}, ["2"])
    with pytest.raises(AddManyError):
        report(tmp_path / "r.csv", id="rule", filter="where")
    assert (
        report({"a": '{"attribute": "x", "=": 1}'}, dialect="json", semantics="simple", schema={"x": "int"}).rules == 1
    )


@pytest.mark.parametrize("named", [str, int])
def test_batches_are_tallied_together_whether_rules_are_compiled_or_not(named: type) -> None:
    index = Index()
    index.add_many([(named(n), f"x = {n}") for n in range(5)])
    tally = Tally()
    batches = [[{"x": 1}, {"x": 3}], [{"x": x % 4} for x in range(2_000)], [{"x": 1}], [{"y": 1}]]
    for batch in batches:
        tally.add(index.match_batch(batch))
    assert tally.fired() == {named(0): 500, named(1): 502, named(2): 500, named(3): 501}


def test_a_report_of_adding_is_for_people_too() -> None:
    index = Index()
    assert str(index.add_many({"a": "x = 1", "b": "x = 2"})) == "2 subscriptions added"
    said = str(index.add_many({"c": "x = 3", "d": "x =>"}, on_error="skip"))
    assert said.startswith("1 subscriptions added; 1 can't be:\nrow 1, id 'd': => is not an operator")
