"""XML-style documents are events, and nothing in them reaches outside."""

from __future__ import annotations

from datetime import UTC, datetime
from typing import Any
from xml.sax.saxutils import escape

import pytest
from hypothesis import given
from hypothesis import strategies as st

from covey.errors import EventError
from covey.events import EventLimits, Schema, parse_xml

SCHEMA = Schema({"s": "string", "n": "int", "d": "double", "b": "boolean", "t": "timestamp", "l": "list<int>"})


@pytest.mark.parametrize(
    ("document", "wanted"),
    [
        ("<company> IBM </company><price> 5000 </price>", {"company": "IBM", "price": 5000}),
        ("<sale><company> IBM </company><price>1.50</price></sale>", {"company": "IBM", "price": 1.5}),
        ("<?xml version='1.0'?>\n<sale><a>x</a></sale>", {"a": "x"}),
        ("<a><b><c>1</c></b><d>2</d></a><e>3</e>", {"a.b.c": 1, "a.d": 2, "e": 3}),
        ("<r><a><b>1</b></a></r>", {"a.b": 1}),
        ("<tag>x</tag><tag>2</tag>", {"tag": ("x", 2)}),
        (
            "<a>007</a><b>+1</b><c>1e3</c><d>-0</d><e>1.</e><f>NaN</f>",
            {"a": "007", "b": "+1", "c": 1000.0, "d": 0, "e": "1.", "f": "NaN"},
        ),
        ("<a>2024-01-01</a><b>true</b>", {"a": "2024-01-01", "b": "true"}),
        ("<a>9007199254740993</a>", {"a": 2**53 + 1}),
        ("<a>&lt;&amp;&gt;&quot;&apos;&#65;</a>", {"a": "<&>\"'A"}),
        ("<a><![CDATA[<b>]]></a><!-- not read -->", {"a": "<b>"}),
        ("<a/>", {"a": ""}),
        ("", {}),
        ("<a>\n two\n words </a>", {"a": "two\n words"}),
    ],
)
def test_documents_without_a_schema(document: str, wanted: dict[str, Any]) -> None:
    for given_document in (document, document.encode()):
        found = parse_xml(given_document)
        assert found == wanted
        assert list(map(type, found.values())) == list(map(type, wanted.values()))


def test_a_schema_says_what_text_is() -> None:
    document = "<s>5</s><n>5.0</n><d>5</d><b>true</b><t>2024-01-01T00:00:00Z</t><l>7</l>"
    found = parse_xml(document, SCHEMA)
    assert repr(list(found.values())[:4]) == "['5', 5, 5.0, True]"
    assert found["t"] == datetime(2024, 1, 1, tzinfo=UTC)
    assert found["l"] == (7,)
    assert parse_xml("<l>1</l><l></l><l>2</l>", SCHEMA) == {"l": (1, None, 2)}
    assert parse_xml("<s/><n/><d/><b/><t/>", SCHEMA) == {"s": ""}
    assert parse_xml("<d>-Infinity</d>", SCHEMA) == {"d": float("-inf")}


@pytest.mark.parametrize(
    ("document", "message"),
    [
        ("<n>x</n>", "attribute 'n': 'x'; expected int"),
        ("<n>1.5</n>", "expected int"),
        ("<b>1</b>", "expected boolean"),
        ("<n>1</n><n>2</n>", "attribute 'n' occurs 2 times; expected one int"),
        ("<a>", "not XML: mismatched tag at line 1"),
        ("<a>1</a>\n<b>2</c>", "at line 2 column 7"),
        ("</event><event>", "not XML"),
        ("loose", "text outside of elements"),
        ("<a>1</a> loose", "text outside of elements"),
        ("<a>1<b>2</b></a>", "both text and elements"),
        ("<a><b>1</b></a><a><b>2</b></a>", "a list may hold values only"),
        ("<a><b>1</b></a><a>2</a>", "a list may hold values only"),
        ("<a currency='USD'>1</a>", "write them as elements"),
        ("<a>&undeclared;</a>", "undefined entity"),
        ("<a>\ud800</a>", "surrogate"),
        (b"<a>\xff</a>", "not UTF-8"),
        (b"<?xml version='1.0' encoding='latin-1'?><a>x</a>", "encoding 'latin-1' is not read"),
        ("<a>" + "9" * 5000 + "</a>", "attribute 'a'"),
    ],
)
def test_documents_that_are_no_events_are_refused_in_one_line(document: str | bytes, message: str) -> None:
    with pytest.raises(EventError) as caught:
        parse_xml(document, SCHEMA)
    assert message in str(caught.value)
    assert "\n" not in str(caught.value)


@pytest.mark.parametrize(
    "document",
    [
        "<!DOCTYPE a><a>1</a>",
        "<!DOCTYPE a [<!ENTITY b 'c'>]><a>&b;</a>",
        "<?xml version='1.0'?><!DOCTYPE a [<!ENTITY b SYSTEM 'file:///etc/hostname'>]><a>&b;</a>",
        "<!DOCTYPE a SYSTEM 'http://localhost/x.dtd'><a>1</a>",
        "</event><!DOCTYPE a [<!ENTITY b 'c'>]><a>&b;</a>",
    ],
)
def test_no_document_may_declare_entities(document: str) -> None:
    with pytest.raises(EventError, match="DOCTYPE is not accepted"):
        parse_xml(document)


def test_size_and_depth_are_bounded() -> None:
    with pytest.raises(EventError, match="longer than 10 characters"):
        parse_xml("<a>12345</a>", limits=EventLimits(document_length=10))
    deep = "<a>" * 4 + "1" + "</a>" * 4
    assert parse_xml(deep, limits=EventLimits(depth=4)) == {"a.a.a": 1}
    with pytest.raises(EventError, match="deeper than 3"):
        parse_xml(deep, limits=EventLimits(depth=3))


TEXT = st.text(st.characters(exclude_categories=["Cs", "Cc"], exclude_characters="\ufffe\uffff"), max_size=8)


@given(TEXT)
def test_any_text_comes_back_trimmed(text: str) -> None:
    assert parse_xml(f"<s>{escape(text)}</s>", SCHEMA) == {"s": text.strip()}


PARTS = st.sampled_from(
    [
        "<a>",
        "</a>",
        "<b>",
        "</b>",
        "<b/>",
        "1",
        " x ",
        "&amp;",
        "&#0;",
        "<!--",
        "-->",
        "<![CDATA[",
        "]]>",
        "<?",
        "?>",
        "\x00",
        "é",
        "</event>",
        "<!",
    ]
)


@given(st.lists(PARTS, max_size=8).map("".join))
def test_any_document_is_an_event_or_an_event_error(document: str) -> None:
    for given_document in (document, document.encode()):
        try:
            assert isinstance(parse_xml(given_document, SCHEMA), dict)
        except EventError as error:
            assert "\n" not in str(error)  # noqa: PT017
