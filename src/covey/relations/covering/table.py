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
Conjunctions are exact and answered by kernels. Boolean filters are filed under a hull and an inner box (`bounds.py`),
which tell a conjunction whether it has to do with any of them. Which Boolean filters those are, and which have to do
with each other, is asked of witnesses (`witnesses.py`, `sieve.py`): whoever covers a filter matches all events that
meet it. What witnesses and bounds leave open is decided by `covey.relations.exact`, `exact_decisions` of them for each
insertion at most; an event by which a decision says no becomes a witness. What is beyond that limit, or what the
decision itself leaves open, counts as not covering: the table may then have a root too many, and never one too few.
Conjunctions get witnesses when a Boolean filter may cover them.
"""

from __future__ import annotations

from collections.abc import Hashable, Iterable, Iterator, Sequence
from dataclasses import dataclass
from typing import Final

import numpy as np

from covey.errors import DuplicateIdError, UnknownIdError
from covey.events.meaning import Meaning
from covey.events.schema import Schema
from covey.filters.algebra import FALSE, And, Filter
from covey.filters.predicates import Predicate
from covey.filters.semantics import Defaults, Semantics
from covey.kernels.value_sets import COVERED, COVERS
from covey.relations.conjunctions import UNSATISFIABLE, Conjunction, conjunction_of
from covey.relations.covering.bounds import Bounds, bounds_of
from covey.relations.covering.forms import Form, Identity, Key, identity_of
from covey.relations.covering.roots import BOTH, RELATED_SIGNATURES, Results, RootStore
from covey.relations.covering.sieve import Coded, WitnessSieve
from covey.relations.covering.variables import RELATED_VARIABLES, RELATION_BYTES, VariableIndex
from covey.relations.covering.witnesses import corners_meet, witnesses_of
from covey.relations.exact import DEFAULT_RELATION_LIMITS, Event, RelationLimits, decide_covers_or_show
from covey.relations.steps import Budget, LaterError


@dataclass(frozen=True, slots=True)
class CoveringLimits:
    """What a table may take before it does with less."""

    exact_decisions: int = 64
    """Exact decisions about Boolean filters for one insertion; beyond, candidates count as not covering."""

    decision: RelationLimits = DEFAULT_RELATION_LIMITS
    """What one of them may cost."""

    counterexamples: int = 8
    """Events by which decisions said no that are kept for each Boolean filter, besides its own witnesses."""

    related_variables: int = RELATED_VARIABLES
    """Value sets of one attribute whose relation is kept; beyond, they are compared each time."""

    relation_bytes: int = RELATION_BYTES
    """Bytes of all relations; beyond, as above."""

    related_signatures: int = RELATED_SIGNATURES
    """Pairs of attribute sets that are listed; beyond, searches go through all attribute sets."""


DEFAULT_COVERING_LIMITS: Final = CoveringLimits()

TOGETHER: Final = 16
"""Conjunctions that are inserted in one pass: between two of them the budget is looked at."""
CONJUNCTION_STEPS: Final = 60
"""Steps that the insertion of a conjunction counts as, besides what it looks at."""
BOOLEAN_STEPS: Final = 100
"""The same of a Boolean filter, and of reading one."""
SIEVED_STEPS: Final = 20
"""Steps that giving a conjunction witnesses counts as."""
SIEVED_TOGETHER: Final = 64
"""Conjunctions that get witnesses in one piece: the first Boolean filter asks for those of all that there are."""
ROOTS_PER_STEP: Final = 256
"""Roots that kernels look at in one step."""


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
    left: tuple[Hashable, ...] = ()
    """Subscriptions that are no longer in the table, since the budget ended before it was known where they belong."""


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
        self._meaning = Meaning(semantics, defaults, schema)
        self._limits = limits
        self._filters: dict[Hashable, Filter | Conjunction] = {}
        self._forms: dict[Hashable, Form] = {}
        self._by_identity: dict[Identity, Form] = {}
        self._numbered: list[Form | None] = []
        self._free: list[int] = []
        self._age = 0
        self._variables = VariableIndex(limits.related_variables, limits.relation_bytes)
        self._store = RootStore(limits.related_signatures)
        self._sieve = WitnessSieve()
        self._unsieved: dict[int, None] = {}
        """Conjunctions that may be roots and have no witnesses yet."""
        self._boolean_roots = 0
        self._wide_roots = 0
        schema = self._meaning.schema
        self._implied_tests = schema is not None and bool(schema.required_by)
        """Whether types of events imply tests: conjunctions leave those out, so hulls rule out too much."""
        self._decisions = 0
        self._budget: Budget | None = None
        self._decided: dict[tuple[Filter, Filter], bool] = {}
        """What was decided about a filter for which the budget wasn't enough."""
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
        return self._meaning.semantics

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
            return given.to_filter(self._meaning.semantics, schema=self._meaning.schema)
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
        """Add a subscription. A `Conjunction` must have been made under the table's `Meaning`."""
        return self.insert_many([(id, filter)])[0]

    def insert_many(
        self, subscriptions: Iterable[tuple[Hashable, Filter | Conjunction]], budget: Budget | None = None
    ) -> list[Insertion]:
        """Add subscriptions in order, as if one by one; all of them, or none where one can't be added. With a budget,
        as many of them from the first on as it allows; what was decided about the next one isn't decided again."""
        given = list(subscriptions)
        self._check_ids([id for id, _ in given])
        self._budget = budget
        insertions = self._insert_some(given, 0)
        while insertions and len(insertions) < len(given) and not self._is_late():
            done = self._insert_some(given, len(insertions))
            if not done:
                break
            insertions += done
        if len(insertions) == len(given):
            self._decided.clear()
        self._store.tidy()
        self._tidy_sieve()
        return insertions

    def _insert_some(self, all_given: list[tuple[Hashable, Filter | Conjunction]], begin: int) -> list[Insertion]:
        """Insert from one on what is read together: all of it, or with a budget up to a Boolean filter, since what the
        budget doesn't reach is read in vain."""
        read: list[tuple[Key, Bounds | None]] = []
        try:
            for at in range(begin, len(all_given)):
                _, filter = all_given[at]
                if read and self._budget is not None and (read[-1][1] is not None or self._is_late()):
                    break
                read.append(self._read(filter))
        except LaterError:
            pass
        given = all_given[begin : begin + len(read)]
        self._store.make_room_for_forms(len(self._numbered) + len(given))
        insertions: list[Insertion | None] = [None] * len(given)
        places: list[int] = []
        forms: list[Form] = []
        for place, ((id, filter), (key, bounds)) in enumerate(zip(given, read, strict=True)):
            self._filters[id] = filter
            identity = identity_of(key, bounds)
            form = self._by_identity.get(identity)
            if form is None:
                self._age += 1
                form = self._by_identity[identity] = Form(key, bounds, identity, id, self._age)
                self._enter(form)
                forms.append(form)
                places.append(place)
            else:
                form.join(id)
                insertions[place] = Insertion(form.first, ())
            self._forms[id] = form
        outcomes = self._file(forms)
        for place, outcome in zip(places, outcomes, strict=False):
            insertions[place] = outcome
        if len(outcomes) < len(forms):
            first = places[len(outcomes)]
            self._withdraw([id for id, _ in given[first:]])
            del insertions[first:]
        return [insertion for insertion in insertions if insertion is not None]

    def _withdraw(self, ids: list[Hashable]) -> None:
        """Take out subscriptions that entered last and whose forms aren't filed, or are those of others."""
        for id in reversed(ids):
            form = self._forms.pop(id)
            del self._filters[id]
            if form.others:
                form.leave(id)
            else:
                self._give_back(form)

    def remove(self, id: Hashable, budget: Budget | None = None) -> Removal:
        """Take a subscription out. Where a budget isn't enough for all that it covered, the rest of that is taken out
        too and told, to be inserted again."""
        form = self._form(id)
        self._budget = budget
        del self._forms[id], self._filters[id]
        is_root = self._store.store.parent[form.number] < 0
        if form.others:
            return Removal((form.first,)) if form.leave(id) and is_root else _NOTHING_CHANGED
        removal = self._remove_root(form) if is_root else self._remove_covered(form)
        self._give_back(form)
        self._store.tidy()
        self._tidy_sieve()
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
        schema = self._meaning.schema
        condition = given if schema is None else schema.check(given)
        if _is_flat(condition):
            conjunction = conjunction_of(condition, self._meaning)
            if conjunction is not None:
                return conjunction, None
        self._spend(BOOLEAN_STEPS)
        bounds = bounds_of(condition, self._meaning)
        if not bounds.hull.satisfiable or (not bounds.inner and self._decide(FALSE, condition)[0]):
            return UNSATISFIABLE, None
        if bounds.complete and len(bounds.inner) == 1:
            return bounds.inner[0], None
        return condition, bounds

    def _enter(self, form: Form) -> None:
        """Give a new form its number, its variables and its boxes."""
        key = form.key
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
            if not form.is_wide or not form.bounds.complete:
                form.inner = self._store.box(self._variables.take_all(_second_row(form).sets))

    def _give_back(self, form: Form) -> None:
        for box in (form.hull, form.inner):
            for variable in box.variables if box is not None else ():
                self._variables.release(variable)
        if form.boolean:
            self._store.store.boolean[form.number] = 0
        self._forget_witnesses(form)
        self._unsieved.pop(form.number, None)
        del self._by_identity[form.identity]
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
        for orphan in orphans:
            # Until they are filed they are no roots, and whoever is filed before them must not find them.
            self._forget_witnesses(orphan)
            self._unsieved.pop(orphan.number, None)
        outcomes = self._file(orphans)
        filed, left = orphans[: len(outcomes)], orphans[len(outcomes) :]
        parent = self._store.store.parent
        recovered = tuple(orphan.first for orphan in filed if parent[orphan.number] < 0)
        own = {orphan.first for orphan in filed}
        hit = {id: None for outcome in outcomes for id in outcome.covers if id not in own}
        return Removal(recovered, tuple(hit), tuple(id for orphan in left for id in self._take_out_all(orphan)))

    def _take_out_all(self, form: Form) -> list[Hashable]:
        """Take out a form that is under nothing, with all that is under it; gives the ids."""
        ids: list[Hashable] = []
        stack = [form]
        while stack:
            form = stack.pop()
            stack += map(self._at, self._store.orphan(form.number))
            for id in (form.first, *(form.others or ())):
                del self._forms[id], self._filters[id]
                ids.append(id)
            self._give_back(form)
        return ids

    def _file(self, forms: list[Form]) -> list[Insertion]:
        """Insert forms that are no roots and under nothing, in order; as many of them as the budget allows."""
        outcomes: list[Insertion] = []
        while len(outcomes) < len(forms):
            if outcomes and self._is_late():
                break
            begin = len(outcomes)
            first = forms[begin]
            never = self._lone_never()
            if never is not None:
                # All that is satisfiable covers what nothing meets; the first to come takes it.
                self._store.count_root(-1)
                self._never_is_root = False
                self._store.put_under(never.number, first.number)
                (outcome,) = self._file([first])
                outcomes.append(Insertion(outcome.covered_by, (*outcome.covers, never.first)))
            elif first.boolean or first.hull is None:
                try:
                    outcomes.append(self._file_one(first))
                except LaterError:
                    break
            else:
                end = len(forms) if self._budget is None else min(len(forms), begin + TOGETHER)
                end = next((at for at in range(begin, end) if forms[at].boolean or forms[at].hull is None), end)
                outcomes += self._file_conjunctions(forms[begin:end])
                if len(outcomes) < end:
                    break
        return outcomes

    def _file_conjunctions(self, forms: list[Form]) -> list[Insertion]:
        if self._wide_roots or (self._implied_tests and self._boolean_roots):
            # No hull tells whether they have to do with a conjunction.
            return self._file_one_by_one(forms)
        self._spend(len(forms) * (CONJUNCTION_STEPS + self._store.roots // ROOTS_PER_STEP))
        self._unsieved.update((form.number, None) for form in forms if form.slot < 0)
        numbers = np.fromiter((form.number for form in forms), np.int64, len(forms))
        boxes = [form.hull for form in forms if form.hull is not None]
        results = Results(len(forms), self._store.roots)
        decided: dict[int, Insertion] = {}
        begin = 0
        while begin < len(forms):
            begin, unsure = self._store.insert(begin, numbers, boxes, self._variables, results)
            if unsure:
                try:
                    decided[begin] = self._file_one(forms[begin])
                except LaterError:
                    break
                results.hit_ends[begin] = results.hit_ends[begin - 1] if begin else 0
                begin += 1
        return self._told(results, decided, begin)

    def _file_one_by_one(self, forms: list[Form]) -> list[Insertion]:
        outcomes: list[Insertion] = []
        for form in forms:
            if outcomes and self._is_late():
                break
            try:
                outcomes.append(self._file_one(form))
            except LaterError:
                break
        return outcomes

    def _told(self, results: Results, decided: dict[int, Insertion], count: int) -> list[Insertion]:
        told: list[Insertion] = []
        ends = results.hit_ends[:count].tolist()
        hits, start = results.hits[: ends[-1] if ends else 0].tolist(), 0
        for number, (witness, end) in enumerate(zip(results.witnesses[:count].tolist(), ends, strict=True)):
            if number in decided:
                told.append(decided[number])
            elif witness >= 0:
                told.append(Insertion(self._at(witness).first, ()))
            else:
                told.append(Insertion(None, tuple([self._at(hit).first for hit in hits[start:end]])))
            start = end
        return told

    def _file_one(self, form: Form) -> Insertion:
        """Insert a form that has to do with Boolean ones, or that nothing meets. Nothing has changed where it raises
        LaterError."""
        self._spend(BOOLEAN_STEPS + self._store.roots // ROOTS_PER_STEP)
        self._decisions = self._limits.exact_decisions
        if form.hull is None:
            return self._file_never(form)
        coded = self._coded(form)
        witness = self._coverer(form, coded)
        if witness is not None:
            self._store.put_under(form.number, witness.number)
            return Insertion(witness.first, ())
        covered = self._covered_roots(form, coded)
        for root in covered:
            self._drop_rows(root)
            self._store.put_under(root.number, form.number)
        self._store.count_root(1 - len(covered))
        self._add_rows(form, coded)
        return Insertion(None, tuple(root.first for root in covered))

    def _file_never(self, form: Form) -> Insertion:
        """Insert what nothing meets: any root covers it."""
        root = self._store.any_root()
        if root is None:
            root = self._sieve.any_root()
        if root is None:
            self._store.count_root(1)
            self._never_is_root = True
            return Insertion(None, ())
        self._store.put_under(form.number, root)
        return Insertion(self._at(root).first, ())

    def _coverer(self, form: Form, coded: Coded) -> Form | None:
        """A root that covers a form: a conjunction that covers its hull, else one that its witnesses leave."""
        assert form.hull is not None
        if self._has_conjunctions:
            found = self._store.search(form.hull, self._variables, COVERED if form.boolean else BOTH)
            if found.witness >= 0:
                return self._at(found.witness)
        candidates = self._sieve.may_cover(coded)
        if form.inner is not None and not form.bounds.complete and self._has_conjunctions:
            # The hull isn't the least: a conjunction may cover the filter and not its hull.
            wider = self._store.search(form.inner, self._variables, COVERED, everything=True)
            candidates += [root for root in wider.candidates if not self._at(root).boolean]
        return next((root for root in map(self._at, candidates) if self._covers(root, form)), None)

    def _covered_roots(self, form: Form, coded: Coded) -> list[Form]:
        """The roots that a form covers."""
        assert form.hull is not None
        candidates: set[int] = set()
        if form.is_wide or (form.boolean and self._implied_tests):
            self._sieve_conjunctions(list(self._unsieved))
        elif self._has_conjunctions:
            found = self._store.search(form.hull, self._variables, COVERS, everything=True)
            inside = [root for root in found.hits if not self._at(root).boolean]
            if form.boolean:
                self._sieve_conjunctions(inside)
                inside = self._sieve.covered_among([self._at(root).slot for root in inside], coded)
            candidates.update(inside)
        candidates.update(self._sieve.may_be_covered(coded))
        parent = self._store.store.parent
        roots = [self._at(root) for root in sorted(candidates) if parent[root] < 0 and root != form.number]
        return [root for root in roots if self._covers(form, root)]

    @property
    def _has_conjunctions(self) -> bool:
        return self._store.roots > self._boolean_roots

    def _coded(self, form: Form) -> Coded:
        """A form's boxes and witnesses."""
        inner = form.bounds.inner
        if corners_meet(inner, self._meaning):
            return self._sieve.coded(form.boxes, form.counterexamples, inner)
        found = witnesses_of(form.key, inner, self._meaning)
        return self._sieve.coded(form.boxes, [*found, *form.counterexamples])

    def _sieve_conjunctions(self, numbers: Sequence[int]) -> None:
        """Give conjunctions that are roots witnesses; raises LaterError where a budget ends before all have some. Each
        budget does for a piece of them, and those that have witnesses keep them: whoever asks again gets on."""
        parent = self._store.store.parent
        made = 0
        for number in numbers:
            form = self._at(number)
            if form.slot < 0 and parent[number] < 0:
                if made >= SIEVED_TOGETHER and self._is_late():
                    raise LaterError
                form.slot = self._sieve.add(number, self._coded(form), outer=False)
                self._spend(SIEVED_STEPS)
                made += 1
            self._unsieved.pop(number, None)

    def _forget_witnesses(self, form: Form) -> None:
        if form.slot >= 0:
            self._sieve.remove(form.slot)
            form.slot = -1

    def _tidy_sieve(self) -> None:
        if self._sieve.is_untidy():
            for number, slot in self._sieve.tidy():
                self._at(number).slot = slot

    def _covers(self, outer: Form, inner: Form) -> bool:
        """Whether one form covers another: by their bounds, else by an exact decision."""
        if outer.bounds.certainly_cover(inner.bounds):
            return True
        if not outer.boolean and inner.bounds.complete:
            return False
        if outer.bounds.certainly_miss(inner.bounds, self._meaning) or not self._decisions:
            return False
        condition = self._condition(outer)
        if not all(self._meaning.matches(condition, event) for event in inner.counterexamples):
            return False
        self._decisions -= 1
        covers, shown = self._decide(condition, self._condition(inner))
        if shown is not None:
            self._keep_counterexample(inner, shown)
        return covers

    def _keep_counterexample(self, form: Form, event: Event) -> None:
        """An event that showed that a form isn't covered is a witness of it."""
        if len(form.counterexamples) < self._limits.counterexamples and self._meaning.matches(
            self._condition(form), event
        ):
            form.counterexamples = (*form.counterexamples, event)
            if form.slot >= 0:
                self._sieve.add_witness(form.slot, event)

    def _condition(self, form: Form) -> Filter:
        if isinstance(form.key, Conjunction):
            return form.key.to_filter(self._meaning.semantics, schema=self._meaning.schema)
        return form.key

    def _decide(self, outer: Filter, inner: Filter) -> tuple[bool, Event | None]:
        if self._budget is None:
            covers, shown = decide_covers_or_show(outer, inner, self._meaning, self._limits.decision)
            return covers is True, shown
        known = self._decided.get((outer, inner))
        if known is not None:
            return known, None
        covers, shown = decide_covers_or_show(outer, inner, self._meaning, self._limits.decision, self._budget)
        self._decided[outer, inner] = covers is True
        return covers is True, shown

    def _is_late(self) -> bool:
        return self._budget is not None and self._budget.left <= 0

    def _spend(self, steps: int) -> None:
        if self._budget is not None:
            self._budget.spend(steps)

    def _add_rows(self, form: Form, coded: Coded) -> None:
        """File a root. One whose hull says nothing has no rows: they would be in every search."""
        assert form.hull is not None
        if form.is_wide:
            self._wide_roots += 1
        else:
            self._store.add_row(2 * form.number, form.hull, self._variables)
            if form.inner is not None:
                self._store.add_row(2 * form.number + 1, form.inner, self._variables)
        if form.boolean:
            form.slot = self._sieve.add(form.number, coded, outer=True)
            self._boolean_roots += 1
        elif form.slot < 0:
            self._unsieved[form.number] = None

    def _drop_rows(self, form: Form) -> None:
        if form.hull is None:
            self._never_is_root = False
        elif form.is_wide:
            self._wide_roots -= 1
        else:
            self._store.drop_row(2 * form.number)
            if form.inner is not None:
                self._store.drop_row(2 * form.number + 1)
        self._boolean_roots -= form.boolean
        self._forget_witnesses(form)

    def _lone_never(self) -> Form | None:
        """What nothing meets, where it is a root: then it is the only one."""
        return self._by_identity[UNSATISFIABLE] if self._never_is_root else None


def _is_flat(condition: Filter) -> bool:
    """Whether a filter is a conjunction of tests: then it is read as one, else as a Boolean filter that may be one."""
    if type(condition) is And:
        return all(isinstance(part, Predicate) for part in condition.parts)
    return isinstance(condition, Predicate)


def _second_row(form: Form) -> Conjunction:
    return form.bounds.inner[0] if form.bounds.inner else form.bounds.hull


def _age(form: Form) -> int:
    return form.age
