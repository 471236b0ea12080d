"""Terms computed where they are asked for: the same as their columns, and as the interpreter says."""

from __future__ import annotations

import random

import pyarrow as pa
import pytest

import covey
from covey.events import columns
from covey.events.columns import Columns
from covey.filters import Predicate

WHOLE = [0, 1, -1, 2, 3, 2**31, 2**52, 2**53, 2**53 + 1, 2**62, 2**63 - 1, -(2**63), None]
DOUBLES = [0.0, -0.0, 0.1, 1.5, -2.0, 1e300, -1e300, 5e-324, float("inf"), float("-inf"), float("nan"), None]
CONSTANTS = ["0", "1", "3", "0.1", "2.50", "(-7)", "1e10", "9007199254740993", "0.000001"]
OPERATORS = ["+", "-", "*", "/"]


def _expression(rng: random.Random, depth: int) -> str:
    if depth == 0 or rng.random() < 0.2:
        return rng.choice(["i", "j", "x", "y", *rng.sample(CONSTANTS, 2)])
    if rng.random() < 0.1:
        return f"(-{_expression(rng, depth - 1)})"
    return f"({_expression(rng, depth - 1)} {rng.choice(OPERATORS)} {_expression(rng, depth - 1)})"


def _batch(rng: random.Random, rows: int, small: bool, keys: str = "abc") -> pa.Table:
    whole = [number for number in WHOLE if number is None or not small or abs(number) < 2**32]
    return pa.table(
        {
            "k": pa.array([rng.choice(keys) for _ in range(rows)]),
            "i": pa.array([rng.choice(whole) for _ in range(rows)], pa.int64()),
            "j": pa.array([rng.choice(whole[:5]) for _ in range(rows)], pa.int64()),
            "x": pa.array([rng.choice(DOUBLES) for _ in range(rows)], pa.float64()),
            "y": pa.array([rng.uniform(-5, 5) for _ in range(rows)], pa.float64()),
        }
    )


def _term(text: str) -> str:
    predicate = covey.parse(text)
    assert isinstance(predicate, Predicate)
    return predicate.attribute


def _as_formulas(batch: pa.Table, names: list[str]) -> Columns:
    return columns(batch, names, if_asked=names)


@pytest.mark.parametrize("keys", ["abc", "".join(chr(ord("a") + n) for n in range(120))], ids=["words", "one by one"])
@pytest.mark.parametrize("seed", range(4))
def test_formulas_match_as_the_interpreter_says(seed: int, keys: str) -> None:
    # With few keys many events come to a rule together, with many they come one by one.
    rng = random.Random(seed)
    rules: list[tuple[str, str]] = []
    while len(rules) < 300:
        comparison = rng.choice(["<", "<=", "=", ">", ">="])
        other = _expression(rng, 1) if rng.random() < 0.3 else rng.choice(CONSTANTS)
        test = f"{_expression(rng, 3)} {comparison} {other}"
        text = f"k = '{rng.choice(keys)}' AND {rng.choice([test, test, f'NOT {test}', f'({test} OR y > 4)'])}"
        rules.append((str(len(rules)), text))
    index = covey.Index()
    index.add_many(rules)
    batch = _batch(rng, 120, small=seed % 2 == 0, keys=keys)
    events = [{k: v for k, v in event.items() if v is not None} for event in batch.to_pylist()]
    filters = [(id, covey.parse(text)) for id, text in rules]
    wanted = [[id for id, condition in filters if condition.matches(event)] for event in events]
    assert index.match_batch(batch).to_pylist() == wanted


def test_arithmetic_on_numbers_is_a_formula_and_the_rest_is_computed() -> None:
    names = [
        _term(text)
        for text in ("x * 2 + i > 1", "i * 0.25 - y > 1", "i - j < 4", "-x > 3", "round(x) > 1", "k || 'a' > 'b'")
    ]
    found = _as_formulas(_batch(random.Random(1), 50, small=True), names)
    assert found.formulas is not None
    assert list(found.formulas.steps) == names[:4]
    assert all(name in found.pieces for name in names[4:])


def test_a_term_that_most_events_ask_for_becomes_a_column() -> None:
    # An event comes to some four of the rules, which all ask for one term.
    rng = random.Random(3)
    batch = _batch(rng, 2_000, small=True)
    ends = [(n % 8 - 5, n % 8 - 3) for n in range(60)]
    rules = [
        (str(n), f"k = '{'abc'[n % 3]}' AND y BETWEEN {low} AND {high} AND j * 3 + i > {n % 9}")
        for n, (low, high) in enumerate(ends)
    ]
    index = covey.Index()
    index.add_many(rules)
    found = index.match_batch(batch).to_pylist()
    filters = [(id, covey.parse(text)) for id, text in rules]
    for event, ids in zip(batch.to_pylist(), found, strict=True):
        given = {name: value for name, value in event.items() if value is not None}
        assert ids == [id for id, condition in filters if condition.matches(given)]
    segment = index.parts()[0].segment
    given_columns = _as_formulas(batch, list(segment.names))
    encoded = segment.encoder.prepare(given_columns)
    segment.match_chunk(given_columns, encoded, 0, 512)
    assert encoded.formulas.asked_more_than(512) == [_term("j * 3 + i > 1")]


def test_where_a_sum_may_overflow_its_column_is_computed() -> None:
    small, large = pa.table({"i": [1, 2]}), pa.table({"i": [1, 2**62]})
    name = _term("i + i > 3")
    assert _as_formulas(small, [name]).formulas is not None
    assert _as_formulas(large, [name]).formulas is None
    index = covey.Index()
    index.add_many([("a", "i + i > 3"), ("b", "i + i < 3")])
    assert index.match_batch(large).to_pylist() == [["b"], []]  # beyond 64 bits it is unknown
