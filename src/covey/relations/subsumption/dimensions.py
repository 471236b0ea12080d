"""Dimensions of the content space: how the values of one attribute become integer cells, in order and exactly.

Subtracting rectangles is only right if no value is lost between two bounds: `(1, 2)` and `[2, 3]` meet, while
`(1, 2)` and `(2, 3)` leave the point 2. Floating-point bounds with open and closed ends make every comparison a case
distinction. Instead each dimension cuts its values into *cells*, numbered by int64 in the values' order, such that
every bound a subscription may use falls between two cells. An interval is then half-open, `[low, high)` in cells:
`x <= c` ends at `cell(c) + 1`, `x < c` at `cell(c)`, and all geometry is integer comparison.

`Number`   Integers and doubles together, as filters compare them. Below 2^53 in magnitude every such number is a
           double, and the bit patterns of doubles, read as integers, are in their order: a cell is a double. From 2^53
           on, integers lie between neighbouring doubles, so a cell for each double alternates with a cell for the
           gap above it. 2^512 is the last bound (the cells would no longer fit into 64 bits); larger numbers share
           one cell, below infinity and then NaN, which filters order above everything.
`Integer`  Whole numbers only: the cell is the value. What lies beyond ±2^62 shares one cell on each side.
`Instant`  Timestamps by the microsecond.
`Nominal`  Known values in the order given, and one cell for all other values (Section 2.1 of Jafarpour et al.).

An attribute that events may lack has two more cells below all values: *missing*, and *another kind* (a string where
numbers are expected), which comparisons don't meet either but IS NULL tells apart. A subscription that doesn't name
the attribute includes both.

A bound that falls inside a cell (2^60 + 3 among `Number`s) is refused by RectangleError, never rounded.
"""

from __future__ import annotations

import math
import struct
from abc import ABC, abstractmethod
from collections.abc import Iterable
from dataclasses import dataclass
from datetime import datetime
from typing import Any, ClassVar

from covey.errors import CoveyError
from covey.filters.values import Kind, Scalar, Value, kind_of, microseconds, normalise

DENSE = 2.0**53
"""From here on, integers lie between neighbouring doubles."""

LARGEST_NUMBER = 2.0**512
"""The largest finite bound in a `Number` dimension."""

LARGEST_INTEGER = 2**62
"""The largest bound in an `Integer` dimension."""

ABSENT_CELLS = 2
MISSING, ANOTHER_KIND = 0, 1

Cells = tuple[int, int]
"""A half-open interval of cells."""


class RectangleError(CoveyError):
    """A bound or a rectangle that the space has no exact cells for."""


def _bits(number: float) -> int:
    return int(struct.unpack("<q", struct.pack("<d", number))[0])


DENSE_CELL = _bits(DENSE)
_LAST_NUMBER_CELL = 2 * _bits(LARGEST_NUMBER) - DENSE_CELL
_INFINITY_CELL = _LAST_NUMBER_CELL + 2


@dataclass(frozen=True, slots=True)
class Range:
    """An interval of values; None is unbounded. Ends are closed unless said otherwise."""

    low: Any = None
    high: Any = None
    low_open: bool = False
    high_open: bool = False


@dataclass(frozen=True, slots=True)
class Dimension(ABC):
    """One attribute of the space. `optional` says that events may lack it or have a value of another kind."""

    attribute: str

    @abstractmethod
    def kind(self) -> Kind:
        """The kind of the attribute's values."""

    @abstractmethod
    def values(self) -> Cells:
        """The cells of all values inside the dimension's bounds."""

    @abstractmethod
    def cells(self, wanted: Range) -> Cells | None:
        """The cells of an interval of values, cut to the dimension's bounds; None where nothing is left."""

    @abstractmethod
    def is_optional(self) -> bool:
        """Whether events may lack the attribute."""

    @abstractmethod
    def cell(self, value: Value | None) -> int | None:
        """The cell that an event's value falls into; None outside of the space."""

    def bounds(self) -> tuple[float, float] | None:
        """The values at both ends where a width is best measured in values; None where in cells."""
        return None

    def whole(self) -> Cells:
        """All cells, those of absent values included."""
        low, high = self.values()
        return (low - ABSENT_CELLS if self.is_optional() else low), high

    def absent(self, which: int) -> int | None:
        """The cell MISSING or ANOTHER_KIND; None where events always have a value of the right kind."""
        return self.values()[0] - ABSENT_CELLS + which if self.is_optional() else None


