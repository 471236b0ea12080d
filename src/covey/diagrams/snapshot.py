"""A shared diagram at rest: flat, restricted if wanted, ready to be evaluated.

Matching has two steps (Li, Hou and Jacobsen, section 3.3): the predicate index gives each variable its truth, then
one pass over the nodes gives each root its value. EvalBDD serves `sql`, `simple` and `default`; MVEvalBDD serves
`strict`; the sweep serves all of them for many events at once.

Under `strict` a root's value is only half the answer. The semantics is syntactic: an event must define every
attribute that the filter names. A reduced diagram may have lost a test that doesn't matter, a restricted one more of
them (`price < 1000 OR price > 500` restricts to true), and then MVEvalBDD sees no star although the attribute is
missing. So each subscription keeps the set of attributes that its filter names, equal sets are kept once, and a
match needs a true root and an adequate event. Where the event is adequate no star arises in the subscription's part
of the diagram, so that the root's value is the two-valued truth. Since an inadequate event never gets through,
restriction may take every attribute as defined.

A snapshot uses the diagram's predicate index, and refuses to work once the diagram has changed. It keeps the nodes'
values in one buffer, so that two threads need two snapshots.
"""

from __future__ import annotations

from collections.abc import Hashable, Mapping, Sequence
from dataclasses import replace
from typing import Any

import numpy as np
from numpy.typing import NDArray

from covey.diagrams.attribute_tests import TRUE, Truths
from covey.diagrams.flat import FlatDiagram
from covey.diagrams.kernels import cache_groups, eval_bdd, mv_eval_bdd, sweep_groups
from covey.diagrams.restriction import restrict
from covey.diagrams.shared import SharedDiagram
from covey.diagrams.worlds import ANY, Domain
from covey.errors import CoveyError
from covey.filters.semantics import Defaults, Lookup, attribute_value

CACHE_BYTES = 1 << 20
"""What the rows of one group may take in a sweep: most of a second-level cache."""

_WORD = 64


