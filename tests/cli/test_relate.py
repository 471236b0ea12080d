"""`covey relate`: how two filters relate, in words and as JSON."""

from __future__ import annotations

import json
from collections.abc import Callable
from pathlib import Path

import pytest

from covey import relate
from covey.language import parse
from tests.cli.conftest import Outcome

Run = Callable[..., Outcome]


@pytest.mark.parametrize(
    ("a", "b", "sentence"),
    [
        ("price < 10", "price < 5", "A covers B: every event that matches B matches A."),
        ("price < 5", "price < 10", "B covers A: every event that matches A matches B."),
        ("price < 5", "NOT price >= 5", "A and B are equivalent: they match the same events."),
        ("price < 5", "price > 9", "A and B are disjoint: no event matches both."),
        ("price < 5", "price > 3", "A and B overlap: some events match both, some only one of them."),
        ("price < 5", "price < 3 AND price > 4", "A covers B (which no event matches)"),
        ("s RLIKE '\\\\bA'", "s RLIKE '\\\\bA\\\\b'", "How A and B relate could not be decided."),
    ],
)
def test_the_relation_is_one_sentence(covey: Run, a: str, b: str, sentence: str) -> None:
    done = covey("relate", a, b)
    assert (done.code, done.err) == (0, "")
    assert done.out.startswith(sentence)


def test_events_show_what_tells_the_filters_apart(covey: Run) -> None:
    a, b = "price < 10 OR s LIKE 'a%z'", "price < 5"
    done = covey("relate", a, b)
    shown = dict(line.strip().split(": ", 1) for line in done.out.splitlines()[1:])
    assert list(shown) == ["matches A, not B", "matches both"]
    only, both = (json.loads(event) for event in shown.values())
    assert parse(a).matches(only)
    assert not parse(b).matches(only)
    assert parse(a).matches(both)
    assert parse(b).matches(both)


def test_the_relation_as_json(covey: Run) -> None:
    row = covey("relate", "at > TIMESTAMP '2024-01-31 12:00:00'", "--json", "array_contains(l, 1)").rows[0]
    assert (row["covers"], row["covered"], row["equivalent"], row["overlaps"]) == (False, False, False, True)
    assert row["both"]["l"] == [1]
    assert row["only_a"]["at"].startswith("20")


def test_the_semantics_and_the_schema_count(covey: Run, tmp_path: Path) -> None:
    always = ("x < 5 OR NOT x < 5", "y = 1")
    assert covey("relate", *always).out.startswith("A and B overlap")
    assert covey("relate", *always, "--semantics", "simple").out.startswith("A covers B")
    schema = tmp_path / "schema.json"
    schema.write_text('{"attributes": {"n": {"type": "int"}}}')
    assert covey("relate", "n = 4", "n > 3 AND n < 5", "--schema", schema).out.startswith("A and B are equivalent")


def test_a_mistake_has_a_caret(covey: Run) -> None:
    done = covey("relate", "price < 5", "price => 5")
    assert done.code == 1
    assert done.err == "covey: => is not an operator; did you mean >=?\n  price => 5\n        ^\n"
    assert covey("relate", "price < 5").code == 1


def test_a_relation_prints_as_the_command_does(covey: Run) -> None:
    texts = "at > TIMESTAMP '2026-01-01'", "at > TIMESTAMP '2026-01-02'"
    found = str(relate(*texts))
    assert covey("relate", *texts).out == f"{found}\n"
    assert found.startswith("A covers B: every event that matches B matches A.\n")
    assert '  matches A, not B: {"at": "2026-01-0' in found
