"""A set of subscriptions made smaller, step by step: identity, covering, merging, pruning.

What comes out matches whatever went in would match; without an imperfect step, nothing more. Every id that went in
stands behind just one entry, so a match on an entry names the candidates whose own filters then decide.

The steps go from the cheapest to the dearest, each on what the one before left: equal conjunctions once; what another
covers under it; perfect mergers (imperfect ones up to `imt`), and covering once more, since a merger may cover what its
parts didn't; then prunings that let a subscription grow by at most `prune`.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Sequence
from dataclasses import dataclass, field, replace
from typing import Literal, TypeAlias

from covey.errors import CoveyError, DuplicateIdError
from covey.events.meaning import Meaning
from covey.filters import Filter, Semantics
from covey.history import Chances
from covey.relations.conjunctions import Conjunction, conjunction_of
from covey.relations.covering import CoveringTable
from covey.relations.merging import Measure, merge_table
from covey.relations.progress import Progress, silent
from covey.relations.pruning import Dimension, Pruner, Target

How: TypeAlias = Literal["itself", "equal", "covered", "merged"]

_CHUNK = 20_000
"""Filters between two calls of `progress`."""


@dataclass(frozen=True, slots=True)
class Entry:
    """A filter that stands for subscriptions."""

    id: str
    filter: Filter
    stands_for: tuple[str, ...]
    how: tuple[How, ...] = ("itself",)
    """For each of these, how the entry came to stand for it."""
    form: Conjunction | None = field(default=None, repr=False, compare=False)
    """The filter's normal form, where it is known to be a conjunction."""


@dataclass(frozen=True, slots=True)
class Step:
    """What a step made of the table."""

    name: str
    before: int
    after: int
    seconds: float = 0.0


@dataclass(frozen=True, slots=True)
class Compacted:
    """The entries, and how they came about."""

    entries: list[Entry]
    steps: list[Step]


def compact(
    subscriptions: Iterable[tuple[str, Filter]],
    *,
    semantics: Semantics = "sql",
    chances: Chances | None = None,
    advertisements: Sequence[Filter] = (),
    merging: bool = True,
    imt: float = 0.0,
    measure: Measure = "degree",
    prune: float = 0.0,
    dimension: Dimension = "network",
    progress: Progress | None = None,
    clock: Callable[[], float] = lambda: 0.0,
) -> Compacted:
    """Fewer filters that match what the subscriptions match.

    `imt` is the imperfect merging threshold, `prune` by how much of all events a subscription may match more when parts
    of it are removed; both need `chances`, a profile or a sample of events. 0 keeps the result exact.
    `measure` says what the threshold bounds: the part of a merger's events that is in vain, or ("traffic") that part of
    all events.
    `clock`, such as `time.perf_counter`, tells how long each step takes; there is none in this room.
    """
    if (imt or prune) and chances is None:
        raise CoveyError("imt and prune are estimated from events; give chances=, a profile or a sample of events")
    report = progress or silent
    entries = _entries(subscriptions)
    steps: list[Step] = []

    def step(name: str, run: Callable[[list[Entry]], list[Entry]]) -> None:
        nonlocal entries
        start, before = clock(), len(entries)
        entries = run(entries)
        steps.append(Step(name, before, len(entries), clock() - start))

    step("identity", lambda given: _identical(given, semantics, report))
    step("covering", lambda given: _covering(given, semantics, report))
    if merging:
        name = f"merging up to {imt:g}" if imt else "merging"
        step(name, lambda given: _merging(given, semantics, chances, advertisements, imt, measure, report))
        step("covering of mergers", lambda given: _covering(given, semantics, report))
    if prune:
        assert chances is not None
        known = chances
        step(f"pruning up to {prune:g}", lambda given: _pruning(given, semantics, known, dimension, prune))
        step("identity of the pruned", lambda given: _identical(given, semantics, report))
        step("covering of the pruned", lambda given: _covering(given, semantics, report))
    return Compacted(entries, steps)


def _entries(subscriptions: Iterable[tuple[str, Filter]]) -> list[Entry]:
    entries: dict[str, Entry] = {}
    for id, condition in subscriptions:
        if id in entries:
            raise DuplicateIdError(f"a subscription with the id {id!r} occurs twice; give each an id of its own")
        entries[id] = Entry(id, condition, (id,))
    return list(entries.values())


def _identical(entries: list[Entry], semantics: Semantics, report: Progress) -> list[Entry]:
    """Filters of one normal form under the first of them."""
    groups: dict[object, list[Entry]] = {}
    meaning = Meaning(semantics)
    for number, entry in enumerate(entries):
        form = conjunction_of(entry.filter, meaning)
        groups.setdefault(entry.filter if form is None else form, []).append(replace(entry, form=form))
        if number % _CHUNK == 0:
            report("identity", number, len(entries))
    return [_under(group[0], group[1:], "equal") for group in groups.values()]


def _covering(entries: list[Entry], semantics: Semantics, report: Progress) -> list[Entry]:
    """What others cover under a root that covers it."""
    table = CoveringTable(semantics=semantics)
    for first in range(0, len(entries), _CHUNK):
        report("covering", first, len(entries))
        table.insert_many((entry.id, entry.form or entry.filter) for entry in entries[first : first + _CHUNK])
    behind: dict[str, list[Entry]] = {}
    by_id = {entry.id: entry for entry in entries}
    for id in by_id:
        root = id
        while (above := table.covered_by(root)) is not None:
            root = str(above)
        if root != id:
            behind.setdefault(root, []).append(by_id[id])
    return [_under(by_id[str(root)], behind.get(str(root), []), "covered") for root in table.roots()]


def _merging(
    entries: list[Entry],
    semantics: Semantics,
    chances: Chances | None,
    advertisements: Sequence[Filter],
    imt: float,
    measure: Measure,
    report: Progress,
) -> list[Entry]:
    by_id = {entry.id: entry for entry in entries}
    mergers = merge_table(
        ((entry.id, entry.filter) for entry in entries), imt=imt, chances=chances,
        advertisements=advertisements, semantics=semantics, measure=measure, progress=report,
    )  # fmt: skip
    merged: list[Entry] = []
    for merger in mergers:
        first, *others = (by_id[id] for id in merger.parts)
        merged.append(_under(first, others, "merged", merger.filter))
    return merged


def _pruning(
    entries: list[Entry], semantics: Semantics, chances: Chances, dimension: Dimension, prune: float
) -> list[Entry]:
    pruner = Pruner(((entry.id, entry.filter) for entry in entries), chances, dimension, semantics)
    pruner.prune(target=Target(degradation=prune))
    return [Entry(entry.id, pruner.filter(entry.id), entry.stands_for, entry.how) for entry in entries]


def _under(first: Entry, others: Sequence[Entry], how: How, condition: Filter | None = None) -> Entry:
    if not others:
        return first
    stands_for = (*first.stands_for, *(id for other in others for id in other.stands_for))
    ways = (*first.how, *(how for other in others for _ in other.stands_for))
    if condition is None:
        return replace(first, stands_for=stands_for, how=ways)
    whole = tuple(how if way == "itself" else way for way in ways)  # a merger is none of its parts
    return Entry(first.id, condition, stands_for, whole)
