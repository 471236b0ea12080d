"""Subscriptions held to the columns of a table, as SQL holds them.

Parquet and CSV say which columns there are and what they hold, before any row is looked at. So a name that no column
has is a mistake there, and a constant of another kind is converted as Spark's analyser converts it (`status = '500'` on
a number), or refused. Events as JSON or XML have no columns: what one lacks is missing, and kinds don't mix.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping, Sequence
from difflib import get_close_matches
from typing import Any, Final

import pyarrow as pa

from covey.errors import CoveyError, FilterError, SchemaError
from covey.events import Schema
from covey.filters import Filter, Predicate
from covey.filters.algebra import leaves
from covey.filters.predicates import IsNull
from covey.filters.terms import is_path, term_of
from covey.filters.values import Kind
from covey.kernels.opcodes import BOOLEAN, NUMBER, STRING, TIMESTAMP
from covey.matching.bulk.rows import BadSubscription
from covey.matching.column_kinds import is_bytes, kind_of_term, mistakes, within
from covey.matching.constants import constants_of, naming
from covey.matching.index import Index

FEW: Final = 256
"""Rows that are read one by one."""
PARTS: Final = 16
"""Parts that more rows are looked at in."""
_CODES: Final = {
    Kind.NUMBER: NUMBER, Kind.STRING: STRING, Kind.BOOLEAN: BOOLEAN, Kind.TIMESTAMP: TIMESTAMP,
}  # fmt: skip


class TableColumns:
    """The columns that tables have, all of them together. One that tables hold in different types has none here. With
    `lacking` subscriptions may name others, of which every row has null."""

    def __init__(self, tables: Iterable[pa.Schema], *, lacking: bool = False) -> None:
        self._lacking = lacking
        self._columns: dict[str, list[pa.DataType]] = {}
        for table in tables:
            for column in table:
                self._columns.setdefault(column.name, []).append(column.type)
        alike = [pa.field(name, kinds[0]) for name, kinds in self._columns.items() if len(set(kinds)) == 1]
        try:
            self._schema = Schema.infer(pa.schema(alike))
        except SchemaError:  # a column `a.b` beside a record `a` that has a `b`
            self._schema = Schema({})

    def has(self, name: str) -> bool:
        """Whether there is such a column, or such a field in one, or may be."""
        if self._lacking or name in self._columns:
            return True
        first, dot, rest = name.partition(".")
        while dot:
            if any(_within(kind, rest) for kind in self._columns.get(first, ())):
                return True
            step, dot, rest = rest.partition(".")
            first = f"{first}.{step}"
        return False

    def refusal(self, condition: Filter) -> CoveyError | None:
        """What a table would say to a subscription; None where it can be asked."""
        for name in sorted(condition.attributes()):
            if not self.has(name):
                return FilterError(self._missing(name, condition))
        try:
            read = self._schema.check(condition)
        except FilterError as error:
            return error
        wrong = next(mistakes(read, self.type), None)
        return None if wrong is None else FilterError(wrong)

    def type(self, name: str) -> pa.DataType | None:
        """The type of a column, or of what is in one; None where it isn't known, or differs by table."""
        step = name
        while step:
            kinds = set(self._columns.get(step, ()))
            if kinds:
                kind = kinds.pop() if len(kinds) == 1 else None
                return kind if step == name or kind is None else within(kind, name[len(step) + 1 :])
            step = step.rpartition(".")[0]
        return None

    def unread(self, name: str) -> bool:
        """Whether matching can't even look at a column."""
        kind = self.type(name)
        return kind is not None and is_bytes(kind)

    def _missing(self, name: str, condition: Filter) -> str:
        others = sorted(one for one in {*self._columns, *self._schema.attributes} if not name.startswith(f"{one}."))
        meant = next(iter(get_close_matches(name, others, 1)), None)
        meant = next((column for column in others if column.lower() == name.lower()), meant)
        if meant is not None:
            return f"there is no column {name}; did you mean {meant}?"
        # A comparison of two columns, of which one is none, was meant as one with a text.
        bare = "." not in name and any(
            not is_path(test) and name in term_of(test).attributes() for test in _tested(condition)
        )
        return f"there is no column {name}" + (f"; a text is written in quotes: '{name}'" if bare else "")

    def unfit(self, constants: Mapping[str, frozenset[int]]) -> set[str]:
        """Of what an index tests, what isn't a column, or is compared with constants of another kind than it holds."""
        return {name for name, kinds in constants.items() if not self._fits(name, kinds)}

    def _fits(self, name: str, kinds: frozenset[int]) -> bool:
        term = term_of(name)
        if not all(map(self.has, term.attributes())) or any(mistakes(IsNull(name), self.type)):
            return False
        kind = kind_of_term(term, self.type)  # of tests on a list's elements it isn't known here what they ask for
        return kind is not Kind.LIST and (kind is None or kinds <= {_CODES[kind]})

    def read(self, condition: Filter) -> Filter:
        """A subscription that can be asked, with constants as the columns have them."""
        return self._schema.check(condition)