@dataclass(frozen=True, slots=True)
class _Ordered(Dimension):
    low: Any = None
    high: Any = None
    optional: bool = True

    def __post_init__(self) -> None:
        if self.values()[0] >= self.values()[1]:
            raise RectangleError(f"attribute {self.attribute}: no value lies between {self.low!r} and {self.high!r}")

    def is_optional(self) -> bool:
        return self.optional

    def values(self) -> Cells:
        first, last = self._ends()
        if self.low is not None:
            first = max(first, self._lower(self._checked(self.low), False))
        if self.high is not None:
            last = min(last, self._upper(self._checked(self.high), False))
        return first, last

    def cells(self, wanted: Range) -> Cells | None:
        low, high = self.values()
        if wanted.low is not None:
            low = max(low, self._lower(self._checked(wanted.low), wanted.low_open))
        if wanted.high is not None:
            high = min(high, self._upper(self._checked(wanted.high), wanted.high_open))
        return (low, high) if low < high else None

    def _checked(self, bound: Any) -> Scalar:
        value = normalise(bound)
        if value is None or isinstance(value, tuple) or kind_of(value) is not self.kind():
            raise RectangleError(f"attribute {self.attribute}: {bound!r} is not a {self.kind().value}")
        return value

    @abstractmethod
    def _ends(self) -> Cells: ...

    @abstractmethod
    def _lower(self, value: Scalar, is_open: bool) -> int: ...

    @abstractmethod
    def _upper(self, value: Scalar, is_open: bool) -> int: ...


@dataclass(frozen=True, slots=True)
class Number(_Ordered):
    """Integers and doubles, between `low` and `high` (both included) where given."""

    def kind(self) -> Kind:  # noqa: D102
        return Kind.NUMBER

    def bounds(self) -> tuple[float, float] | None:  # noqa: D102
        if self.low is None or self.high is None or not self.low < self.high or math.isinf(self.high - self.low):
            return None
        return float(self.low), float(self.high)

    def cell(self, value: Value | None) -> int | None:  # noqa: D102
        if value is None:
            return self.absent(MISSING)
        if kind_of(value) is not Kind.NUMBER:
            return self.absent(ANOTHER_KIND)
        assert isinstance(value, (int, float))
        return _inside(_number_cell(value), self.values())

    def _ends(self) -> Cells:
        return -_INFINITY_CELL, _INFINITY_CELL + 2

    def _lower(self, value: Scalar, is_open: bool) -> int:
        return self._cut(value, is_open)

    def _upper(self, value: Scalar, is_open: bool) -> int:
        return self._cut(value, not is_open)

    def _cut(self, value: Scalar, above: bool) -> int:
        """The first cell above a cut that lies just above or just below a value."""
        assert isinstance(value, (int, float))
        if LARGEST_NUMBER < abs(value) < math.inf:
            raise RectangleError(f"attribute {self.attribute}: {value} is beyond 2^512, the largest bound of a Number")
        if isinstance(value, float) or _is_double(value):
            return _number_cell(value) + above
        # So large, all numbers are whole: the cut is also on the other side of the value's neighbour.
        neighbour = value + 1 if above else value - 1
        if not _is_double(neighbour):
            raise RectangleError(f"attribute {self.attribute}: {value} lies between doubles; use an Integer dimension")
        return _number_cell(neighbour) + (not above)


def _is_double(value: int) -> bool:
    try:
        return float(value) == value
    except OverflowError:
        return False


def _number_cell(value: int | float) -> int:
    """The cell of any number; the symmetry of doubles makes the cell of -x minus the cell of x."""
    if math.isnan(value):
        return _INFINITY_CELL + 1
    size = abs(value)
    if size > LARGEST_NUMBER:
        cell = _INFINITY_CELL if size == math.inf else _LAST_NUMBER_CELL + 1
    else:
        double = float(size)
        if double > size:
            double = math.nextafter(double, 0.0)
        cell = _bits(double) + max(0, _bits(double) - DENSE_CELL) + (double != size)
    return -cell if value < 0 else cell


def _inside(cell: int, cells: Cells) -> int | None:
    return cell if cells[0] <= cell < cells[1] else None


