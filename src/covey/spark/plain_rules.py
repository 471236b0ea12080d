"""Rules that covey's own bulk reader may read on Spark, because it reads them as Spark does.

A million rules are read by kernels in seconds; the reader of `covey.spark.conditions` builds trees in Python. So a rule
goes the quick way where its text holds nothing that the two read differently (no function, no cast, no number that
Spark might round), and each of its attributes is a column that its constants can be compared with as they are. Two
regular expressions over all texts decide the first, what the index was compiled to the second.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import Final

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc
from numpy.typing import NDArray
from pyspark.sql import DataFrame
from pyspark.sql.types import (
    BooleanType,
    DataType,
    DecimalType,
    DoubleType,
    FloatType,
    IntegralType,
    StructField,
    StructType,
)

from covey.kernels.opcodes import BOOLEAN, NUMBER, STRING
from covey.spark.conditions.comparing import is_plain_text
from covey.spark.conditions.names import is_case_sensitive, is_scalar
from covey.spark.conditions.syntax import quoted

_TEXTS: Final = r"'[^'\\]*'"
_GROUPS: Final = r"(?i)\b(and|or|not|in)\s*\("
_UNSURE: Final = (
    r"[^A-Za-z0-9_\s(),<>=!.'-]"  # arithmetic, backquotes, other alphabets, escapes
    r"|[\w)']\s*-|-\s*-|\w\s*\(|'\s*'"  # differences, comments, functions, texts side by side
    r"|\b\d+(?:\.\d*)?[A-Za-z_]|\b\d{16}|\.\d{16}"  # exponents and suffixes, many digits
    r"|(?i:\b(?:date|timestamp\w*|time|interval|case|cast|rlike|regexp|ilike|any|some|all|escape|collate|distinct|div"
    r"|select|from|current_\w+|session_user|user|localtime\w*|r|x)\b)"
)
_WHOLE_DIGITS: Final = 34
"""Digits of an integer that compiled indexes tell from its neighbours."""


def plain_texts(texts: pa.Array) -> NDArray[np.bool_]:
    """For each text whether covey's reading of it is Spark's, if its attributes are columns of fitting types."""
    column = pc.replace_substring_regex(texts, _TEXTS, "'")
    column = pc.replace_substring_regex(column, _GROUPS, "(")
    unsure = pc.fill_null(pc.match_substring_regex(column, _UNSURE), True)
    found: NDArray[np.bool_] = ~unsure.to_numpy(zero_copy_only=False)
    return found


class Fields:
    """A table's columns and fields of structs that covey reads as they are, by dotted names.

    A name that stands for two columns is none here, nor is one that is spelled otherwise than the column, nor a CHAR
    column, to whose length Spark pads constants: rules with them are read one by one.
    """

    def __init__(self, schema: StructType, *, case_sensitive: bool = False) -> None:
        self._case_sensitive = case_sensitive
        self._found: dict[str, tuple[str, str, DataType] | None] = {}
        for column in schema.fields:
            if "char(" not in str(column.metadata.get("__CHAR_VARCHAR_TYPE_STRING", "")):
                self._add(column, "", "")

    @classmethod
    def of(cls, events: DataFrame) -> Fields:
        """Those of a DataFrame, as its session resolves names."""
        return cls(events.schema, case_sensitive=is_case_sensitive(events))

    def _key(self, name: str) -> str:
        return name if self._case_sensitive else name.lower()

    def _add(self, field: StructField, prefix: str, within: str) -> None:
        name, sql = f"{prefix}{field.name}", f"{within}{quoted(field.name)}"
        key = self._key(name)
        if isinstance(field.dataType, StructType):
            for inner in field.dataType.fields:
                self._add(inner, f"{name}.", f"{sql}.")
        elif "." in field.name or key in self._found:
            self._found[key] = None
        else:
            self._found[key] = name, sql, field.dataType

    def type_of(self, name: str) -> DataType | None:
        """The type of a column; None where there is no such column, or where covey doesn't read it."""
        found = self._found.get(self._key(name))
        return None if found is None or found[0] != name or not is_scalar(found[2]) else found[2]

    def sql(self, name: str) -> str:
        """The column as Spark names it."""
        found = self._found[self._key(name)]
        assert found is not None
        return found[1]


def unfit(constants: Mapping[str, frozenset[int]], fields: Fields) -> set[str]:
    """Attributes that aren't columns with types that all of their constants can be compared with."""
    wrong: set[str] = set()
    for name, kinds in constants.items():
        kind = fields.type_of(name)
        if kind is None or not kinds <= _comparable(kind):
            wrong.add(name)
    return wrong


def _comparable(kind: DataType | None) -> set[int]:
    match kind:
        case IntegralType() | FloatType() | DoubleType():
            return {NUMBER}
        case DecimalType() if kind.scale == 0 and kind.precision <= _WHOLE_DIGITS:
            return {NUMBER}
        case BooleanType():
            return {BOOLEAN}
    return {STRING} if kind is not None and is_plain_text(kind) else set()
