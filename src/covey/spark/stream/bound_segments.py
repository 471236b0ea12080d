"""A version's segments over the events' columns, each bound by itself and once.

Most rules mean to covey what they mean to Spark, and a segment of such rules is used as it stands. One that has others
(a date's constant, a function, arithmetic, a column that isn't there) is bound to the events' columns: a segment of the
same rules, as Spark reads them and without those that can't be used, takes its place, in a file of its own. Segments
never change, so what was bound once is bound for all later versions, and what is deleted of a segment is marked in its
stand-in, too. So a change costs what changed here as well: that is bound, written and sent to executors, nothing else.
"""

from __future__ import annotations

import zlib
from collections import OrderedDict
from collections.abc import Callable
from dataclasses import dataclass, field
from pathlib import Path
from typing import TYPE_CHECKING, TypeAlias

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc
from numpy.typing import NDArray

from covey.matching import BadSubscription, Index
from covey.matching.segment import Segment
from covey.matching.state import Sealed
from covey.spark.rules import Columns, as_it_is

if TYPE_CHECKING:
    from pyspark.sql import DataFrame

Rows: TypeAlias = list[tuple[str, str]]
Bind: TypeAlias = Callable[[Rows], tuple[Index, list[BadSubscription], Columns]]
"""Rules to an index over the events' columns, those that can't be used, and what its attributes are."""

MOST_KEPT = 64
"""Segments that are kept bound."""


@dataclass(frozen=True, slots=True)
class StandIn:
    """What takes the place of a segment."""

    path: Path
    parts: tuple[NDArray[np.int64], ...]
    """For each segment of the file, which rule of the segment each of its rules is."""
    taken: NDArray[np.bool_]
    """The rules of the segment that were there when it was bound."""
    columns: Columns
    bad: dict[int, BadSubscription]
    """By their places in the segment, the rules that can't be used."""

    def deleted(self, number: int, gone: NDArray[np.bool_]) -> NDArray[np.uint8]:
        """The bitmap of a segment of the file, where these rules of the segment that it stands for are gone."""
        bits = np.zeros((len(self.parts[number]) // 8 + 1) * 8, np.bool_)
        bits[: len(self.parts[number])] = gone[self.parts[number]]
        return np.packbits(bits, bitorder="little")


@dataclass(slots=True)
class Found:
    """A version's segments as they can be used: files, numbers in them and compressed bitmaps."""

    segments: list[tuple[str, int, bytes]] = field(default_factory=list)
    columns: Columns = field(default_factory=Columns)
    bad: list[BadSubscription] = field(default_factory=list)
    bound: bool = False
    """Whether a stand-in is among them."""
    agree: bool = True
    """Whether an attribute is the same of the events' columns in all of them."""

    def take(self, columns: Columns, live: set[str]) -> None:
        """Add what a stand-in's attributes are; `live` are the ids that are there still."""
        mine = self.columns
        for name, text in columns.expressions.items():
            self.agree &= mine.expressions.setdefault(name, text) == text
        for name, text in columns.failures.items():
            self.agree &= mine.failures.setdefault(name, text) == text
        mine.derived |= columns.derived
        for attributes, rules in columns.failing.items():
            failing = [rule for rule in rules if str(rule) in live]
            if failing:
                mine.failing.setdefault(attributes, []).extend(failing)


class BoundSegments:
    """The stand-ins of a stream's segments, by the files that these are in and the events' columns."""

    def __init__(self) -> None:
        self._kept: OrderedDict[tuple[str, int, str], StandIn] = OrderedDict()

    def find(
        self,
        events: DataFrame,
        parts: list[tuple[Sealed, tuple[str, int, bytes]]],
        bind: Bind,
        save: Callable[[Index], Path],
    ) -> Found:
        """The segments of a version, those among them that can't be used as they stand replaced."""
        found = Found()
        columns = events.schema.json()
        rows_before = 0
        for part, saved in parts:
            if part.live and as_it_is(Index.of_parts([part]), events) is None:
                self._replace(found, rows_before, part, (*saved[:2], columns), bind, save)
            else:
                found.segments.append(saved)
            rows_before += part.live
        while len(self._kept) > max(MOST_KEPT, len(parts)):
            self._kept.popitem(last=False)
        return found

    def _replace(
        self,
        found: Found,
        rows_before: int,
        part: Sealed,
        key: tuple[str, int, str],
        bind: Bind,
        save: Callable[[Index], Path],
    ) -> None:
        gone = np.ones(len(part.segment), np.bool_)
        alive = part.alive()
        gone[alive] = False
        known = self._kept.get(key)
        if known is None or not known.taken[alive].all():
            known = self._kept[key] = _bound(part, bind, save)
        self._kept.move_to_end(key)
        found.bound = True
        for number in range(len(known.parts)):
            found.segments.append((str(known.path), number, zlib.compress(known.deleted(number, gone).tobytes(), 1)))
        found.take(known.columns, set(part.ids()) if known.columns.failing else set())
        found.bad += [
            BadSubscription(rows_before + int(np.searchsorted(alive, place)), bad.id, bad.error)
            for place, bad in known.bad.items()
            if not gone[place]
        ]


def _bound(part: Sealed, bind: Bind, save: Callable[[Index], Path]) -> StandIn:
    alive = part.alive()
    index, bad, columns = bind(list(part.rows()))
    taken = np.zeros(len(part.segment), np.bool_)
    taken[alive] = True
    return StandIn(
        save(index),
        tuple(_places(made.segment, part.segment) for made in index.parts()),
        taken,
        columns,
        {int(alive[one.row]): one for one in bad},
    )


def _places(made: Segment, of: Segment) -> NDArray[np.int64]:
    """Where the rules of a segment stand in another, by their ids."""
    kind = pa.large_string()
    places: NDArray[np.int64] = (
        pc.index_in(made.ids.cast(kind), value_set=of.ids.cast(kind)).to_numpy().astype(np.int64)
    )
    return places