@dataclass(frozen=True, slots=True)
class Integer(_Ordered):
    """Whole numbers, between `low` and `high` (both included) where given. Events must hold no fraction here."""

    def kind(self) -> Kind:  # noqa: D102
        return Kind.NUMBER

    def cell(self, value: Value | None) -> int | None:  # noqa: D102
        if value is None:
            return self.absent(MISSING)
        if kind_of(value) is not Kind.NUMBER:
            return self.absent(ANOTHER_KIND)
        if value != value or value in (math.inf, -math.inf) or int(value) != value:  # type: ignore[arg-type]
            raise RectangleError(f"attribute {self.attribute}: {value} is not whole; use a Number dimension")
        whole = int(value)  # type: ignore[arg-type]
        return _inside(max(-LARGEST_INTEGER - 1, min(LARGEST_INTEGER + 1, whole)), self.values())

    def _ends(self) -> Cells:
        return -LARGEST_INTEGER - 1, LARGEST_INTEGER + 2

    def _lower(self, value: Scalar, is_open: bool) -> int:
        assert isinstance(value, (int, float))
        if value == -math.inf:
            return self._ends()[0]
        if value == math.inf or value != value:
            return self._ends()[1]
        return self._exact(math.floor(value) + 1 if is_open else math.ceil(value))

    def _upper(self, value: Scalar, is_open: bool) -> int:
        assert isinstance(value, (int, float))
        if value == -math.inf:
            return self._ends()[0]
        if value == math.inf or value != value:
            return self._ends()[1]
        return self._exact(math.ceil(value) if is_open else math.floor(value) + 1)

    def _exact(self, cut: int) -> int:
        if not -LARGEST_INTEGER <= cut <= LARGEST_INTEGER + 1:
            raise RectangleError(f"attribute {self.attribute}: {cut} is beyond 2^62, the largest bound of an Integer")
        return cut


@dataclass(frozen=True, slots=True)
class Instant(_Ordered):
    """Timestamps, between `low` and `high` (both included) where given."""

    def kind(self) -> Kind:  # noqa: D102
        return Kind.TIMESTAMP

    def cell(self, value: Value | None) -> int | None:  # noqa: D102
        if value is None:
            return self.absent(MISSING)
        if not isinstance(value, datetime):
            return self.absent(ANOTHER_KIND)
        return _inside(microseconds(value), self.values())

    def _ends(self) -> Cells:
        return -LARGEST_INTEGER, LARGEST_INTEGER

    def _lower(self, value: Scalar, is_open: bool) -> int:
        assert isinstance(value, datetime)
        return microseconds(value) + is_open

    def _upper(self, value: Scalar, is_open: bool) -> int:
        assert isinstance(value, datetime)
        return microseconds(value) + (not is_open)


@dataclass(frozen=True, slots=True)
class Nominal(Dimension):
    """Values without an order of their own, placed in the order given; `other` adds a cell for all further values."""

    known: tuple[Scalar, ...]
    other: bool = True
    optional: bool = True

    MOST_VALUES: ClassVar[int] = 10_000

    def __init__(self, attribute: str, values: Iterable[Scalar], *, other: bool = True, optional: bool = True) -> None:
        known = tuple(values)
        object.__setattr__(self, "attribute", attribute)
        object.__setattr__(self, "known", known)
        object.__setattr__(self, "other", other)
        object.__setattr__(self, "optional", optional)
        if not known or len(set(known)) != len(known) or len({kind_of(value) for value in known}) != 1:
            raise RectangleError(f"attribute {attribute}: a Nominal needs distinct values of one kind")
        if len(known) > self.MOST_VALUES:
            raise RectangleError(f"attribute {attribute}: more than {self.MOST_VALUES} values")

    def kind(self) -> Kind:  # noqa: D102
        return kind_of(self.known[0])

    def is_optional(self) -> bool:  # noqa: D102
        return self.optional

    def values(self) -> Cells:  # noqa: D102
        return 0, len(self.known) + self.other

    def cells(self, wanted: Range) -> Cells | None:
        """The cells from one known value to another, in the nominal order; unbounded ends include `other`."""
        low, high = self.values()
        if wanted.low is not None:
            low = self._place(wanted.low) + wanted.low_open
        if wanted.high is not None:
            high = self._place(wanted.high) + (not wanted.high_open)
        return (low, high) if low < high else None

    def cell(self, value: Value | None) -> int | None:  # noqa: D102
        if value is None:
            return self.absent(MISSING)
        if kind_of(value) is not self.kind():
            return self.absent(ANOTHER_KIND)
        if value in self.known:
            return self.known.index(value)
        return len(self.known) if self.other else None

    def _place(self, value: Any) -> int:
        if value not in self.known:
            raise RectangleError(f"attribute {self.attribute}: {value!r} is not among the known values")
        return self.known.index(value)