def converted(index: Index, columns: TableColumns) -> tuple[Index, list[BadSubscription]]:
    """An index as a table of such columns is asked. Subscriptions that can't be are in it as they are, but for those
    that name what matching can't even look at."""
    made, bad = _asked(index, columns)
    if not any(columns.unread(name) for name in made.tested):
        return made, []
    unread = [one for one in bad if any(map(columns.unread, index.filter(one.id).attributes()))]
    wrong = {one.id for one in unread}
    return _again(made, [(id, text) for id, text in made.rows() if id not in wrong]), unread


def held(index: Index, columns: TableColumns) -> tuple[Index, list[BadSubscription]]:
    """An index as a table of such columns is asked, and the subscriptions that can't be, which it hasn't any more."""
    made, bad = _asked(index, columns)
    wrong = {one.id for one in bad}
    if any(columns.unread(name) for name in made.tested):  # what is removed is still looked for until segments merge
        made = _again(made, [(id, text) for id, text in made.rows() if id not in wrong])
    else:
        made.remove_many(wrong)
    return made, bad


def _asked(index: Index, columns: TableColumns) -> tuple[Index, list[BadSubscription]]:
    wrong = columns.unfit(constants_of(index))
    if not wrong:
        return index, []
    rows = list(index.rows())
    bad: list[BadSubscription] = []
    read: dict[int, Filter] = {}
    named = naming([text for _, text in rows], wrong).nonzero()[0].tolist()
    for row in _suspects(rows, named, columns):
        id, condition = rows[row][0], index.filter(rows[row][0])
        error = columns.refusal(condition)
        if error is not None:
            bad.append(BadSubscription(row, id, error))
        else:
            fitting = columns.read(condition)
            if fitting != condition:
                read[row] = fitting
    if not read:
        return index, bad
    return _again(index, [(id, read.get(row, text)) for row, (id, text) in enumerate(rows)]), bad


def _again(index: Index, rows: Sequence[tuple[Any, str | Filter]]) -> Index:
    made = Index(semantics=index.semantics, nan_is_missing=index.nan_is_missing)
    made.add_many(rows)
    return made


def _suspects(rows: Sequence[tuple[Any, str]], places: list[int], columns: TableColumns) -> Iterator[int]:
    """Those of some places whose rows may not fit: an index of a part that fits says so of all of it at once, in less
    time than reading the part's texts one by one."""
    if len(places) <= FEW:
        yield from places
        return
    size = -(-len(places) // PARTS)
    for first in range(0, len(places), size):
        part = places[first : first + size]
        trial = Index()
        trial.add_many([rows[place] for place in part])
        if columns.unfit(constants_of(trial)):
            yield from _suspects(rows, part, columns)


def _tested(condition: Filter) -> Iterator[str]:
    return (leaf.attribute for leaf in leaves(condition) if isinstance(leaf, Predicate))


def _within(kind: pa.DataType, path: str) -> bool:
    """Whether a value of that type may have something under a dotted name."""
    if pa.types.is_map(kind):
        return True
    if pa.types.is_list(kind) or pa.types.is_large_list(kind) or pa.types.is_fixed_size_list(kind):
        return _within(kind.value_type, path)
    if not pa.types.is_struct(kind):
        return False
    first, _, rest = path.partition(".")
    return any(one.name == path or (one.name == first and (not rest or _within(one.type, rest))) for one in kind.fields)
