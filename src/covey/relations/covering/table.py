"""The covering table of one last hop: which of its subscriptions must be forwarded.

A subscription that another one covers needs no forwarding (Li, Hou and Jacobsen, section 4.1). The table keeps all
subscriptions of one neighbour in a forest: *roots* are covered by no other root and are forwarded; every other
subscription stands under one that covers it. Covering is transitive, so a root covers all that is under it.

Inserting asks the roots alone, in one pass for both directions (`root_kernels.py`): if a root covers the new one, it
goes under that root; else it becomes a root, and the roots that it covers go under it with all that they cover. A root
that it covers and one that covers it can't both be there. Removing a covered subscription hands what is under it to
its parent; removing a root inserts again what was directly under it. The forest keeps these three facts, whatever
the order of changes: no root covers another, every parent covers its children, and therefore the roots are the
greatest subscriptions, each once.

Equal subscriptions are one *form* with several ids; the oldest id speaks for it and the others are covered by that one.
Conjunctions are exact and answered by kernels. Boolean filters are filed under a hull and an inner box (`bounds.py`);
candidates that these leave open are decided by `covey.relations.exact`, `exact_decisions` of them for each insertion at
most. What is beyond that limit, or what the decision itself leaves open, counts as not covering: the table may then
have a root too many, and never one too few. Filters of which no inner box is known (patterns, array_contains) are
compared with those whose hulls include each other.
"""

from __future__ import annotations

from collections.abc import Hashable, Iterable, Iterator
from dataclasses import dataclass
from typing import Final

import numpy as np

from covey.errors import DuplicateIdError, UnknownIdError
from covey.events.schema import Schema
from covey.filters.algebra import FALSE, Filter
from covey.filters.semantics import Defaults, Semantics, check_semantics
from covey.relations.conjunctions import UNSATISFIABLE, Conjunction, conjunction_of
from covey.relations.covering.bounds import Bounds, bounds_of
from covey.relations.covering.forms import Form, Key
from covey.relations.covering.roots import BOTH, RELATED_SIGNATURES, Results, RootStore
from covey.relations.covering.set_kernels import COVERED, COVERS
from covey.relations.covering.variables import RELATED_VARIABLES, RELATION_BYTES, VariableIndex
from covey.relations.exact import DEFAULT_RELATION_LIMITS, RelationLimits, covers


@dataclass(frozen=True, slots=True)
class CoveringLimits:
    """What a table may take before it does with less."""

    exact_decisions: int = 64
    """Exact decisions about Boolean filters for one insertion; beyond, candidates count as not covering."""

    decision: RelationLimits = DEFAULT_RELATION_LIMITS
    """What one of them may cost."""

    related_variables: int = RELATED_VARIABLES
    """Value sets of one attribute whose relation is kept; beyond, they are compared each time."""

    relation_bytes: int = RELATION_BYTES
    """Bytes of all relations; beyond, as above."""

    related_signatures: int = RELATED_SIGNATURES
    """Pairs of attribute sets that are listed; beyond, searches go through all attribute sets."""


DEFAULT_COVERING_LIMITS: Final = CoveringLimits()


@dataclass(frozen=True, slots=True)
class Insertion:
    """What an insertion changed: it is covered by a subscription, or it is a root and covers some former roots."""

    covered_by: Hashable | None
    covers: tuple[Hashable, ...]


@dataclass(frozen=True, slots=True)
class Removal:
    """What a removal changed: which subscriptions are roots now and weren't before."""

    recovered: tuple[Hashable, ...]
    covers: tuple[Hashable, ...] = ()
    """Former roots that a recovered one was found to cover: only where a limit had left that open before."""


_NOTHING_CHANGED: Final = Removal(())


