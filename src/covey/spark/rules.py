"""Rules to an index over a table's columns, so that each means what `events.where(rule)` means.

Those that covey's bulk reader reads as Spark does go through it (`plain_rules`); the others are bound to the table one
by one, with Spark's analyser (`conditions`). The index then has attributes that are columns of the events, and others
that Spark computes beside them. A rule that Spark would refuse is a bad row, with Spark's reason.
"""

from __future__ import annotations

from collections import OrderedDict
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from types import MappingProxyType
from typing import Any
from weakref import ref

import numpy as np
import pyarrow as pa
from numpy.typing import NDArray
from pyspark.sql import Column, DataFrame, Observation
from pyspark.sql import functions as F  # noqa: N812

from covey.errors import CoveyError, skips
from covey.filters import Filter
from covey.matching import AddManyError, BadSubscription, Index
from covey.matching.bulk import bad_ids
from covey.matching.constants import constants_of, naming
from covey.matching.segment import Segment
from covey.spark.conditions import Settings, bind
from covey.spark.plain_rules import Fields, plain_texts, unfit

Row = tuple[Any, str | Filter]


@dataclass(slots=True)
class Columns:
    """What the attributes of an index are, as SQL over the events, and when those fail that may."""

    expressions: dict[str, str] = field(default_factory=dict)
    failures: dict[str, str] = field(default_factory=dict)
    derived: frozenset[str] = frozenset()
    """Attributes that only Spark computes."""
    failing: dict[frozenset[str], list[str]] = field(default_factory=dict)
    """By the attributes that may fail, the rules that test them."""

    def crossing(self) -> list[tuple[str, Column]]:
        """What must cross into Python: names and columns."""
        return [(name, F.expr(text)) for name, text in self.expressions.items()]


class TermFailures:
    """How many events each rule had a term that failed on: a division by zero, a text that is no number.

    Give one to `match_events(failures=...)`; once the result has been computed, `counts` has the rules that failed.
    """

    def __init__(self) -> None:
        self._observation: Observation | None = None
        self._rules: list[list[str]] = []

    def observe(self, events: DataFrame, columns: Columns) -> DataFrame:
        """The events, counted on their way."""
        if self._observation is not None:
            raise CoveyError("these failures are of another DataFrame; make a TermFailures for each")
        self._observation = Observation()
        counts = []
        for number, (attributes, rules) in enumerate(columns.failing.items()):
            failed = " OR ".join(f"({columns.failures[name]})" for name in sorted(attributes))
            counts.append(F.count_if(F.expr(failed)).alias(f"f{number}"))
            self._rules.append(rules)
        return events.observe(self._observation, *counts) if counts else events

    @property
    def counts(self) -> dict[str, int]:
        """Events by rule; rules without failures are left out. Waits for the DataFrame's first action."""
        if self._observation is None:
            raise CoveyError("no DataFrame has these failures; give them to match_events(failures=...)")
        if not self._rules:
            return {}
        found = self._observation.get
        return {
            rule: int(found[f"f{number}"])
            for number, rules in enumerate(self._rules)
            for rule in rules
            if found.get(f"f{number}")
        }


@dataclass(slots=True)
class Rules:
    """Rules as an index over a table's columns takes them."""

    rows: list[Row]
    """(id, filter) of the good ones, in their order."""
    places: list[int]
    """Where each stood among those that were given."""
    errors: list[BadSubscription]
    columns: Columns
    index: Index | None = None
    """All of them compiled, where that was done already to look at them."""


