"""On Spark a rule means what `events.where(rule)` means, or it is refused: for random conditions over all types."""

from __future__ import annotations

import os
import random
from collections import Counter

import pytest
from pyspark.errors import AnalysisException, PySparkException
from pyspark.sql import DataFrame, SparkSession
from pyspark.sql import functions as F  # noqa: N812

from covey.spark import match_events
from tests.spark.random_conditions import Conditions, table

PAIRS = int(os.environ.get("COVEY_SPARK_PAIRS", "100000"))
ROWS = 150
CONDITIONS = 200
ASKED_ALONE = 4


def by_spark(events: DataFrame, condition: str, rng: random.Random) -> tuple[set[int], set[int]] | None:
    """The rows for which a condition holds and those that were asked for; None where Spark refuses it. Where it raises
    on some row, a few rows are asked for one by one."""
    try:
        asked = events.where(condition).select("k")
        return {row.k for row in asked.collect()}, set(range(ROWS))
    except AnalysisException:
        return None
    except PySparkException:
        holds: set[int] = set()
        answered: set[int] = set()
        for key in rng.sample(range(ROWS), ASKED_ALONE):
            try:
                holds.update(row.k for row in asked.where(F.col("k") == key).collect())
                answered.add(key)
            except PySparkException:
                pass
        return holds, answered


def differences(spark: SparkSession, seed: int, count: int) -> tuple[list[str], Counter[str]]:
    """What covey answers otherwise than Spark, and how often each outcome was."""
    rng = random.Random(seed)
    events = table(spark, rng, ROWS)
    drawn = {f"r{number:05}": Conditions(rng).condition() for number in range(count)}
    rules = spark.createDataFrame(list(drawn.items()), "id string, filter string")
    matched, errors = match_events(events, rules, on_error="collect")
    refused = {row.id: row.error for row in errors.collect()}
    found: dict[str, set[int]] = {name: set() for name in drawn}
    for row in matched.select("k", "subscriptions").collect():
        for name in row.subscriptions:
            found[name].add(row.k)
    wrong: list[str] = []
    outcomes: Counter[str] = Counter()
    for name, text in drawn.items():
        answer = by_spark(events, text, rng)
        if answer is None:
            outcomes["refused by Spark"] += 1
            if name not in refused:
                wrong.append(f"taken, refused by Spark: {text}")
        elif name in refused:
            outcomes["refused"] += 1
            outcomes[f"refused: {refused[name]}: {text}"] += 1
        else:
            holds, answered = answer
            outcomes["pairs"] += len(answered)
            outcomes["held"] += len(holds)
            differ = sorted((holds ^ found[name]) & answered)
            if differ:
                wrong.append(f"{text}: rows {differ[:5]}, by Spark {differ[0] in holds}")
    return wrong, outcomes


def check(outcomes: Counter[str], wrong: list[str], count: int) -> None:
    assert not wrong, "\n".join(sorted(wrong, key=len)[:20])
    shown = [text for text in outcomes if text.startswith("refused: ")]
    assert outcomes["refused"] <= 0.02 * (count - outcomes["refused by Spark"]), "\n".join(shown)
    assert outcomes["pairs"] >= 60 * count
    assert 0.02 < outcomes["held"] / outcomes["pairs"] < 0.98


NAMED_TWICE = (
    "coalesce(- w, 2.5) BETWEEN -9 AND 3", "- w NOT BETWEEN 2 AND 3", "nullif(- w, 2.5) < 2",
    "nullif(- w, 5) BETWEEN nullif(- w, 7) AND 3",
)  # fmt: skip


def test_what_fails_where_spark_computes_a_value_beforehand_fails_for_its_row_alone(spark: SparkSession) -> None:
    """Of decimals with more than 34 digits `-` rounds, which overflows for the largest."""
    events = spark.sql(f"SELECT k, CAST(w AS DECIMAL(38, 0)) AS w FROM VALUES (1, '{'9' * 38}'), (2, '5') AS t(k, w)")
    rules = spark.createDataFrame([(text, text) for text in NAMED_TWICE], "id string, filter string")
    found = {row.k: row.subscriptions for row in match_events(events, rules).collect()}
    wanted = [text for text in NAMED_TWICE if events.where("k = 2").where(text).count()]
    assert found == {1: [], 2: sorted(wanted)}
    assert len(wanted) == len(NAMED_TWICE)


def test_random_conditions_hold_for_the_rows_for_which_spark_says_so(spark: SparkSession) -> None:
    wrong, outcomes = differences(spark, 1, 30)
    check(outcomes, wrong, 30)


@pytest.mark.long
@pytest.mark.parametrize("seed", range(max(1, PAIRS // (CONDITIONS * ROWS * 2 // 3))))
def test_a_hundred_thousand_pairs_of_condition_and_row_agree_with_spark(spark: SparkSession, seed: int) -> None:
    wrong, outcomes = differences(spark, 100 + seed, CONDITIONS)
    check(outcomes, wrong, CONDITIONS)
