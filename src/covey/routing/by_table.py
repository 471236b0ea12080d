"""The two tables that brokers keep of each other: subscriptions and advertisements."""

from __future__ import annotations

from collections.abc import Iterator
from enum import IntEnum
from typing import Generic, NamedTuple, TypeVar

Value = TypeVar("Value")


class Table(IntEnum):
    """Which of the two. The numbers are those of messages and of the journal."""

    SUBSCRIPTIONS = 0
    ADVERTISEMENTS = 1

    @classmethod
    def of(cls, number: int) -> Table | None:
        """The table that a message names; None where it names none."""
        return cls(number) if 0 <= number < len(cls) else None


_TABLES = tuple(Table)  # Going through an enum itself takes ten times as long, and every turn does.


class ByTable(NamedTuple, Generic[Value]):
    """Something for each of the two; `[table]` takes one of them."""

    subscriptions: Value
    advertisements: Value

    def by_table(self) -> Iterator[tuple[Table, Value]]:
        """Both, each with its table."""
        return zip(_TABLES, self, strict=True)
