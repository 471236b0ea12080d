"""Arithmetic and comparison of whole columns, where NumPy gives exactly what the interpreter gives; else nothing.

A vector is a column of one type: int64, float64, or decimals as int64 with one scale; where it isn't `valid` its values
mean nothing. Whole numbers are computed only where the largest and the smallest of a batch show that nothing overflows,
and decimals only while they have up to 15 digits, which the nearest double keeps. Whatever isn't
sure is None, and the interpreter computes it (`term_columns.py`).
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass
from decimal import Decimal
from functools import cached_property
from typing import Any, Final

import numpy as np
from numpy.typing import NDArray

from covey.events.pieces import Piece
from covey.filters.terms import Call, Fixed, Path, Term

Valid = NDArray[np.bool_] | None

_EXACT: Final = 1 << 53
KEPT: Final = 10**15
"""Digits of a decimal that its nearest double keeps."""
_INT64: Final = 1 << 63
LARGEST_SCALE: Final = 15


@dataclass(frozen=True)
class Vector:
    """A column of one type of numbers."""

    values: NDArray[Any]
    """int64 or float64, one for each row; a single one for a constant."""
    valid: Valid
    """Which rows have a value; None for all."""
    scale: int = 0
    """Digits after the point, of decimals."""
    decimal: bool = False

    @cached_property
    def bound(self) -> int:
        """The largest distance of a whole number or of a decimal's digits from zero."""
        return max(abs(int(self.values.max())), abs(int(self.values.min()))) if len(self.values) else 0

    @property
    def is_double(self) -> bool:
        """Whether these are doubles."""
        return self.values.dtype == np.float64


class Vectors:
    """The vectors of a batch's terms, each computed once."""

    def __init__(self, columns: Mapping[str, tuple[Piece, ...]], length: int) -> None:
        self._columns = columns
        self._length = length
        self._known: dict[str, Vector | None] = {}

    def of(self, term: Term) -> Vector | None:
        """A term's column; None where it isn't surely what the interpreter gives."""
        if term.name not in self._known:
            self._known[term.name] = self._computed(term)
        return self._known[term.name]

    def _computed(self, term: Term) -> Vector | None:
        if isinstance(term, Path):
            return self._attribute(term.name)
        if isinstance(term, Fixed):
            return constant_vector(term.constant)
        if not isinstance(term, Call):
            return None
        operation = _OPERATIONS.get(term.function.name)
        if operation is None:
            return None
        arguments = [self.of(argument) for argument in term.arguments]
        known = [argument for argument in arguments if argument is not None]
        if len(known) != len(arguments):
            return None
        with np.errstate(all="ignore"):
            return operation(*known)

    def _attribute(self, name: str) -> Vector | None:
        pieces = self._columns[name]
        if len(pieces) != 1 or pieces[0].type not in ("int", "double"):
            return None
        (piece,) = pieces
        if piece.rows is None:
            return Vector(piece.values, None)
        values = np.zeros(self._length, dtype=piece.values.dtype)
        valid = np.zeros(self._length, dtype=np.bool_)
        values[piece.rows] = piece.values
        valid[piece.rows] = True
        return Vector(values, valid)


