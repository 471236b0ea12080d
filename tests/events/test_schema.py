"""A schema holds what it names, passes what it doesn't, and reads filters with its types."""

from __future__ import annotations

import math
import pickle
from datetime import UTC, date, datetime
from typing import Any

import pyarrow as pa
import pytest
from hypothesis import given
from hypothesis import strategies as st

from covey.errors import EventError, FilterTypeError, SchemaError
from covey.events import UNDEFINED, Attribute, Schema, flatten
from covey.events.limits import EventLimits
from covey.filters import FALSE, TRUE, Filter, In, Is, Not, attr, matches

DAY = datetime(2024, 1, 1, tzinfo=UTC)
SCHEMA = Schema(
    {
        "price": "double",
        "volume": "int",
        "company": Attribute("string", mandatory=True, default=""),
        "open": "boolean",
        "at": "timestamp",
        "tags": "list<string>",
        "place.x": Attribute("double", default=-1),
    }
)
QUOTES = Schema(
    {"price": "double"},
    type_attribute="type",
    subtypes={"StockQuote": "Quote", "TechQuote": "StockQuote", "BondQuote": "Quote", "News": "Message"},
    mandatory_by_type={"Quote": ["price"], "StockQuote": ["symbol"], "TechQuote": ["chip.name"]},
)


@pytest.mark.parametrize(
    ("name", "value", "wanted"),
    [
        ("price", 5, 5.0),
        ("price", 2**53 + 1, 2**53 + 1),
        ("price", 10**400, 10**400),
        ("price", -0.0, -0.0),
        ("volume", 5.0, 5),
        ("volume", 2**70, 2**70),
        ("at", "2024-01-01T00:00:00Z", DAY),
        ("at", "2024-01-01T01:00:00+01:00", DAY),
        ("at", "2024-01-01", DAY),
        ("at", date(2024, 1, 1), DAY),
        ("tags", ["a", None], ("a", None)),
        ("open", False, False),
    ],
)
def test_values_are_coerced_where_that_is_exact(name: str, value: Any, wanted: Any) -> None:
    found = SCHEMA.decode({"company": "IBM", name: value})[name]
    assert repr(found) == repr(wanted)


@pytest.mark.parametrize(
    ("name", "value", "message"),
    [
        ("price", "5", "attribute 'price': '5' is a string; expected double"),
        ("price", True, "attribute 'price': True is a boolean; expected double"),
        ("volume", 5.5, "attribute 'volume': 5.5 is a double; expected int"),
        ("volume", math.nan, "attribute 'volume': nan is a double; expected int"),
        ("volume", math.inf, "expected int"),
        ("company", 5, "attribute 'company': 5 is a number; expected string"),
        ("open", 1, "expected boolean"),
        ("at", "yesterday", "expected timestamp (ISO 8601, such as 2024-01-31T12:00:00Z)"),
        ("at", 1704067200, "expected timestamp"),
        ("tags", "a", "expected list<string>"),
        ("tags", ["a", 1], "expected list<string>"),
        ("tags", [["a"]], "is a list; expected list<string>"),
        ("price", {"amount": 5}, "attribute 'price' is a record; expected double"),
        ("price", b"5", "attribute 'price'"),
    ],
)
def test_values_that_break_the_schema_are_named_with_what_was_expected(name: str, value: Any, message: str) -> None:
    with pytest.raises(EventError) as caught:
        SCHEMA.decode({"company": "IBM", name: value})
    assert message in str(caught.value)
    assert "\n" not in str(caught.value)


def test_records_become_flat_and_unknown_attributes_pass_through() -> None:
    event = {"company": "IBM", "place": {"x": 1, "y": {"z": "q"}}, "raw": [{"k": 1}], "none": None}
    assert SCHEMA.decode(event) == {"company": "IBM", "place.x": 1.0, "place.y.z": "q", "raw": [{"k": 1}]}


def test_a_missing_mandatory_attribute_is_an_error_even_with_a_default() -> None:
    for event in ({}, {"company": None}, {"price": 5}):
        with pytest.raises(EventError, match="'company' is mandatory and missing"):
            SCHEMA.decode(event)


