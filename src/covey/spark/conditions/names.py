"""Names of columns as Spark resolves them: without case unless the session says otherwise, part by part.

A name must be one of the table's: Spark would also find hidden columns and session variables, which a rule has no
business with. Where a part of a dotted name has a dot itself, which covey prints without backquotes, the parts are put
together where that alone gives a column. A table's name or alias in front of a column is looked for first, as by Spark.
"""

from __future__ import annotations

import difflib
from typing import Final

from pyspark.errors import PySparkException
from pyspark.sql import DataFrame
from pyspark.sql.types import ArrayType, DataType, MapType, StructType, VariantType

from covey.errors import FilterError
from covey.spark.conditions import syntax
from covey.spark.conditions.functions import REFUSED

_SCALARS: Final = frozenset(
    {"byte", "short", "integer", "long", "float", "double", "string", "boolean", "date", "timestamp", "timestamp_ntz",
     "decimal"}
)  # fmt: skip

_MOST_QUALIFIERS: Final = 200
"""Names in front of columns that Spark is asked about; each takes milliseconds, and rules may have any."""


def is_scalar(kind: DataType) -> bool:
    """Whether covey reads such a column."""
    return kind.typeName() in _SCALARS


def is_case_sensitive(events: DataFrame) -> bool:
    """Whether names know case in the session."""
    return str(events.sparkSession.conf.get("spark.sql.caseSensitive", "false")).lower() == "true"


class Names:
    """The names of a table's columns."""

    def __init__(self, events: DataFrame) -> None:
        self._events = events
        self._schema = events.schema
        self._case_sensitive = is_case_sensitive(events)
        self._qualifiers: dict[tuple[str, ...], bool] = {}

    def _same(self, one: str, other: str) -> bool:
        return one == other if self._case_sensitive else one.lower() == other.lower()

    def resolved(self, tree: syntax.Node) -> syntax.Node:
        """A tree whose names are spelled as the table spells them; a name that it hasn't is an error."""
        if isinstance(tree, syntax.Name):
            return syntax.Name(self._column(tree.parts))
        return syntax.rebuilt(tree, self.resolved)

    def _is_qualifier(self, parts: tuple[str, ...]) -> bool:
        """Whether it is what the table is called, alone or behind its catalog and schema."""
        if parts not in self._qualifiers:
            if len(self._qualifiers) >= _MOST_QUALIFIERS:
                return False
            try:
                found = self._events.select(".".join(map(syntax.quoted, parts)) + ".*").columns
                self._qualifiers[parts] = found == self._events.columns
            except PySparkException:
                self._qualifiers[parts] = False
        return self._qualifiers[parts]

    def _column(self, parts: tuple[str, ...]) -> tuple[str, ...]:
        for taken in range(1, min(len(parts), 4)):
            if self._is_qualifier(parts[:taken]):
                parts = parts[taken:]
                break
        for taken in range(1, len(parts) + 1):
            head = ".".join(parts[:taken])
            found = [field for field in self._schema.fields if self._same(field.name, head)]
            if len(found) > 1:
                spelled = ", ".join(field.name for field in found)
                raise FilterError(f"the name {head!r} stands for {len(found)} columns ({spelled}); rename all but one")
            if found:
                return (found[0].name, *self._inside(found[0].dataType, parts[taken:]))
        if len(parts) == 1 and parts[0].lower() in REFUSED:
            raise FilterError(f"{parts[0]} is not allowed in a rule: {REFUSED[parts[0].lower()]}")
        near = difflib.get_close_matches(parts[0], self._schema.names, 1)
        has = f"did you mean {near[0]}?" if near else f"they have {', '.join(self._schema.names[:10])}"
        raise FilterError(f"the events have no column {'.'.join(parts)!r}; {has}")

    def _inside(self, kind: DataType, parts: tuple[str, ...]) -> tuple[str, ...]:
        if not parts:
            return ()
        if isinstance(kind, ArrayType):
            kind = kind.elementType
        if isinstance(kind, MapType) and not isinstance(kind.valueType, (StructType, MapType, ArrayType, VariantType)):
            return (".".join(parts),)
        if not isinstance(kind, StructType):
            inner = kind.valueType if isinstance(kind, MapType) else kind
            return (parts[0], *self._inside(inner, parts[1:]))
        for taken in range(1, len(parts) + 1):
            found = [field for field in kind.fields if self._same(field.name, ".".join(parts[:taken]))]
            if len(found) == 1:
                return (found[0].name, *self._inside(found[0].dataType, parts[taken:]))
        return parts  # Spark says what is wrong

    def dotted(self, node: syntax.Node) -> str | None:
        """The dotted path of a plain column or field; None for a term."""
        if not isinstance(node, syntax.Name) or any("." in part for part in node.parts):
            return None
        kind: DataType = self._schema
        for part in node.parts:
            if not isinstance(kind, StructType):
                return None
            kind = kind[part].dataType
        return None if isinstance(kind, VariantType) else ".".join(node.parts)

    def char_length(self, node: syntax.Node) -> int | None:
        """The length of a CHAR column, to which Spark pads what it is compared with."""
        if not isinstance(node, syntax.Name):
            return None
        declared = str(self._schema[node.parts[0]].metadata.get("__CHAR_VARCHAR_TYPE_STRING", ""))
        if "char(" not in declared.replace("varchar(", ""):
            return None
        return int(declared[5:-1]) if len(node.parts) == 1 and declared.startswith("char(") else -1
