"""Merging a whole table of subscriptions: as few filters as rules and threshold allow, each with what it stands for.

The table's filters become rows of numbered constraints (`constraints.py`). Identical rows are one. Then, as section 5.2
of Li, Hou and Jacobsen has it, to a fixpoint:

1. Rows that another row covers go (`covering.py`).
2. Rows that are equal but for one attribute are united on it as far as the union stays simple (`unions.py`). Mergers
   may be covering, and equal but for one attribute to others: on with 1.
3. With a threshold above 0: neighbouring rows that differ in one or two constraints are candidates (`candidates.py`),
   and all of a round get their degrees at once (`samples.py`). The best of those that the threshold accepts are made,
   each row being in one; mergers may cover others, and on with 3.

At a threshold of 0 the table matches exactly what it matched (with advertisements: of advertised events). A merger's
degree counts from the original subscriptions that it stands for, however many mergers it came by. A row that a merger
comes to cover afterwards only lowers its degree, so that isn't counted again.

Entries may be imperfect mergers themselves, made by somebody else of subscriptions that aren't known here. What these
have `spent` of the threshold is part of the degree of whatever they become part of (`samples.with_spent`), so that a
chain of tables stays within one threshold. A perfect union of such entries lets no more through than they did: it is
made whatever they have spent.

Greedy, not optimal: the optimum is NP-complete. Each step takes time linear in the rows but for sorting and covering.
"""

from __future__ import annotations

from collections.abc import Hashable, Iterable, Mapping, Sequence
from typing import TYPE_CHECKING, Final, Generic, Literal, TypeAlias, TypeVar, get_args

import numpy as np
from numpy.typing import NDArray

from covey.errors import CoveyError, DuplicateIdError
from covey.events.meaning import Meaning
from covey.filters.algebra import FALSE, Filter
from covey.filters.semantics import Defaults, Semantics
from covey.relations.merging.candidates import Joins, candidate_pairs
from covey.relations.merging.constraints import Constraints, Row
from covey.relations.merging.covering import covering_rows
from covey.relations.merging.mergers import Merger
from covey.relations.merging.rules import MAX_PIECES, Rule, never_advertised
from covey.relations.merging.samples import AskedDegrees, SampledDegrees, degrees_by, with_spent
from covey.relations.merging.shapes import shape_of
from covey.relations.merging.uniform import Uniform
from covey.relations.merging.unions import clusters, free_values, groups_but_for_one, same_rest
from covey.relations.progress import Progress, silent
from covey.relations.value_sets import ValueSet

if TYPE_CHECKING:
    from covey.events.schema import Schema
    from covey.history import Chances

Id = TypeVar("Id", bound=Hashable)
Measure: TypeAlias = Literal["degree", "traffic"]
MEASURES: Final[tuple[Measure, ...]] = get_args(Measure)

MAX_ROUNDS: Final = 64
"""Rounds of imperfect merging at most; each may halve the table."""

_REPORTED = 65_536


def merge_table(
    entries: Iterable[tuple[Id, Filter]],
    *,
    imt: float = 0.0,
    chances: Chances | None = None,
    advertisements: Sequence[Filter] = (),
    semantics: Semantics = "sql",
    defaults: Defaults | None = None,
    schema: Schema | None = None,
    measure: Measure = "degree",
    rules: Sequence[Rule] = ("union", "hull"),
    max_pieces: int = MAX_PIECES,
    max_rounds: int = MAX_ROUNDS,
    progress: Progress | None = None,
    spent: Mapping[Id, float] | None = None,
) -> list[Merger[Id]]:
    """Few filters that match whatever the entries match, each with the ids it stands for; every id is in one.

    `imt` is the imperfect merging threshold: 0 allows perfect mergers only. `measure` says what it bounds: the
    imperfect degree, or ("traffic", as in Li et al.'s evaluation) the degree times the merger's chance, the fraction of
    all events that it lets through in vain. Without `chances`, events are uniform around the filters' constants.
    `max_pieces` is how many intervals and values a merged constraint may list. `spent` has the imperfect degrees of
    entries that are mergers already; it counts in what becomes of them.
    """
    if not 0 <= imt <= 1:
        raise CoveyError(f"the imperfect merging threshold is {imt}; give a number from 0 to 1")
    if "prefix" in rules:
        raise CoveyError("tables are merged by union, hull, exists and drop; a hull is tighter than a prefix, use it")
    meaning = Meaning(semantics, defaults, schema)
    table: _Table[Id] = _Table(meaning, max_pieces, progress or silent)
    table.load(entries, spent or {})
    table.unite(never_advertised(shape_of(advertisement, meaning) for advertisement in advertisements))
    if imt > 0 or spent:
        source = chances if chances is not None else Uniform.around(table.filters())
        degrees = degrees_by(source, advertisements, table.constraints)
        if imt > 0:
            table.widen(degrees, Joins(table.constraints, rules, max_pieces), imt, measure, max_rounds)
        table.count_spent(degrees)
    return table.mergers()