def pieces_of(vector: Vector, length: int) -> tuple[Piece, ...]:
    """A vector as a column."""
    values, valid = np.broadcast_to(vector.values, length), vector.valid
    valid = None if valid is None else np.broadcast_to(valid, length)
    if not vector.decimal:
        return _piece("double" if vector.is_double else "int", values, valid)
    power = 10**vector.scale
    whole = values % power == 0
    present = np.ones(length, dtype=np.bool_) if valid is None else valid
    return (
        *_piece("int", values // power, present & whole),
        *_piece("double", values.astype(np.float64) / float(power), present & ~whole),
    )


def _piece(kind: Any, values: NDArray[Any], valid: Valid) -> tuple[Piece, ...]:
    if valid is None or valid.all():
        return (Piece(kind, None, np.ascontiguousarray(values)),) if len(values) else ()
    rows = np.flatnonzero(valid)
    return (Piece(kind, rows, values[rows]),) if len(rows) else ()


def constant_vector(value: object) -> Vector | None:
    """A constant as a column of one; None where it is no number, or too large."""
    if isinstance(value, bool):
        return None
    if isinstance(value, int):
        return Vector(np.array([value], dtype=np.int64), None) if -_INT64 <= value < _INT64 else None
    if isinstance(value, float):
        return Vector(np.array([value]), None)
    if isinstance(value, Decimal):
        exponent = value.as_tuple().exponent
        scale = -exponent if isinstance(exponent, int) else 0
        digits = int(value.scaleb(scale)) if 0 <= scale <= LARGEST_SCALE else KEPT
        return Vector(np.array([digits], dtype=np.int64), None, scale, True) if abs(digits) < KEPT else None
    return None


def _both(left: Vector, right: Vector) -> Valid:
    if left.valid is None or right.valid is None:
        return left.valid if right.valid is None else right.valid
    return left.valid & right.valid


def as_doubles(vector: Vector) -> NDArray[np.float64]:
    """As doubles: of decimals the nearest ones, since their digits are below 2^53."""
    if vector.is_double:
        return vector.values
    exact: NDArray[np.float64] = vector.values.astype(np.float64)
    return exact / float(10**vector.scale) if vector.scale else exact


def _scaled(left: Vector, right: Vector) -> tuple[NDArray[np.int64], NDArray[np.int64], int] | None:
    """Whole numbers and decimals at one scale."""
    scale = max(left.scale, right.scale)
    scaled = []
    for one in (left, right):
        factor = 10 ** (scale - one.scale)
        if one.bound * factor >= _EXACT and factor > 1:
            return None
        scaled.append(one.values * factor if factor > 1 else one.values)
    return scaled[0], scaled[1], scale


def _scaled_bound(vector: Vector, scale: int) -> int:
    return int(vector.bound * 10 ** (scale - vector.scale))


def _sums(sign: int) -> Callable[[Vector, Vector], Vector | None]:
    def operation(left: Vector, right: Vector) -> Vector | None:
        valid = _both(left, right)
        if left.is_double or right.is_double:
            a, b = as_doubles(left), as_doubles(right)
            return Vector(a + b if sign > 0 else a - b, valid)
        scaled = _scaled(left, right)
        decimal = left.decimal or right.decimal
        if scaled is None or _scaled_bound(left, scaled[2]) + _scaled_bound(right, scaled[2]) >= (
            KEPT if decimal else _INT64
        ):
            return None
        return Vector(scaled[0] + sign * scaled[1], valid, scaled[2], decimal)

    return operation


def _product(left: Vector, right: Vector) -> Vector | None:
    valid = _both(left, right)
    if left.is_double or right.is_double:
        return Vector(as_doubles(left) * as_doubles(right), valid)
    decimal = left.decimal or right.decimal
    if left.bound * right.bound >= (KEPT if decimal else _INT64):
        return None
    scale = left.scale + right.scale
    return Vector(left.values * right.values, valid, scale, decimal) if scale <= LARGEST_SCALE else None


def _quotient(left: Vector, right: Vector) -> Vector | None:
    if (left.decimal or right.decimal) and not (left.is_double or right.is_double):
        return None
    a, b = as_doubles(left), as_doubles(right)
    defined = b != 0
    valid = _both(left, right)
    if not defined.all():
        valid = defined if valid is None else valid & defined
    return Vector(a / b, valid)


def _negative(one: Vector) -> Vector | None:
    if not one.is_double and one.bound >= _INT64:
        return None
    return Vector(-one.values, one.valid, one.scale, one.decimal)


def _comparison(left: Vector, right: Vector) -> Vector | None:
    valid = _both(left, right)
    if left.is_double or right.is_double:
        for one in (left, right):  # a whole number compares by its exact value, a decimal as its nearest double
            if not one.is_double and not one.decimal and one.bound > _EXACT:
                return None
        a, b = as_doubles(left), as_doubles(right)
        result = (a > b).astype(np.int64) - (a < b).astype(np.int64)
        odd_a, odd_b = np.isnan(a), np.isnan(b)
        if odd_a.any() or odd_b.any():
            result = np.where(odd_a | odd_b, odd_a.astype(np.int64) - odd_b.astype(np.int64), result)
        return Vector(result, valid)
    scaled = _scaled(left, right)
    if scaled is None:
        return None
    lower, upper = scaled[0] < scaled[1], scaled[0] > scaled[1]
    return Vector(upper.astype(np.int64) - lower.astype(np.int64), valid)


_OPERATIONS: Final[dict[str, Callable[..., Vector | None]]] = {
    "+": _sums(1),
    "-": _sums(-1),
    "*": _product,
    "/": _quotient,
    "negative": _negative,
    "compare": _comparison,
}
