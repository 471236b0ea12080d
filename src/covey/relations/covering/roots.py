"""The roots of a covering table, filed by the attributes that they name, and the forest of what they cover.

A conjunction covers another only if it names no attribute that the other doesn't. So roots are filed by *signature*,
their set of attributes, and each signature has lists of its subsets and supersets: a search looks at its own
signature for both directions, at subsets for roots that cover the new one, and at supersets for roots that it covers.
With twenty attributes and some four tests a subscription that leaves a few hundred of a hundred thousand roots. Where
many roots share a signature, they are divided by their variable in one attribute, the one in which the fewest pairs
are related, and a variable that has nothing to do with the new one's is passed over with all its roots.

The arrays and what happens on them are in `root_kernels.py`; this class gives them room and numbers signatures.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any, Final, NamedTuple

import numpy as np
from numpy.typing import NDArray

from covey.kernels import roots as kernels
from covey.kernels.roots import Store
from covey.kernels.value_sets import COVERED, COVERS
from covey.relations.covering.variables import VariableIndex
from covey.relations.growing_arrays import grown

RELATED_SIGNATURES: Final = 1 << 22
"""Pairs of signatures, one a subset of the other, that are listed. Beyond, searches go through all signatures."""

_LEAST_WASTE: Final = 1 << 16

Ints = NDArray[np.int32]
Longs = NDArray[np.int64]


_OF_FORM: Final = ("parent", "child", "after", "before", "boolean")
_OF_HANDLE: Final = ("place_bucket", "place_row")
_NOTHING_YET: Final = {"parent", "child", "first_bucket", "variable_bucket"}


class Box(NamedTuple):
    """A conjunction as the store sees it: its signature, and a variable for each attribute of it."""

    signature: int
    variables: tuple[int, ...]


class Found(NamedTuple):
    """What a search found: a form that covers, or forms that are covered; candidates that could cover."""

    witness: int
    hits: list[int]
    candidates: list[int]


class RootStore:
    """Rows of roots, signatures, and who is under whom. Forms are numbered by the table."""

    def __init__(self, related_signatures: int = RELATED_SIGNATURES) -> None:
        self._related_signatures = related_signatures
        self._signatures: dict[tuple[int, ...], int] = {}
        self._masks = np.zeros((16, 1), np.uint64)
        self._related = np.zeros(64, np.int64)
        self._pairs = 0
        self._attributes_used = 0
        self.store = _empty_store()
        self._slots = np.full(64, -1, np.int64)
        self._columns = np.zeros(64, np.int64)
        self._asked = np.zeros(64, np.int64)

    @property
    def roots(self) -> int:
        """How many forms are roots."""
        return int(self.store.marks[kernels.ROOTS])

    @property
    def signatures(self) -> int:
        """How many signatures there are, those that had roots once included."""
        return len(self._signatures)

    def count_root(self, change: int) -> None:
        """Note that there is a root more or less whose rows the caller sees to."""
        self.store.marks[kernels.ROOTS] += change

    def make_room_for_forms(self, forms: int) -> None:
        """Arrays for forms numbered below this."""
        self._grow(_OF_FORM, forms)
        self._grow(_OF_HANDLE, 2 * forms)

    def box(self, pairs: list[tuple[int, int]]) -> Box:
        """A conjunction, from pairs of an attribute and a variable of it."""
        if len(pairs) > 1:
            pairs.sort()
        attributes = tuple([attribute for attribute, _ in pairs])
        signature = self._signatures.get(attributes)
        if signature is None:
            signature = self._enter(attributes)
        return Box(signature, tuple([variable for _, variable in pairs]))

    def search(self, box: Box, index: VariableIndex, wanted: int, *, everything: bool = False) -> Found:
        """One pass over the roots; see `root_kernels.search`."""
        self._make_scratch(index, len(box.variables))
        self._make_room_for_variables(index)
        rows = int(self.store.marks[kernels.ROWS])
        hits, maybe = np.empty(rows, np.int64), np.empty(rows, np.int64)
        variables = np.array(box.variables, np.int32)
        witness, found, doubtful = kernels.search(
            box.signature, variables, 0, wanted, everything, index.sets, self.store, self._slots, self._columns,
            self._asked, hits, 0, maybe,
        )  # fmt: skip
        return Found(int(witness), hits[:found].tolist(), maybe[:doubtful].tolist())

    def insert(
        self, begin: int, forms: Longs, boxes: Sequence[Box], index: VariableIndex, results: Results
    ) -> tuple[int, bool]:
        """Insert conjunctions from number `begin` on. Gives where it stopped; True where that one is for the caller to
        decide, since Boolean forms may have to do with it."""
        widest = max((len(box.variables) for box in boxes), default=0)
        self._make_scratch(index, widest)
        self._make_room_for_variables(index)
        signatures = np.fromiter((box.signature for box in boxes), np.int64, len(boxes))
        lengths = np.fromiter((len(box.variables) for box in boxes), np.int64, len(boxes))
        firsts = np.cumsum(lengths) - lengths
        variables = np.fromiter((variable for box in boxes for variable in box.variables), np.int32, int(lengths.sum()))
        maybe = np.empty(int(self.store.marks[kernels.ROWS]) + len(boxes), np.int64)
        while True:
            begin, reason = kernels.insert_forms(
                begin, forms, signatures, firsts, variables, index.sets, self.store, self._slots, self._columns,
                self._asked, results.witnesses, results.hit_ends, results.hits, maybe,
            )  # fmt: skip
            if reason != kernels.CROWDED:
                return begin, reason == kernels.UNSURE
            self._make_room_for_rows()

    def add_row(self, handle: int, box: Box, index: VariableIndex) -> None:
        """File a root's row."""
        self._make_room_for_variables(index)
        while kernels.crowded(box.signature, self.store):
            self._make_room_for_rows()
        variables = np.array(box.variables, np.int32)
        kernels.add_row(handle, box.signature, variables, 0, self.store, index.sets)

    def drop_row(self, handle: int) -> None:
        """Take a root's row out."""
        kernels.drop_row(handle, self.store)

    def put_under(self, form: int, parent: int) -> None:
        """A form is covered by another."""
        kernels.put_under(form, parent, self.store)

    def take_out(self, form: int) -> None:
        """A covered form leaves."""
        kernels.take_out(form, self.store)

    def orphan(self, form: int) -> list[int]:
        """Free the forms that are directly under one, and give them."""
        children: list[int] = kernels.orphan(form, self.store).tolist()
        return children

    def children(self, form: int) -> list[int]:
        """The forms that are directly under one."""
        found, at = [], int(self.store.child[form])
        while at >= 0:
            found.append(at)
            at = int(self.store.after[at])
        return found

    def any_root(self) -> int | None:
        """Some root that has a row; None where there is none."""
        store = self.store
        for signature in np.flatnonzero(store.signatures[: len(self._signatures), kernels.ROWS_HERE])[:1]:
            bucket = max(store.first_bucket[signature], store.signatures[signature, kernels.POINTS])
            return int(store.cells[store.buckets[bucket, 0]]) >> 1
        return None

    def tidy(self) -> None:
        """Move rows together where most cells hold nothing any more."""
        marks = self.store.marks
        used, wasted = int(marks[kernels.CELLS_USED]), int(marks[kernels.CELLS_WASTED])
        if wasted > _LEAST_WASTE and 2 * wasted > used:
            cells = np.zeros(used, np.int32)
            kernels.repack(self.store, cells)
            self.store = self.store._replace(cells=cells)

    def _enter(self, attributes: tuple[int, ...]) -> int:
        signature = self._signatures[attributes] = len(self._signatures)
        self._grow(("signatures", "first_bucket"), signature + 1)
        self._attributes_used += len(attributes)
        self._grow(("attributes",), self._attributes_used)
        store = self.store
        start = self._attributes_used - len(attributes)
        store.attributes[start : self._attributes_used] = attributes
        record = (len(attributes), start, -1, 0, kernels.PIVOT_FROM, -1, -1, -1)
        store.signatures[signature, : len(record)] = record
        store.marks[kernels.SIGNATURES] = signature + 1
        self._mask(signature, attributes)
        if store.marks[kernels.LINKED]:
            self._link(signature)
        return signature

    def _mask(self, signature: int, attributes: tuple[int, ...]) -> None:
        words = max(attributes, default=0) // 64 + 1
        if words > self._masks.shape[1]:
            wider = np.zeros((len(self._masks), words), np.uint64)
            wider[:, : self._masks.shape[1]] = self._masks
            self._masks = wider
        self._masks = grown(self._masks, signature + 1)
        for attribute in attributes:
            self._masks[signature, attribute // 64] |= np.uint64(1 << attribute % 64)

    def _link(self, signature: int) -> None:
        self._related = grown(self._related, signature)
        count = kernels.related_signatures(signature, self._masks, self._related)
        self._pairs += count
        if self._pairs > self._related_signatures:
            self.store.marks[kernels.LINKED] = 0
            return
        self._grow(("links",), int(self.store.marks[kernels.LINKS_USED]) + 2 * count)
        kernels.link_related(signature, self._related[:count], self.store)

    def _make_scratch(self, index: VariableIndex, width: int) -> None:
        self._slots = grown(self._slots, index.attributes, -1)
        self._columns = grown(self._columns, width)
        self._asked = grown(self._asked, width)

    def _make_room_for_variables(self, index: VariableIndex) -> None:
        self._grow(("variable_bucket",), len(index.sets.points))

    def _make_room_for_rows(self) -> None:
        self._grow(("buckets",), 2 * len(self.store.buckets))
        self._grow(("cells",), 2 * len(self.store.cells))

    def _grow(self, names: tuple[str, ...], needed: int) -> None:
        if needed > len(getattr(self.store, names[0])):
            arrays: dict[str, Any] = {
                name: grown(getattr(self.store, name), needed, -1 if name in _NOTHING_YET else 0) for name in names
            }
            self.store = self.store._replace(**arrays)


class Results:
    """Room for what inserting a batch gives: for each form a witness, or the hits that end at `hit_ends`."""

    def __init__(self, forms: int, roots: int) -> None:
        self.witnesses = np.full(forms, -1, np.int64)
        self.hit_ends = np.zeros(forms, np.int64)
        # A root is hit once at most, by a form that takes its place; a search that is given up may write some more.
        self.hits = np.empty(2 * (forms + roots) + 8, np.int64)


def _empty_store() -> Store:
    def empty(name: str) -> NDArray[Any]:
        shape = (16, _COLUMNS[name]) if name in _COLUMNS else (16,)
        return np.full(shape, -1 if name in _NOTHING_YET else 0, np.uint8 if name == "boolean" else np.int32)

    marks = np.zeros(kernels.MARKS, np.int64)
    marks[kernels.FREE_BUCKET] = -1
    marks[kernels.LINKED] = 1
    return Store(marks, *(empty(name) for name in Store._fields[1:]))


_COLUMNS: Final = {
    "signatures": kernels.SIGNATURE_COLUMNS,
    "links": kernels.LINK_COLUMNS,
    "buckets": kernels.BUCKET_COLUMNS,
}
BOTH: Final = COVERED | COVERS