def test_types_inherit_mandatory_attributes() -> None:
    assert QUOTES.mandatory("Quote") == ("price",)
    assert set(QUOTES.mandatory("TechQuote")) == {"price", "symbol", "chip.name"}
    assert QUOTES.mandatory("Unheard") == QUOTES.mandatory() == ()
    QUOTES.decode({"type": "TechQuote", "price": 1, "symbol": "I", "chip": {"name": "6502"}})
    QUOTES.decode({"type": "News"})
    with pytest.raises(EventError, match="'symbol' of a TechQuote is mandatory and missing"):
        QUOTES.decode({"type": "TechQuote", "price": 1, "chip": {"name": "6502"}})


def test_defaults_are_those_that_are_defined() -> None:
    assert SCHEMA.defaults == {"company": "", "place.x": -1.0}
    assert SCHEMA.attributes["price"].default is UNDEFINED


@pytest.mark.parametrize(
    ("condition", "remedy"),
    [
        (attr("price") < "x", "can't be read as one"),
        (attr("price").is_in(["a"]), "'price' is double, but is compared with the string 'a'"),
        (attr("volume").between("a", "b"), "volume"),
        (attr("price") == True, "boolean True"),  # noqa: E712
        (attr("at") > 5, "TIMESTAMP '2024"),
        (attr("open") == 1, "TRUE or FALSE"),
        (attr("price").like("5%"), "not string"),
        (attr("tags") == "a", "array_contains(tags, value)"),
        (attr("tags").has(5), "in quotes"),
        (attr("price").has(5), "not a list"),
        (TRUE & (FALSE | Not(Is(attr("place.x") == "x", True))), "place.x"),
    ],
)
def test_filters_that_contradict_the_schema_are_refused_with_the_remedy(condition: Filter, remedy: str) -> None:
    with pytest.raises(FilterTypeError) as caught:
        SCHEMA.check(condition)
    assert remedy in str(caught.value)


@pytest.mark.parametrize(
    "condition",
    [
        attr("price") < 5,
        attr("volume") == 5.5,
        attr("price") == None,  # noqa: E711
        attr("at") > DAY,
        attr("tags").has("a"),
        attr("tags").is_null(),
        attr("unknown") == "x",
        (attr("company").like("I%") | ~(attr("price") < 5)) & TRUE,
    ],
)
def test_filters_that_agree_with_the_schema_stay_as_they_are(condition: Filter) -> None:
    assert SCHEMA.check(condition) == condition


EVERY = ["Quote", "StockQuote", "TechQuote", "BondQuote", "Message", "News", "Other", None]
BELOW = {"Quote": {"Quote", "StockQuote", "TechQuote", "BondQuote"}, "StockQuote": {"StockQuote", "TechQuote"}}


@pytest.mark.parametrize("kind", ["Quote", "StockQuote"])
def test_a_type_stands_for_its_subtypes_in_every_form_of_equality(kind: str) -> None:
    def found(condition: Filter, semantics: Any = "sql") -> set[str | None]:
        checked = QUOTES.check(condition)
        return {one for one in EVERY if matches(checked, {"type": one}, semantics=semantics)}

    below = BELOW[kind]
    others = set(EVERY) - below
    assert found(attr("type") == kind) == below
    assert found(attr("type").is_in([kind, "News"])) == below | {"News"}
    assert found(attr("type").null_safe_equals(kind)) == below
    assert found(attr("type") != kind) == found(~(attr("type") == kind)) == others - {None}
    assert found(~attr("type").is_in([kind])) == others - {None}
    assert found(~attr("type").null_safe_equals(kind)) == others
    assert found(~attr("type").is_in([kind, None])) == set()
    for condition in (attr("type") != kind, ~(attr("type") == kind), ~attr("type").is_in([kind])):
        assert found(condition, "simple") == others
        assert found(condition, "strict") == others - {None}


def test_other_tests_on_the_type_are_about_its_text() -> None:
    for condition in (attr("type").like("Quo%"), attr("type") < "Quote", attr("type") == "TechQuote"):
        assert QUOTES.check(condition) == condition
    assert QUOTES.check(attr("type") == "StockQuote") == In("type", ("StockQuote", "TechQuote"))
    assert QUOTES.types_below("Quote") == ("BondQuote", "StockQuote", "TechQuote")


