"""The types of subscriptions' ids: an index has texts, and a stream's result has what its changes have.

The result's columns are fixed when a stream begins, so the type is that of the table of subscriptions, or of the first
change file that is there, and it is kept in the checkpoint. An id of another type is a bad change: 7 and '7' would be
one subscription in the index and two to whoever wrote them.
"""

from __future__ import annotations

from datetime import date, datetime
from decimal import Decimal
from typing import Any, Final

import pyarrow as pa

STRING: Final = "string"
_BITS: Final = {"tinyint": 8, "smallint": 16, "int": 32, "bigint": 64}
_ARROW: Final = {
    pa.int8(): "tinyint", pa.int16(): "smallint", pa.int32(): "int", pa.int64(): "bigint", pa.bool_(): "boolean",
    pa.date32(): "date",
}  # fmt: skip


def id_text(value: Any, kind: str) -> str | None:
    """An id as the index has it, as Spark would write it; None where it isn't of the type."""
    if kind == STRING:
        return value if isinstance(value, str) and value else None
    if kind in _BITS:
        most = 1 << (_BITS[kind] - 1)
        return str(value) if type(value) is int and -most <= value < most else None
    if kind == "boolean":
        return str(value).lower() if isinstance(value, bool) else None
    if kind == "date":
        return value.isoformat() if isinstance(value, date) and not isinstance(value, datetime) else None
    return format(value, "f") if isinstance(value, Decimal) and kind.startswith("decimal") else None


def type_in_arrow(kind: pa.DataType) -> str:
    """The type of ids in a Parquet file."""
    if pa.types.is_decimal(kind):
        return f"decimal({kind.precision},{kind.scale})"
    return _ARROW.get(kind, STRING)


def type_in_json(value: Any) -> str:
    """The type of an id in a line of JSON."""
    return "boolean" if isinstance(value, bool) else "bigint" if isinstance(value, int) else STRING
