"""Kernels that hold witnesses (events that meet a filter) against filters, both in codes (`covering/codes.py`).

Memory layout. A *point* is a witness: rows of three doubles, the attribute's number, the value's kind and the value's
code; the last row of a point has its attribute as ~number. An attribute that no row names is missing. A point without
any attribute is one row of the attribute NOWHERE.

A *test* is one interval of an attribute's values, a row of five doubles: the attribute's number, the kind, the lowest
and the highest code, and what ends with the row: nothing (0), the tests on this attribute, of which one must hold (1),
or with them a box, all of whose attributes must hold (2). A filter is its boxes one after the other, of which one must
hold. A box that asks for nothing is one row of the kind ANYTHING.

Form f has its points at `points[spans[f, 0]:spans[f, 1]]` and its tests at `tests[spans[f, 2]:spans[f, 3]]`.

An *entry* of a list is a row of four doubles: a form's slot, an attribute, and the lowest and highest number that the
form has there, of a point or of a box; the attribute is NOWHERE where the entry tells nothing. Entries lie side by
side, so most forms of a long list are left out before their points and tests, which lie anywhere, are looked at.

`kinds` and `codes` have an item for each attribute: what the point at hand has there; kinds are MISSING between calls.
"""

from __future__ import annotations

import numpy as np

from covey.kernels.jit import inner, kernel
from covey.kernels.types import Float64s, Float64Table, Int8s, Int32s, Int64, Int64Table

NUMBER, STRING, TIMESTAMP, BOOLEAN, LIST, MISSING, ANYTHING = range(7)

NOWHERE = 0
"""An attribute that no event has, so that a point always has a row."""

POINT_COLUMNS = 3
TEST_COLUMNS = 5
SPAN_COLUMNS = 4
ENTRY_COLUMNS = 4


@inner
def _meets(first, last, tests, kinds, codes):
    """Whether the point at hand is in one of the boxes."""
    box, held = True, False
    for row in range(first, last):
        if box and not held:
            attribute, kind = np.int64(tests[row, 0]), np.int8(tests[row, 1])
            held = kind == ANYTHING or (kinds[attribute] == kind and tests[row, 2] <= codes[attribute] <= tests[row, 3])
        if tests[row, 4] > 0:
            box = box and held
            held = False
            if tests[row, 4] > 1:
                if box:
                    return True
                box = True
    return False


@inner
def _take_up(row, points, kinds, codes):
    """Make the point that begins at a row the one at hand; gives the row after it."""
    while True:
        attribute = np.int64(points[row, 0])
        last = attribute < 0
        if last:
            attribute = ~attribute
        kinds[attribute] = np.int8(points[row, 1])
        codes[attribute] = points[row, 2]
        row += 1
        if last:
            return row


@inner
def _put_down(first, last, points, kinds):
    for row in range(first, last):
        attribute = np.int64(points[row, 0])
        kinds[attribute if attribute >= 0 else ~attribute] = MISSING


@kernel
def listed_around(entries: Float64Table, point: Float64Table, kinds: Int8s, codes: Float64s, forms: Int32s):
    """The forms of those entries, of boxes, that a point may be in, in `forms`; gives how many there are."""
    _take_up(np.int64(0), point, kinds, codes)
    count = np.int64(0)
    for row in range(len(entries)):
        attribute = np.int64(entries[row, 1])
        if attribute == NOWHERE or (
            kinds[attribute] == NUMBER and entries[row, 2] <= codes[attribute] <= entries[row, 3]
        ):
            forms[count] = np.int32(entries[row, 0])
            count += 1
    _put_down(np.int64(0), np.int64(len(point)), point, kinds)
    return count


@kernel
def listed_within(entries: Float64Table, box: Float64Table, forms: Int32s):
    """The forms of those entries, of points, that may be in a box, in `forms`; gives how many there are. A row of `box`
    is an attribute with the lowest and highest number that the box has there."""
    count = np.int64(0)
    for row in range(len(entries)):
        possible = True
        for at in range(len(box)):
            if box[at, 0] == entries[row, 1]:
                possible = box[at, 1] <= entries[row, 2] and entries[row, 3] <= box[at, 2]
        if possible:
            forms[count] = np.int32(entries[row, 0])
            count += 1
    return count


@kernel
def matching_all(
    forms: Int32s,
    count: Int64,
    points: Float64Table,
    tests: Float64Table,
    spans: Int64Table,
    kinds: Int8s,
    codes: Float64s,
):
    """Keep those of forms[:count] that match all of some points; gives how many are left."""
    row = np.int64(0)
    while row < len(points) and count:
        following = _take_up(row, points, kinds, codes)
        kept = np.int64(0)
        for at in range(count):
            form = forms[at]
            if _meets(spans[form, 2], spans[form, 3], tests, kinds, codes):
                forms[kept] = form
                kept += 1
        count = kept
        _put_down(row, following, points, kinds)
        row = following
    return count


@kernel
def all_matched(
    forms: Int32s,
    count: Int64,
    points: Float64Table,
    tests: Float64Table,
    spans: Int64Table,
    kinds: Int8s,
    codes: Float64s,
):
    """Keep those of forms[:count] whose points are all matched by some tests; gives how many are left."""
    kept = np.int64(0)
    for at in range(count):
        form = forms[at]
        row, last = spans[form, 0], spans[form, 1]
        met = True
        while row < last and met:
            following = _take_up(row, points, kinds, codes)
            met = _meets(np.int64(0), np.int64(len(tests)), tests, kinds, codes)
            _put_down(row, following, points, kinds)
            row = following
        if met:
            forms[kept] = form
            kept += 1
    return kept
