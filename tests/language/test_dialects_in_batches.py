"""Filters of all dialects match many events as they match one, and cover what they should."""

import json
import random
from typing import Any

import pytest
from tests.language import test_cesql, test_eventbridge, test_jms

import covey


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
