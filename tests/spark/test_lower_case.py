"""Lower case is Spark's lower case: every character alone, and texts in which a sigma may end a word."""

from __future__ import annotations

import random

import pyarrow as pa
import pytest
from pyspark.sql import SparkSession

import covey
from covey.filters.cases import _STAND_INS, lower, upper_cases

CHARACTERS = [chr(code) for code in range(1, 0x20000) if not 0xD800 <= code < 0xE000]


def _lowered(spark: SparkSession, texts: list[str]) -> list[str]:
    table = spark.createDataFrame(pa.table({"place": range(len(texts)), "text": texts}))
    return [row[0] for row in table.orderBy("place").selectExpr("lower(text)").collect()]


def _differ(spark: SparkSession, texts: list[str]) -> list[tuple[str, str]]:
    return [
        (ascii(text), ascii(its)) for text, its in zip(texts, _lowered(spark, texts), strict=True) if lower(text) != its
    ]


def test_every_character_has_the_lower_case_that_it_has_on_spark(spark: SparkSession) -> None:
    assert _differ(spark, CHARACTERS) == []


def test_a_sigma_ends_a_word_where_it_does_on_spark(spark: SparkSession) -> None:
    rng = random.Random(5)
    new = [chr(code) for code in _STAND_INS]
    cased = [one for one in CHARACTERS if lower(one) != one or upper_cases(one)]
    around = [*"aA.'- \u00ad\u200d\u0301\u0307\u02b0İIΣσς", *rng.sample(CHARACTERS, 300)]

    def character() -> str:
        pool = rng.choice([new, cased, around, "Σ", "ΣİK"])
        return rng.choice(pool)

    texts = ["".join(character() for _ in range(rng.randint(1, 9))) for _ in range(20_000)]
    texts += [text for one in new for text in (one + "Σ", "a" + one + "Σ", "aΣ" + one, "aΣ" + one + "a")]
    assert _differ(spark, texts) == []
    assert any("ς" in lower(text) for text in texts)


@pytest.mark.parametrize("quantified", [False, True])
def test_ilike_matches_what_it_matches_on_spark(spark: SparkSession, quantified: bool) -> None:
    rng = random.Random(6)
    pieces = ["a", "A", "Σ", "σ", "ς", "İ", "i", "I", "\u0307", "K", "k", "ẞ", "ß", "%", "_", "\\%", "\n", "é", "É"]
    texts = [
        "".join(rng.choice([*pieces[:-6], "\n", "é", "É", "%"]) for _ in range(rng.randint(0, 4))) for _ in range(400)
    ]
    patterns = ["".join(rng.choice(pieces) for _ in range(rng.randint(0, 4))) for _ in range(60)]
    conditions = [covey.filters.attr("text").ilike(pattern) for pattern in patterns]
    rules = [str(~one if rng.random() < 0.3 else one) for one in conditions]
    if quantified:
        listed = [
            f"({', '.join(rng.sample([rule.split('ILIKE ')[1] for rule in rules] + ['NULL'], 3))})" for _ in rules
        ]
        words = ["LIKE ANY", "NOT LIKE ANY", "ILIKE ALL", "NOT ILIKE ALL", "ILIKE SOME", "NOT LIKE ALL", "LIKE ALL"]
        rules = [f"text {rng.choice(words)} {patterns}" for patterns in listed]
    index = covey.Index()
    index.add_many([(str(at), rule) for at, rule in enumerate(rules)])
    mine = {
        (at, one)
        for at, found in enumerate(index.match_batch([{"text": one} for one in texts]).to_pylist())
        for one in found
    }
    events = spark.createDataFrame(pa.table({"key": range(len(texts)), "text": texts}))
    flags = events.selectExpr("key", *(f"({rule}) AS r{at}" for at, rule in enumerate(rules))).collect()
    theirs = {(row["key"], str(at)) for row in flags for at in range(len(rules)) if row[f"r{at}"]}
    assert mine == theirs
    assert len(theirs) > 100