class _Table(Generic[Id]):
    """Rows with who stands for them: `_owner[row]` is the row itself while in the table, a covering one otherwise."""

    def __init__(self, meaning: Meaning, max_pieces: int, progress: Progress) -> None:
        self.constraints = Constraints(meaning)
        self._meaning = meaning
        self._max_pieces = max_pieces
        self._progress = progress
        self._entries: list[tuple[Id, Filter]] = []
        self._row_of_entry: list[int] = []
        self._rows: list[Row] = []
        self._known: dict[Row, int] = {}
        self._owner: list[int] = []
        self._first_entry: dict[int, int] = {}
        self._basis: dict[int, tuple[int, ...]] = {}
        self._degree: dict[int, float] = {}
        self._exact: set[int] = set()
        """Rows that are exactly the union of their parts, and have a basis since these have spent something."""
        self._spent: dict[Row, float] = {}
        """What entries that are mergers have spent; of several with one row, the least, since that is a bound too."""

    def load(self, entries: Iterable[tuple[Id, Filter]], spent: Mapping[Id, float]) -> None:
        """Number the entries' shapes."""
        seen: set[Id] = set()
        for id, condition in entries:
            if id in seen:
                raise DuplicateIdError(f"subscription {id!r} is in the table already; give each its own id")
            seen.add(id)
            shape = shape_of(condition, self._meaning)
            row = self._place(self.constraints.row(shape)) if shape.satisfiable else -1
            if row >= 0:
                own = spent.get(id, 0.0)
                if self._first_entry.setdefault(row, len(self._entries)) < len(self._entries):
                    own = min(own, self._spent.pop(self._rows[row], 0.0))
                if own:
                    self._spent[self._rows[row]] = own
            self._row_of_entry.append(row)
            self._entries.append((id, condition))
            if len(self._entries) % _REPORTED == 0:
                self._progress("reading", len(self._entries), len(self._entries))
        self.constraints.number_cuts()
        self._progress("reading", len(self._entries), len(self._entries))

    def filters(self) -> list[Filter]:
        """The entries' filters."""
        return [condition for _, condition in self._entries]

    def unite(self, free: Mapping[str, ValueSet]) -> None:
        """Covering and perfect mergers, to a fixpoint."""
        new = self._living()
        self._cover(new)
        while new:
            living = self._living()
            fresh = set(new)
            new = []
            groups = groups_but_for_one(living, self._rows, [row in fresh for row in living], self.constraints)
            for attribute, members in groups:
                alive = [row for row in members if self._owner[row] == row]
                if len(alive) > 1:
                    new.extend(self._unite_on(attribute, alive, free))
            new = [row for row in new if self._owner[row] == row]
            self._cover(new)
            self._progress("uniting", len(new), len(self._living()))

    def _unite_on(self, attribute: int, members: Sequence[int], free: Mapping[str, ValueSet]) -> list[int]:
        made = []
        values = self.constraints.values
        allowed = free_values(free, self.constraints, attribute)
        for rest, alike in same_rest(members, self._rows, attribute, self.constraints).items():
            sets = [(member, values[number]) for member, number in alike]
            for union, together, exact in clusters(sets, self._max_pieces, allowed) if len(sets) > 1 else ():
                if len(together) > 1:
                    merged = self.constraints.with_set(rest, attribute, union)
                    row = self._stand_for(merged, together, None if exact else 0.0)
                    if row is not None:
                        made.append(row)
        return made

    def widen(
        self, degrees: SampledDegrees | AskedDegrees, joins: Joins, imt: float, measure: Measure, max_rounds: int
    ) -> None:
        """Imperfect mergers, round by round."""
        tried: set[tuple[int, int]] = set()
        for _ in range(max_rounds):
            pairs = [
                (left, right)
                for left, right in candidate_pairs(self._living(), self._rows, self.constraints).tolist()
                if (left, right) not in tried
            ]
            tried.update(pairs)
            if not pairs:
                break
            joined = [joins.join(self._rows[left], self._rows[right]) for left, right in pairs]
            found = with_spent(
                degrees,
                [
                    (row, [self._rows[part] for part in self._parts((left, right))])
                    for row, (left, right) in zip(joined, pairs, strict=True)
                ],
                self._spent,
            )
            made = self._accept(
                pairs, joined, found.degree, found.degree if measure == "degree" else found.traffic, imt
            )
            self._progress("widening", len(made), len(self._living()))
            if not made:
                break
            self._cover([row for row in made if self._owner[row] == row])

    def count_spent(self, degrees: SampledDegrees | AskedDegrees) -> None:
        """Degrees of all that has become of entries which have spent something."""
        rows = [
            row for row in self._living() if any(self._rows[part] in self._spent for part in self._basis.get(row, ()))
        ]
        parts = [[self._rows[part] for part in self._basis[row]] for row in rows]
        asked = list(zip((self._rows[row] for row in rows), parts, strict=True))
        found = with_spent(degrees, asked, self._spent).degree.tolist() if asked else []
        self._degree.update(zip(rows, found, strict=True))

    def _accept(
        self,
        pairs: Sequence[tuple[int, int]],
        joined: Sequence[Row],
        degree: NDArray[np.float64],
        measured: NDArray[np.float64],
        imt: float,
    ) -> list[int]:
        """Make mergers of the best pairs first; a row that is in one already waits for the next round."""
        made = []
        used: set[int] = set()
        for at in np.argsort(measured, kind="stable").tolist():
            if measured[at] > imt:
                break
            pair = pairs[at]
            if used.isdisjoint(pair):
                used.update(pair)
                row = self._stand_for(joined[at], pair, float(degree[at]))
                if row is not None:
                    made.append(row)
        return made

    def _stand_for(self, row: Row, parts: Sequence[int], degree: float | None) -> int | None:
        """Put a row in the place of others that it covers; None where a row in the table covers it already.

        `degree` is None for a row that is exactly the union of its parts.
        """
        basis = self._parts(parts)
        count = len(self._rows)
        place = self._place(row)
        root = self._root(place)
        for part in parts:
            if part != root:
                self._owner[part] = root
        if place < count:
            return None
        has_spent = any(self._rows[part] in self._spent for part in parts)
        if degree is not None or has_spent or any(part in self._basis for part in parts):
            self._basis[place] = basis
            self._degree[place] = degree or 0.0
            if degree is None and all(part not in self._basis or part in self._exact for part in parts):
                self._exact.add(place)
        return place

    def _parts(self, rows: Iterable[int]) -> tuple[int, ...]:
        """Rows whose union is exactly what the given rows stand for."""
        return tuple(dict.fromkeys(part for row in rows for part in self._basis.get(row, (row,))))

    def _cover(self, new: Sequence[int]) -> None:
        """Let rows that new ones cover go."""
        if not new:
            return
        living = self._living()
        fresh = set(new)
        may_cover = np.fromiter((row in fresh for row in living), np.bool_, len(living))
        covering = covering_rows([self._rows[row] for row in living], self.constraints, may_cover)
        for at in np.flatnonzero(covering >= 0).tolist():
            self._owner[living[at]] = living[covering[at]]

    def _place(self, row: Row) -> int:
        place = self._known.get(row)
        if place is None:
            place = self._known[row] = len(self._rows)
            self._rows.append(row)
            self._owner.append(place)
        return place

    def _root(self, row: int) -> int:
        root = row
        while self._owner[root] != root:
            root = self._owner[root]
        while self._owner[row] != root:
            self._owner[row], row = root, self._owner[row]
        return root

    def _living(self) -> list[int]:
        return [row for row, owner in enumerate(self._owner) if row == owner]

    def mergers(self) -> list[Merger[Id]]:
        """What the table has become, in the order of the first entries."""
        parts: dict[int, list[Id]] = {}
        never: list[Id] = []
        for (id, _), row in zip(self._entries, self._row_of_entry, strict=True):
            (never if row < 0 else parts.setdefault(self._root(row), [])).append(id)
        if never and not parts:
            return [Merger(FALSE, tuple(never), True, 0.0)]
        # What can't be met is covered by anything.
        next(iter(parts.values()), []).extend(never)
        return [self._merger(row, ids) for row, ids in parts.items()]

    def _merger(self, row: int, ids: Sequence[Id]) -> Merger[Id]:
        first = self._first_entry.get(row)
        written = None if first is None else self._entries[first][1]
        condition = self.constraints.shape(self._rows[row]).to_filter(self._meaning) if written is None else written
        degree = self._degree.get(row, self._spent.get(self._rows[row], 0.0))
        return Merger(condition, tuple(ids), row not in self._basis or row in self._exact, degree)
