"""Filters of all dialects match many events as they match one, and cover what they should."""

import itertools
import json
import random
from typing import Any

import pytest
from tests.language import test_cesql, test_eventbridge, test_jms

import covey
from covey.relations import covers, equivalent
from covey.relations.merging import merge


def written(dialect: str, draw: random.Random) -> str:
    if dialect == "cesql":
        return test_cesql.written(test_cesql.drawn(draw, draw.randrange(1, 4), True))
    if dialect == "eventbridge":
        return json.dumps(test_eventbridge.drawn_pattern(draw))
    return test_jms.written(test_jms.drawn(draw, draw.randrange(4)))


def events(dialect: str, draw: random.Random) -> list[dict[str, Any]]:
    if dialect == "eventbridge":
        return [test_eventbridge.drawn_event(draw) for _ in range(40)]
    return test_cesql.EVENTS if dialect == "cesql" else test_jms.EVENTS


@pytest.mark.parametrize("dialect", ["cesql", "jms", "amqp", "eventbridge"])
def test_a_batch_matches_as_single_events_do(dialect: str) -> None:
    draw = random.Random(dialect)
    texts = {str(number): written(dialect, draw) for number in range(80)}
    index = covey.Index(dialect=dialect)
    index.add_many(texts.items())
    given = events(dialect, draw)
    found = index.match_batch(given).lists().to_pylist()
    conditions = {id: covey.parse(text, dialect=dialect) for id, text in texts.items()}
    for event, ids in zip(given, found, strict=True):
        wanted = {id for id, condition in conditions.items() if condition.matches(event)}
        assert set(ids) == wanted, event
        assert set(index.match(event)) == wanted, event


@pytest.mark.parametrize("dialect", ["cesql", "jms", "eventbridge"])
def test_covering_is_sound(dialect: str) -> None:
    draw = random.Random(dialect)
    given = events(dialect, draw)
    conditions = [covey.parse(written(dialect, draw), dialect=dialect) for _ in range(24)]
    answers = [[condition.matches(event) for event in given] for condition in conditions]
    covered = 0
    for f, of_f in zip(conditions, answers, strict=True):
        for g, of_g in zip(conditions, answers, strict=True):
            if f is not g and f.covers(g):
                covered += 1
                assert all(one or not other for one, other in zip(of_f, of_g, strict=True)), (str(f), str(g))
    assert covered


ATTRIBUTES = ("subject", "type", "level")
VALUES = ("a", "ab", "b", "c")


def alike(draw: random.Random) -> dict[str, str]:
    """The same condition in each dialect: of some attributes that they have one of some texts, or begin with one."""
    chosen = {name: draw.sample(VALUES, draw.randrange(1, 4)) for name in draw.sample(ATTRIBUTES, draw.randrange(1, 3))}
    begins = draw.random() < 0.3

    def tests(one: str, many: str) -> str:
        written = []
        for name, values in chosen.items():
            if begins:
                written.append("(" + " OR ".join(one.format(name, value) for value in values) + ")")
            else:
                written.append(many.format(name, ", ".join(f"'{value}'" for value in values)))
        return " AND ".join(written)

    sql = tests("{} LIKE '{}%'", "{} IN ({})")
    pattern = {n: [{"prefix": value} if begins else value for value in values] for n, values in chosen.items()}
    named = {(f"{n}|startswith" if begins else n) + "|cased": values for n, values in chosen.items()}
    rule = {"title": "A rule", "logsource": {"product": "any"}, "detection": {"s": named, "condition": "s"}}
    return {
        **dict.fromkeys(("sql", "cesql", "jms", "amqp"), sql), "eventbridge": json.dumps(pattern),
        "sigma": json.dumps(rule),
    }  # fmt: skip


WORLD = [
    {name: value for name, value in zip(ATTRIBUTES, values, strict=True) if value is not None}
    for values in itertools.product((None, *VALUES), repeat=len(ATTRIBUTES))
]


def test_rules_of_unlike_dialects_cover_each_other_and_merge() -> None:
    """All mean the same of texts; only CloudEvents SQL has a term for `level`, which it casts."""
    pytest.importorskip("sigma", reason="pySigma is the extra sigma, which is not installed")
    schema = covey.Schema(dict.fromkeys(ATTRIBUTES, "string"))
    draw = random.Random(5)
    for _ in range(6):
        written, others = alike(draw), alike(draw)
        filters = {dialect: covey.parse(text, dialect=dialect) for dialect, text in written.items()}
        wanted = [filters["sql"].matches(event) for event in WORLD]
        for dialect, condition in filters.items():
            assert covey.parse(str(condition)) == condition
            assert [condition.matches(event) for event in WORLD] == wanted, (dialect, str(condition))
            other = covey.parse(others[dialect], dialect=dialect)
            merged = merge([filters["sql"], other], schema=schema, imperfect=True).filter
            assert all(merged.matches(event) for event in WORLD if condition.matches(event) or other.matches(event))
            for more in written:
                narrow = filters[more] & covey.parse(others[more], dialect=more)
                if "level" not in written["sql"] or "cesql" not in (dialect, more):
                    assert covers(condition, narrow, schema=schema), (str(condition), str(narrow))
            if dialect != "cesql":
                assert equivalent(condition, filters["sql"], schema=schema), (dialect, str(condition))
