"""What a table's schema says of attributes, for filters of dialects without types. No Spark runs here."""

import pytest

pytest.importorskip("pyspark")

from pyspark.sql.types import ArrayType, BinaryType, DoubleType, IntegerType, StringType, StructType, TimestampType

import covey
from covey.filters.fitting import fitted
from covey.spark.known_types import known_types

TEXT = StringType()
DETAIL = StructType().add("state", TEXT).add("cpu", DoubleType())
DETAIL = DETAIL.add("disks", ArrayType(StructType().add("kind", TEXT)))
SCHEMA = StructType().add("source", TEXT).add("Count", IntegerType()).add("tags", ArrayType(TEXT))
SCHEMA = SCHEMA.add("at", TimestampType()).add("raw", BinaryType()).add("x", TEXT).add("X", TEXT).add("detail", DETAIL)


def test_names_are_found_whatever_their_case_unless_that_is_ambiguous() -> None:
    types = known_types(SCHEMA)
    kinds = {name: found and found.kind.value for name in ("source", "COUNT", "detail.State") if (found := types(name))}
    assert kinds == {"source": "string", "COUNT": "number", "detail.State": "string"}
    assert types("raw") is types("nothing") is types("detail") is None
    assert types("x") is not None
    tags = types("tags")
    assert tags is not None
    assert tags.element is not None
    assert tags.element.kind.value == "string"


def test_a_pattern_is_cut_to_what_the_columns_can_be() -> None:
    pattern = covey.parse(
        '{"source": ["a", "b"], "tags": ["t"], "Count": [5, "5"], "detail": {"state": [{"anything-but": "off"}]}}',
        dialect="eventbridge",
    )
    assert str(fitted(pattern, known_types(SCHEMA), columns=True)) == (
        "source IN ('a', 'b') AND array_contains(tags, 't') AND Count = 5 AND "
        "detail.state IS NOT NULL AND (detail.state IN ('off')) IS NOT TRUE"
    )