class Snapshot:
    """The roots of a shared diagram, to be matched against events."""

    def __init__(
        self, diagram: SharedDiagram, *, restricted: bool = True, domains: Mapping[str, Domain] | None = None
    ) -> None:
        """`domains`: what is known of attributes beforehand; events must keep to it, and restriction profits."""
        self.ids: list[Hashable] = list(diagram)
        self.semantics = diagram.semantics
        self._diagram = diagram
        self._version = diagram.version
        sets: dict[frozenset[str], int] = {}
        self._set_of_root = np.array(
            [sets.setdefault(diagram[identifier].attributes, len(sets)) for identifier in self.ids], dtype=np.intp
        )
        by_set = np.argsort(self._set_of_root, kind="stable")
        self._set_sizes = np.bincount(self._set_of_root, minlength=len(sets))
        self._roots_of_set = np.split(by_set, np.cumsum(self._set_sizes)[:-1])
        self._names = sorted(frozenset[str]().union(*sets))
        self._set_words = _words([[name in named for name in self._names] for named in sets], len(self._names))
        flat = diagram.flatten()
        self.flat: FlatDiagram = restrict(flat, diagram.index.test, self._known(domains)) if restricted else flat
        self._run_start, self._run_variable = self.flat.runs()
        self._value = np.zeros(len(self.flat.variable), dtype=np.uint8)

    def match(self, event: Mapping[str, Any], *, defaults: Defaults | None = None) -> list[Hashable]:
        """The ids of the subscriptions that the event meets."""
        return [self.ids[number] for number in self.matching(event, defaults=defaults).tolist()]

    def matching(self, event: Mapping[str, Any], *, defaults: Defaults | None = None) -> NDArray[np.intp]:
        """The places in `ids` of the subscriptions that the event meets, ascending.

        Under `strict` only roots whose attributes the event defines are read, so that a sparse event costs less.
        """
        self._pass(self.truths(event, defaults=defaults))
        if self.semantics != "strict":
            return np.flatnonzero(self._value[self.flat.roots] == TRUE)
        adequate = self._adequate_sets(self._lookup(event, None))
        count = int(self._set_sizes[adequate].sum())
        if count == 0:
            return np.empty(0, dtype=np.intp)
        if 4 * count > len(self.ids):  # Most must be read: better all of them, in order.
            return np.flatnonzero((self._value[self.flat.roots] == TRUE) & adequate[self._set_of_root])
        candidates = np.concatenate([self._roots_of_set[each] for each in np.flatnonzero(adequate)])
        return np.sort(candidates[self._value[self.flat.roots[candidates]] == TRUE])

    def truths(self, event: Mapping[str, Any], *, defaults: Defaults | None = None) -> Truths:
        """The first step: each variable's truth."""
        if self._version != self._diagram.version:
            raise CoveyError("the diagram has changed since this snapshot; take a new one")
        lookup = self._lookup(event, defaults)
        return self._diagram.index.truth_assignment(lookup, three_valued=self.semantics == "sql")

    def evaluate(self, truths: Truths) -> Truths:
        """The second step: each root's value. Under `strict` UNDEFINED stands for star."""
        self._pass(truths)
        return self._value[self.flat.roots]

    def match_many(
        self, events: Sequence[Mapping[str, Any]], *, defaults: Defaults | None = None, cache_bytes: int = CACHE_BYTES
    ) -> list[list[Hashable]]:
        """For each event the ids of the subscriptions that it meets, 64 events at a time a word."""
        if not self.ids or not events:
            return [[] for _ in events]
        truths = np.stack([self.truths(event, defaults=defaults) for event in events])
        met = self.sweep(pack((truths == TRUE).T), cache_bytes=cache_bytes)
        if self.semantics == "strict":
            adequate = np.stack([self._adequate_sets(self._lookup(event, None)) for event in events])
            met &= pack(adequate.T)[self._set_of_root]
        matrix = unpack(met, len(events))
        return [[self.ids[number] for number in np.flatnonzero(matrix[:, at])] for at in range(len(events))]

    def sweep(self, bits: NDArray[np.uint64], *, cache_bytes: int = CACHE_BYTES) -> NDArray[np.uint64]:
        """Each root's value for the events of `bits` (a row a variable, a bit an event)."""
        flat = self.flat
        words = bits.shape[1]
        # Neighbouring roots share most: those of one variable, and of these the ones with the same children.
        order = np.argsort(flat.roots, kind="stable").astype(np.uint32)
        groups = cache_groups(flat.variable, flat.low, flat.high, flat.roots, order, cache_bytes // (8 * words))
        rows = np.empty((int(np.diff(groups[0]).max()), words), dtype=np.uint64)
        result = np.empty((len(flat.roots), words), dtype=np.uint64)
        sweep_groups(*groups, np.ascontiguousarray(bits), rows, result)
        return result

    def _lookup(self, event: Mapping[str, Any], defaults: Defaults | None) -> Lookup:
        if self.semantics == "default" and defaults is not None:
            given = defaults
            return lambda name: given.get(name) if (found := attribute_value(event, name)) is None else found
        return lambda name: attribute_value(event, name)

    def _pass(self, truths: Truths) -> None:
        algorithm = mv_eval_bdd if self.semantics == "strict" else eval_bdd
        algorithm(self._run_start, self._run_variable, self.flat.low, self.flat.high, truths, self._value)

    def _adequate_sets(self, lookup: Lookup) -> NDArray[np.bool_]:
        """Which sets of attributes the event defines as a whole."""
        defined = _words([[lookup(name) is not None for name in self._names]], len(self._names))
        adequate: NDArray[np.bool_] = np.logical_not((self._set_words & ~defined).any(axis=1))
        return adequate

    def _known(self, domains: Mapping[str, Domain] | None) -> Mapping[str, Domain]:
        given = domains or {}
        if self.semantics != "strict":
            return given
        return {name: replace(given.get(name, ANY), required=True) for name in self._names}


def pack(truths: NDArray[np.bool_]) -> NDArray[np.uint64]:
    """Rows of truths as rows of 64-bit words, the first event in the lowest bit."""
    rows, events = truths.shape
    padded = np.zeros((rows, max(1, -(-events // _WORD)) * _WORD), dtype=np.bool_)
    padded[:, :events] = truths
    return np.packbits(padded, axis=1, bitorder="little").view("<u8").astype(np.uint64)


def unpack(words: NDArray[np.uint64], events: int) -> NDArray[np.bool_]:
    """The inverse of `pack`, for that many events."""
    octets = np.ascontiguousarray(words.astype("<u8")).view(np.uint8)
    return np.unpackbits(octets, axis=1, count=events, bitorder="little").astype(np.bool_)


def _words(rows: Sequence[Sequence[bool]], width: int) -> NDArray[np.uint64]:
    return pack(np.array(rows, dtype=np.bool_).reshape(len(rows), width))