def read_rules(
    events: DataFrame,
    rows: Sequence[tuple[Any, str]],
    settings: Settings,
    bad: Mapping[int, CoveyError] = MappingProxyType({}),
) -> Rules:
    """Rules as Spark reads them over these events."""
    fields = Fields.of(events)
    texts = [text for _, text in rows]
    bad = {**dict(bad_ids(rows)), **bad}  # before texts are looked at: the first row of an id counts, even a bad one
    plain = plain_texts(pa.array(texts, pa.large_string()))
    plain[list(bad)] = False
    if plain.any():
        places = np.flatnonzero(plain).tolist()
        trial = Index(semantics=settings.semantics, limits=settings.limits)
        report = trial.add_many([rows[place] for place in places], on_error="collect")
        wrong = unfit(constants_of(trial), fields)
        if wrong:
            plain &= ~naming(texts, wrong)
        plain[[places[bad.row] for bad in report.errors]] = False
        if plain.all():
            columns = Columns({name: fields.sql(name) for name in trial.attributes})
            return Rules(list(rows), places, [], columns, trial)
    return _bound(events, rows, plain, settings, bad)


def _bound(
    events: DataFrame,
    rows: Sequence[tuple[Any, str]],
    plain: NDArray[np.bool_],
    settings: Settings,
    bad: Mapping[int, CoveyError],
) -> Rules:
    places = [place for place in np.flatnonzero(~plain).tolist() if place not in bad]
    bound = bind(events, [rows[place][1] for place in places], settings)
    read: dict[int, Filter | CoveyError] = {**bad, **dict(zip(places, bound.filters, strict=True))}
    errors = [BadSubscription(row, rows[row][0], one) for row, one in read.items() if isinstance(one, CoveyError)]
    good: list[Row] = []
    kept: list[int] = []
    columns = Columns(dict(bound.columns), bound.failures, bound.derived)
    for place, (id, text) in enumerate(rows):
        found = read.get(place, text)
        if isinstance(found, CoveyError):
            continue
        good.append((id, found))
        kept.append(place)
        if isinstance(found, Filter):
            failing = frozenset(name for name in found.attributes() if name in bound.failures)
            if failing:
                columns.failing.setdefault(failing, []).append(id)
    return Rules(good, kept, errors, columns)


def index_of(
    events: DataFrame,
    rows: Sequence[tuple[Any, str]],
    settings: Settings,
    on_error: str,
    bad: Mapping[int, CoveyError] = MappingProxyType({}),
) -> tuple[Index, list[BadSubscription], Columns]:
    """An index of rules over these events, the bad ones (those that are known already among them), and what its
    attributes are."""
    rules = read_rules(events, rows, settings, bad)
    if rules.index is not None:
        return rules.index, [], rules.columns
    index = Index(semantics=settings.semantics, limits=settings.limits)
    report = index.add_many(rules.rows, on_error="collect")
    errors = rules.errors + [BadSubscription(rules.places[bad.row], bad.id, bad.error) for bad in report.errors]
    errors.sort(key=lambda bad: bad.row)
    if errors and not skips(on_error):
        raise AddManyError(errors)
    return index, errors, with_plain(rules.columns, index, Fields.of(events))


def as_it_is(index: Index, events: DataFrame) -> Columns | None:
    """What an index's attributes are over these events; None where its rules must be read anew, as Spark reads them."""
    fields = Fields.of(events)
    if unfit(constants_of(index), fields) or not all(_is_plain(part.segment) for part in index.parts()):
        return None
    return with_plain(Columns(), index, fields)


_plain: OrderedDict[int, tuple[ref[Segment], bool]] = OrderedDict()
_KEPT_PLAIN = 64


def _is_plain(segment: Segment) -> bool:
    """Whether covey's reading of all of a segment's texts is Spark's; known of a segment once it was looked at, since
    versions of a large index share most segments."""
    found = _plain.get(id(segment))
    if found is None or found[0]() is not segment:
        found = _plain[id(segment)] = ref(segment), bool(plain_texts(segment.texts).all())
        while len(_plain) > _KEPT_PLAIN:
            _plain.popitem(last=False)
    return found[1]


def with_plain(columns: Columns, index: Index, fields: Fields) -> Columns:
    """The columns of all attributes of an index; those that aren't known yet are the events' own."""
    for name in index.attributes:
        if name not in columns.expressions:
            columns.expressions[name] = fields.sql(name)
    return columns
