"""Subscriptions held to a table's columns: what SQL would refuse is refused by name, what it converts is converted."""

from __future__ import annotations

import pyarrow as pa
import pytest

from covey import Index, parse
from covey.matching.table_columns import TableColumns, held

TABLE = pa.schema(
    {
        "status": pa.int64(),
        "path": pa.string(),
        "at": pa.timestamp("us"),
        "user": pa.struct({"plan": pa.string(), "age": pa.int32()}),
        "tags": pa.map_(pa.string(), pa.string()),
        "items": pa.list_(pa.struct({"sku": pa.string()})),
        "raw": pa.binary(),
        "codes": pa.list_(pa.int64()),
        "nothing": pa.null(),
    }
)


@pytest.mark.parametrize(
    ("text", "problem"),
    [
        ("statis > 5", "there is no column statis; did you mean status?"),
        ("Status > 5", "there is no column Status; did you mean status?"),
        ("status = 1 OR zone IS NULL", "there is no column zone"),
        ("path = home", "there is no column home; a text is written in quotes: 'home'"),
        ("user.plam = 'x'", "there is no column user.plam; did you mean user.plan?"),
        ("path.x = 1", "there is no column path.x"),
        ("status > 'high'", "'status' is int, but is compared with the string 'high', which can't be read as one"),
        ("abs(statsu) > 5", "there is no column statsu; did you mean status?"),
        ("user IS NULL", "user is a record; name one of its fields, such as user.plan"),
        ("tags = 'L'", "tags is a map; name one of its keys, such as tags.key"),
        ("raw IS NOT NULL", "column 'raw' is of Arrow type binary, which filters can't compare; cast it first"),
        ("length(status) > 1", "length takes a string here, and status holds numbers; "
         "write CAST(status AS …) if that is meant"),
        ("path + 1 > 10", "+ takes a number, a timestamp or an interval here, and path holds strings; "
         "write CAST(path AS …) if that is meant"),
        ("at = status", "at holds timestamps and status holds numbers; "
         "write CAST(… AS …) so that they are of one kind"),
        ("at + 1 > at", "at holds timestamps and 1 is a number; write CAST(… AS …) so that they are of one kind"),
        ("coalesce(path, 1) = 1", "path holds strings and 1 is a number; "
         "write CAST(… AS …) so that they are of one kind"),
        ("codes[0] LIKE '5%'", "codes[0] holds numbers, and codes[0] LIKE '5%' is of strings; "
         "write CAST(codes[0] AS STRING)"),
        ("exists(items, x -> x.sku = 5)", "x.sku holds strings, and x.sku = 5 is of numbers; put the constant in "
         'quotes, give a schema with {"x.sku": "double"}, or write CAST(x.sku AS DOUBLE)'),
        ("CASE WHEN status = '5' THEN 1 ELSE 2 END = 1", "status holds numbers, and status = '5' is of strings; "
         'write the constant without quotes, or give a schema with {"status": "string"} for CSV'),
    ],
)  # fmt: skip
def test_what_sql_refuses_is_refused_by_name(text: str, problem: str) -> None:
    assert str(TableColumns([TABLE]).refusal(parse(text))) == problem


@pytest.mark.parametrize(
    "text",
    ["user.plan = 'pro'", "tags.size = 'L'", "items.sku IS NULL", "status + 1 > 5", "TRUE", "year(at) = 2026",
     "at - INTERVAL '1' DAY > TIMESTAMP '2026-01-01'", "coalesce(status, NULL, 1) = 1", "codes[0] > 5",
     "size(codes) = 2", "exists(codes, e -> e IS NULL)", "exists(items, e -> e.sku = 'x' OR e IS NULL)",
     "path || status = 'x1'", "CASE WHEN status = 5 THEN path END = 'x'", "is_present(user)",
     "nothing = 1 OR nothing = 'x'"],
)  # fmt: skip
def test_what_it_has_is_asked(text: str) -> None:
    assert TableColumns([TABLE]).refusal(parse(text)) is None


def test_constants_are_converted_and_all_else_stays_in_its_order() -> None:
    texts = {
        "number": "status = '503'", "plain": "path LIKE '/a%'", "nowhere": "statis = 1",
        "time": "at > '2026-01-01'", "cast": "path > 5",
    }  # fmt: skip
    index = Index()
    index.add_many(texts)
    index, bad = held(index, TableColumns([TABLE]))
    assert [(one.row, one.id) for one in bad] == [(2, "nowhere")]
    assert list(index.ids()) == ["number", "plain", "time", "cast"]
    events = pa.Table.from_pylist([{"status": 503, "path": "/a"}, {"status": 404, "path": "7"}], TABLE)
    assert index.match_batch(events).to_pylist() == [["number", "plain"], ["cast"]]


@pytest.mark.parametrize("text", ["raw IS NULL", "length(status) = 1", "exists(codes, e -> e = 'x')", "user IS NULL"])
def test_what_can_never_be_is_found_in_an_index(text: str) -> None:
    index = Index()
    index.add_many({"good": "status = 503 AND size(codes) = 1", "bad": text})
    index, bad = held(index, TableColumns([TABLE]))
    assert [one.id for one in bad] == ["bad"]
    events = pa.Table.from_pylist([{"status": 503, "codes": [1], "raw": b"x"}], TABLE)
    assert index.match_batch(events).to_pylist() == [["good"]]


def test_columns_of_several_tables_count_together() -> None:
    both = TableColumns([TABLE, pa.schema({"zone": pa.string(), "status": pa.string()})])
    assert both.refusal(parse("zone = 'x' AND at IS NULL")) is None
    assert both.read(parse("status = '503'")) == parse("status = '503'")  # of two types: each value as it is


def test_a_table_may_be_said_to_lack_columns() -> None:
    index = Index()
    index.add_many({"either": "zone = 'x' OR status = '503'", "high": "status > 'high'"})
    index, bad = held(index, TableColumns([TABLE], lacking=True))
    assert [one.id for one in bad] == ["high"]
    assert index.match({"status": 503}) == ["either"]


def test_an_index_that_fits_is_taken_as_it_is() -> None:
    index = Index()
    index.add_many({"a": "status > 5", "b": "path = 'x' AND at > TIMESTAMP '2026-01-01'"})
    assert held(index, TableColumns([TABLE])) == (index, [])


def test_one_among_many_is_found() -> None:
    texts = {n: f"status = {n % 600} AND path = 'p{n}'" for n in range(2_000)}
    texts |= {777: "status = '7' AND path = 'p777'", 1_234: "statis = 5"}
    index = Index()
    index.add_many(texts)
    index, bad = held(index, TableColumns([TABLE]))
    assert [one.id for one in bad] == [1_234]
    assert list(index.ids()) == [n for n in texts if n != 1_234]
    assert index.match({"status": 7, "path": "p777"}) == [777]