class CoveringTable:
    """The subscriptions of one last hop, under one semantics. Ids are any hashable values but None."""

    def __init__(
        self,
        *,
        semantics: Semantics = "sql",
        defaults: Defaults | None = None,
        schema: Schema | None = None,
        limits: CoveringLimits = DEFAULT_COVERING_LIMITS,
    ) -> None:
        self._semantics = check_semantics(semantics)
        if semantics == "default" and defaults is None and schema is not None:
            defaults = schema.defaults
        self._defaults = defaults
        self._schema = schema
        self._limits = limits
        self._filters: dict[Hashable, Filter | Conjunction] = {}
        self._forms: dict[Hashable, Form] = {}
        self._by_key: dict[Key, Form] = {}
        self._numbered: list[Form | None] = []
        self._free: list[int] = []
        self._age = 0
        self._variables = VariableIndex(limits.related_variables, limits.relation_bytes)
        self._store = RootStore(limits.related_signatures)
        self._decisions = 0
        self._never_is_root = False

    def __len__(self) -> int:
        """How many subscriptions there are, covered or not."""
        return len(self._forms)

    def __contains__(self, id: Hashable) -> bool:
        return id in self._forms

    def __iter__(self) -> Iterator[Hashable]:
        return iter(self._forms)

    @property
    def semantics(self) -> Semantics:
        """The semantics of all filters in the table."""
        return self._semantics

    @property
    def variables(self) -> VariableIndex:
        """The distinct value sets of all attributes, and what follows from what."""
        return self._variables

    def roots(self) -> tuple[Hashable, ...]:
        """The ids that no other subscription covers: what is forwarded."""
        used = len(self._numbered)
        tops = np.flatnonzero(self._store.store.parent[:used] < 0).tolist()
        return tuple(form.first for form in map(self._numbered.__getitem__, tops) if form is not None)

    def root_count(self) -> int:
        """How many roots there are."""
        return self._store.roots

    def filter(self, id: Hashable) -> Filter:
        """The filter of a subscription, as it was given."""
        self._form(id)
        given = self._filters[id]
        if isinstance(given, Conjunction):
            return given.to_filter(self._semantics, schema=self._schema)
        return given

    def covered_by(self, id: Hashable) -> Hashable | None:
        """A subscription that covers this one, directly above it; None for a root."""
        form = self._form(id)
        if id != form.first:
            return form.first
        parent = int(self._store.store.parent[form.number])
        return None if parent < 0 else self._at(parent).first

    def covered(self, id: Hashable) -> tuple[Hashable, ...]:
        """The subscriptions directly under this one; it covers them and all that is under them."""
        form = self._form(id)
        if id != form.first:
            return ()
        below = tuple(self._at(child).first for child in self._store.children(form.number))
        return (*(form.others or ()), *below)

    def insert(self, id: Hashable, filter: Filter | Conjunction) -> Insertion:
        """Add a subscription. A `Conjunction` must have been made under the table's semantics, defaults and schema."""
        return self.insert_many([(id, filter)])[0]

    def insert_many(self, subscriptions: Iterable[tuple[Hashable, Filter | Conjunction]]) -> list[Insertion]:
        """Add subscriptions in order, as if one by one; all of them, or none where one can't be added."""
        given = list(subscriptions)
        self._check_ids([id for id, _ in given])
        read = [self._read(filter) for _, filter in given]
        self._store.make_room_for_forms(len(self._numbered) + len(given))
        insertions: list[Insertion | None] = [None] * len(given)
        places: list[int] = []
        forms: list[Form] = []
        for place, ((id, filter), (key, bounds)) in enumerate(zip(given, read, strict=True)):
            self._filters[id] = filter
            form = self._by_key.get(key)
            if form is None:
                form = self._enter(key, bounds, id)
                forms.append(form)
                places.append(place)
            else:
                form.join(id)
                insertions[place] = Insertion(form.first, ())
            self._forms[id] = form
        for place, outcome in zip(places, self._file(forms), strict=True):
            insertions[place] = outcome
        self._store.tidy()
        return [insertion for insertion in insertions if insertion is not None]

    def remove(self, id: Hashable) -> Removal:
        """Take a subscription out."""
        form = self._form(id)
        del self._forms[id], self._filters[id]
        is_root = self._store.store.parent[form.number] < 0
        if form.others:
            return Removal((form.first,)) if form.leave(id) and is_root else _NOTHING_CHANGED
        removal = self._remove_root(form) if is_root else self._remove_covered(form)
        self._give_back(form)
        self._store.tidy()
        return removal

    def _form(self, id: Hashable) -> Form:
        form = self._forms.get(id)
        if form is None:
            raise UnknownIdError(f"subscription {id!r} is not in the covering table")
        return form

    def _at(self, number: int) -> Form:
        form = self._numbered[number]
        assert form is not None, "a form that isn't in use"
        return form

    def _check_ids(self, ids: list[Hashable]) -> None:
        new: set[Hashable] = set()
        for id in ids:
            if id is None:
                raise TypeError("a subscription's id can't be None; use a string or a number")
            if id in self._forms or id in new:
                raise DuplicateIdError(f"subscription {id!r} is in the covering table already; remove it first")
            new.add(id)

    def _read(self, given: Filter | Conjunction) -> tuple[Key, Bounds | None]:
        """A filter's key, and bounds for those that are no conjunctions."""
        if isinstance(given, Conjunction):
            return given, None
        condition = given if self._schema is None else self._schema.check(given)
        conjunction = conjunction_of(condition, self._semantics, self._defaults, self._schema)
        if conjunction is not None:
            return conjunction, None
        bounds = bounds_of(condition, self._semantics, self._defaults, self._schema)
        if not bounds.hull.satisfiable or (not bounds.inner and self._decide(FALSE, condition)):
            return UNSATISFIABLE, None
        if bounds.complete and len(bounds.inner) == 1:
            return bounds.inner[0], None
        return condition, bounds

    def _enter(self, key: Key, bounds: Bounds | None, id: Hashable) -> Form:
        """A new form: its number, its variables and its boxes."""
        self._age += 1
        form = self._by_key[key] = Form(key, bounds, id, self._age)
        if self._free:
            form.number = self._free.pop()
            self._numbered[form.number] = form
        else:
            form.number = len(self._numbered)
            self._numbered.append(form)
        if isinstance(key, Conjunction):
            if key.satisfiable:
                form.hull = self._store.box(self._variables.take_all(key.sets))
        else:
            self._store.store.boolean[form.number] = 1
            form.hull = self._store.box(self._variables.take_all(form.bounds.hull.sets))
            form.inner = self._store.box(self._variables.take_all(_second_row(form).sets))
        return form

    def _give_back(self, form: Form) -> None:
        for box in (form.hull, form.inner):
            for variable in box.variables if box is not None else ():
                self._variables.release(variable)
        if form.boolean:
            self._store.store.boolean[form.number] = 0
        del self._by_key[form.key]
        self._numbered[form.number] = None
        self._free.append(form.number)

    def _remove_covered(self, form: Form) -> Removal:
        parent = int(self._store.store.parent[form.number])
        self._store.take_out(form.number)
        for child in self._store.orphan(form.number):
            self._store.put_under(child, parent)
        return _NOTHING_CHANGED

    def _remove_root(self, form: Form) -> Removal:
        self._drop_rows(form)
        self._store.count_root(-1)
        orphans = sorted((self._at(child) for child in self._store.orphan(form.number)), key=_age)
        outcomes = self._file(orphans)
        parent = self._store.store.parent
        recovered = tuple(orphan.first for orphan in orphans if parent[orphan.number] < 0)
        own = {orphan.first for orphan in orphans}
        hit = {id: None for outcome in outcomes for id in outcome.covers if id not in own}
        return Removal(recovered, tuple(hit))

    def _file(self, forms: list[Form]) -> list[Insertion]:
        """Insert forms that are no roots and under nothing, in order."""
        outcomes: list[Insertion] = []
        while len(outcomes) < len(forms):
            rest = forms[len(outcomes) :]
            never = self._lone_never()
            if never is not None:
                # All that is satisfiable covers what nothing meets; the first to come takes it.
                self._store.count_root(-1)
                self._never_is_root = False
                self._store.put_under(never.number, rest[0].number)
                (outcome,) = self._file(rest[:1])
                outcomes.append(Insertion(outcome.covered_by, (*outcome.covers, never.first)))
            elif rest[0].boolean or rest[0].hull is None:
                outcomes.append(self._file_one(rest[0]))
            else:
                run = next((at for at, form in enumerate(rest) if form.boolean or form.hull is None), len(rest))
                outcomes += self._file_conjunctions(rest[:run])
        return outcomes

    def _file_conjunctions(self, forms: list[Form]) -> list[Insertion]:
        numbers = np.fromiter((form.number for form in forms), np.int64, len(forms))
        boxes = [form.hull for form in forms if form.hull is not None]
        results = Results(len(forms), self._store.roots)
        decided: dict[int, Insertion] = {}
        begin = 0
        while begin < len(forms):
            begin, unsure = self._store.insert(begin, numbers, boxes, self._variables, results)
            if unsure:
                decided[begin] = self._file_one(forms[begin])
                results.hit_ends[begin] = results.hit_ends[begin - 1] if begin else 0
                begin += 1
        return self._told(results, decided)

    def _told(self, results: Results, decided: dict[int, Insertion]) -> list[Insertion]:
        told: list[Insertion] = []
        hits, start = results.hits[: results.hit_ends[-1]].tolist(), 0
        for number, (witness, end) in enumerate(
            zip(results.witnesses.tolist(), results.hit_ends.tolist(), strict=True)
        ):
            if number in decided:
                told.append(decided[number])
            elif witness >= 0:
                told.append(Insertion(self._at(witness).first, ()))
            else:
                told.append(Insertion(None, tuple([self._at(hit).first for hit in hits[start:end]])))
            start = end
        return told

    def _file_one(self, form: Form) -> Insertion:
        """Insert a form that has to do with Boolean ones, or that nothing meets."""
        self._decisions = self._limits.exact_decisions
        witness = self._coverer(form)
        if witness is not None:
            self._store.put_under(form.number, witness.number)
            return Insertion(witness.first, ())
        covered = self._covered_roots(form)
        for root in covered:
            self._drop_rows(root)
            self._store.put_under(root.number, form.number)
        self._store.count_root(1 - len(covered))
        if form.hull is None:
            self._never_is_root = True
        else:
            self._store.add_row(2 * form.number, form.hull, self._variables)
        if form.inner is not None:
            self._store.add_row(2 * form.number + 1, form.inner, self._variables)
        return Insertion(None, tuple(root.first for root in covered))

    def _coverer(self, form: Form) -> Form | None:
        """A root that covers a form."""
        if form.hull is None:
            root = self._store.any_root()
            return None if root is None else self._at(root)
        found = self._store.search(form.hull, self._variables, COVERED if form.boolean else BOTH)
        if found.witness >= 0:
            return self._at(found.witness)
        candidates = found.candidates
        if form.inner is not None and form.bounds.inner:
            wider = self._store.search(form.inner, self._variables, COVERED, everything=True)
            candidates = sorted({*candidates, *wider.candidates})
        return next((root for root in map(self._at, candidates) if self._covers(root, form)), None)

    def _covered_roots(self, form: Form) -> list[Form]:
        if form.hull is None:
            return []
        found = self._store.search(form.hull, self._variables, COVERS, everything=True)
        return [root for root in map(self._at, found.hits) if self._covers(form, root)]

    def _covers(self, outer: Form, inner: Form) -> bool:
        """Whether one form covers another: by their bounds, else by an exact decision."""
        if any(box.covers(inner.bounds.hull) for box in outer.bounds.inner):
            return True
        if not outer.boolean and inner.bounds.complete:
            return False
        if not all(outer.bounds.hull.covers(box) for box in inner.bounds.inner):
            return False
        if not self._decisions:
            return False
        self._decisions -= 1
        return self._decide(self._condition(outer), self._condition(inner))

    def _condition(self, form: Form) -> Filter:
        if isinstance(form.key, Conjunction):
            return form.key.to_filter(self._semantics, schema=self._schema)
        return form.key

    def _decide(self, outer: Filter, inner: Filter) -> bool:
        return covers(
            outer,
            inner,
            semantics=self._semantics,
            defaults=self._defaults,
            schema=self._schema,
            limits=self._limits.decision,
        )

    def _drop_rows(self, form: Form) -> None:
        if form.hull is None:
            self._never_is_root = False
        else:
            self._store.drop_row(2 * form.number)
        if form.inner is not None:
            self._store.drop_row(2 * form.number + 1)

    def _lone_never(self) -> Form | None:
        """What nothing meets, where it is a root: then it is the only one."""
        return self._by_key[UNSATISFIABLE] if self._never_is_root else None


def _second_row(form: Form) -> Conjunction:
    return form.bounds.inner[0] if form.bounds.inner else form.bounds.hull


def _age(form: Form) -> int:
    return form.age