@pytest.mark.parametrize(
    ("arguments", "message"),
    [
        ({"attributes": {"a": "flot"}}, "'flot' is not a type; use one of int, double"),
        ({"attributes": {"a": "list<list<int>>"}}, "is not a type"),
        ({"attributes": {"a": Attribute("int", default="x")}}, "attribute 'a': default 'x': expected int"),
        ({"attributes": {"a": Attribute("int", default=None)}}, "UNDEFINED"),  # type: ignore[arg-type]
        ({"attributes": {"a": Attribute("list<int>", default=(1,))}}, "UNDEFINED"),  # type: ignore[arg-type]
        ({"attributes": {"a": "int", "a.b": "int"}}, "'a' has a value of its own"),
        ({"attributes": {}, "subtypes": {"x": "y"}}, "type_attribute"),
        ({"attributes": {"t": "int"}, "type_attribute": "t"}, "must be string"),
        ({"attributes": {}, "type_attribute": "t", "subtypes": {"a": "b", "b": "c", "c": "a"}}, "a -> b -> c -> a"),
        ({"attributes": {}, "type_attribute": "t", "subtypes": {"a": "a"}}, "circle"),
    ],
)
def test_schemas_that_contradict_themselves_are_refused(arguments: dict[str, Any], message: str) -> None:
    with pytest.raises(SchemaError) as caught:
        Schema(**arguments)
    assert message in str(caught.value)


@pytest.mark.parametrize("schema", [SCHEMA, QUOTES, Schema({"t": Attribute("timestamp", default=DAY)})])
def test_schemas_go_through_json_and_pickle(schema: Schema) -> None:
    assert Schema.from_json(schema.to_json()) == schema
    assert pickle.loads(pickle.dumps(schema)) == schema
    assert eval(repr(schema), {"Schema": Schema}) == schema
    assert schema != Schema({})


@pytest.mark.parametrize("text", ["", "[]", "{}", '{"attributes": {"a": 5}}', '{"attributes": {}, "more": 1}'])
def test_json_that_is_no_schema_is_refused(text: str) -> None:
    with pytest.raises(SchemaError, match="not a schema in JSON"):
        Schema.from_json(text)


def test_a_schema_is_inferred_from_events() -> None:
    events = [
        {"n": 1, "d": 1, "s": "x", "r": {"x": 1}, "l": [1], "e": [], "mixed": 1, "none": None, "raw": [{}]},
        {"n": 2, "d": 1.5, "s": "", "r": {"x": None}, "l": [0.5, None], "e": None, "mixed": "x", "b": False, "t": DAY},
    ]
    found = {name: attribute.type for name, attribute in Schema.infer(events).attributes.items()}
    wanted = {"n": "int", "d": "double", "s": "string", "r.x": "int", "l": "list<double>", "b": "boolean"}
    assert found == {**wanted, "t": "timestamp"}


def test_a_schema_is_inferred_from_arrow() -> None:
    fields = {
        "n": pa.uint8(),
        "d": pa.decimal128(9, 2),
        "w": pa.decimal128(9, 0),
        "f": pa.float16(),
        "s": pa.dictionary(pa.int8(), pa.string()),
        "t": pa.date32(),
        "r": pa.struct([("x", pa.bool_()), ("y", pa.struct([("z", pa.string_view())]))]),
        "l": pa.large_list(pa.timestamp("ns")),
        "raw": pa.binary(),
    }
    schema = pa.schema(list(fields.items()))
    found = {name: attribute.type for name, attribute in Schema.infer(schema).attributes.items()}
    wanted = {"n": "int", "d": "double", "w": "int", "f": "double", "s": "string", "t": "timestamp"}
    assert found == {**wanted, "r.x": "boolean", "r.y.z": "string", "l": "list<timestamp>"}
    assert Schema.infer(schema.empty_table()) == Schema.infer(schema)


LEAVES = st.none() | st.integers(0, 9)
RECORDS = st.recursive(LEAVES, lambda inner: st.dictionaries(st.sampled_from(["a", "b", "a.b"]), inner), max_leaves=8)


@given(st.dictionaries(st.sampled_from(["a", "b", "a.b"]), RECORDS))
def test_flattening_finds_what_lookup_finds(event: dict[str, Any]) -> None:
    from covey.filters.semantics import attribute_value

    for name, value in flatten(event)[0].items():
        assert attribute_value(event, name) == value


def test_records_may_not_be_nested_without_end() -> None:
    event: dict[str, Any] = {}
    inner = event
    for _ in range(5000):
        inner["a"] = {}
        inner = inner["a"]
    with pytest.raises(EventError, match="nested too deeply"):
        Schema({}).decode(event)
    assert flatten({"a": {"b": 1}}, EventLimits(depth=2))[0] == {"a.b": 1}


def test_names_are_strings() -> None:
    with pytest.raises(EventError, match="names are strings"):
        Schema({}).decode({"a": {5: 1}})
