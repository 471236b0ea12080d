"""With a schema, constants are converted to the attributes' types as Spark's analyser does, or refused."""

from __future__ import annotations

from datetime import UTC, datetime
from typing import Any

import pytest

import covey
from covey.errors import CoveyError, FilterTypeError
from covey.relations.exact import covers

SCHEMA = covey.Schema(
    {
        "day": "timestamp",
        "amount": "int",
        "price": "double",
        "halted": "boolean",
        "code": "string",
        "sizes": "list<int>",
    }
)
DAY = datetime(1999, 12, 31, tzinfo=UTC)


@pytest.mark.parametrize(
    ("text", "as_read", "event"),
    [
        ("day < '2000-01-01'", "day < TIMESTAMP '2000-01-01 00:00:00Z'", {"day": DAY}),
        ("amount = '5'", "amount = 5", {"amount": 5}),
        ("amount IN (' 5 ', '6')", "amount IN (5, 6)", {"amount": 6}),
        ("price BETWEEN '1' AND '2.5'", "price BETWEEN 1.0 AND 2.5", {"price": 2.5}),
        ("halted = 'yes'", "halted = TRUE", {"halted": True}),
        ("code = 5", "CAST(code AS BIGINT) = 5", {"code": "05"}),
        ("code > 1.5", "CAST(code AS DOUBLE) > 1.5", {"code": "1.6"}),
        (
            "code < DATE '2000-01-01'",
            "CAST(code AS TIMESTAMP) < TIMESTAMP '2000-01-01 00:00:00Z'",
            {"code": "1999-12-31"},
        ),
        ("array_contains(sizes, '5')", "array_contains(sizes, 5)", {"sizes": [5]}),
        ("NOT amount = '5' OR amount IS NULL", "NOT amount = 5 OR amount IS NULL", {}),
    ],
)
def test_constants_are_read_as_the_attributes_type(text: str, as_read: str, event: dict[str, Any]) -> None:
    assert str(SCHEMA.check(covey.parse(text))) == as_read
    assert str(SCHEMA.read(SCHEMA.read(covey.parse(text)))) == as_read
    index = covey.Index(schema=SCHEMA)
    index.add("one", text)
    index.add_many([("many", text)])
    assert index.match(event) == ["one", "many"]
    index.compact()
    assert index.match(event) == ["one", "many"]
    assert index.match_batch([event, {"amount": 7, "code": "x"}]).to_pylist()[0] == ["one", "many"]


@pytest.mark.parametrize(
    "text",
    ["amount = 'x'", "amount = '5.5'", "day < 'soon'", "halted = 'maybe'", "halted = 1", "day = 5", "amount = TRUE"],
)
def test_a_constant_that_cannot_be_is_an_error(text: str) -> None:
    with pytest.raises(FilterTypeError):
        SCHEMA.check(covey.parse(text))
    index = covey.Index(schema=SCHEMA)
    with pytest.raises(CoveyError):
        index.add("x", text)


def test_relations_read_constants_alike() -> None:
    assert covers(covey.parse("amount > '4'"), covey.parse("amount = 5"), schema=SCHEMA)
