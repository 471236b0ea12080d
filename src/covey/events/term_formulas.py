"""Terms as formulas: steps of arithmetic that a kernel computes for one event where it is asked for.

A formula is what `term_vectors` computes of whole columns, with the same conditions: whole numbers only where the
largest and smallest of a batch show that nothing overflows, on the way as at the end, and decimals as whole numbers
with a scale while they have up to 15 digits. Whatever isn't sure is no formula, and its column is computed instead.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping
from dataclasses import dataclass, field
from functools import cached_property
from typing import Any, Final, NamedTuple

import numpy as np
from numpy.typing import NDArray

from covey.events.pieces import Piece
from covey.events.term_vectors import KEPT, LARGEST_SCALE, Vector, Vectors, constant_vector, pieces_of
from covey.filters.terms import Call, Fixed, Path, Term, term_of
from covey.kernels import on_demand

_kernels = on_demand("formulas")

MOST_STEPS: Final = 64
"""Of a formula, which is also the most that its stack has to hold."""
_EXACT: Final = 1 << 53
_INT64: Final = 1 << 63
_DOUBLE: Final = -1
"""Instead of a bound: these are doubles."""


class _Part(NamedTuple):
    """Steps that leave a value on the stack: a double, or a whole number of no more than a bound; of decimals it is
    their digits, so many of them after the point."""

    steps: tuple[tuple[int, int], ...]
    bound: int
    scale: int = 0
    decimal: bool = False

    @property
    def is_double(self) -> bool:
        return self.bound == _DOUBLE


@dataclass
class Formulas:
    """The formulas of a batch, by their terms' names, over columns and constants that they share."""

    length: int
    vectors: Vectors
    steps: dict[str, tuple[tuple[int, int], ...]] = field(default_factory=dict)
    columns: list[Vector] = field(default_factory=list)
    constants: list[int] = field(default_factory=list)
    """As int64; of doubles their bits."""
    _places: dict[str, int] = field(default_factory=dict)
    _doubles: dict[int, int] = field(default_factory=dict)
    """Columns of whole numbers that stand again as doubles, and where."""

    def add(self, term: Term) -> bool:
        """Take a term; False where it is no formula."""
        part = self._part(term)
        if part is None or not isinstance(term, Call):
            return False
        # As in a column, a decimal that isn't whole is its nearest double.
        steps = self._as_double(part) if part.decimal else part.steps
        if len(steps) >= MOST_STEPS:
            return False
        end = _kernels.END_DOUBLE if part.is_double or part.decimal else _kernels.END
        self.steps[term.name] = (*steps, (end, 0))
        return True

    def pieces(self, names: Iterable[str]) -> dict[str, tuple[Piece, ...]]:
        """The columns of some formulas after all."""
        found = {}
        for name in names:
            vector = self.vectors.of(term_of(name))
            assert vector is not None, f"{name} is a formula, so its column can be computed"
            found[name] = pieces_of(vector, self.length)
        return found

    def _part(self, term: Term) -> _Part | None:
        if isinstance(term, Path):
            return self._column(term)
        if isinstance(term, Fixed):
            vector = constant_vector(term.constant)
            return None if vector is None else self._constant(vector)
        operation = _OPERATIONS.get(term.function.name) if isinstance(term, Call) else None
        if operation is None:
            return None
        assert isinstance(term, Call)
        parts = [self._part(argument) for argument in term.arguments]
        known = [part for part in parts if part is not None]
        return operation(self, *known) if len(known) == len(parts) else None

    def _constant(self, vector: Vector) -> _Part:
        step = self._put(int(vector.values.view(np.int64)[0]))
        return _Part((step,), _DOUBLE if vector.is_double else vector.bound, vector.scale, vector.decimal)

    def _put(self, bits: int) -> tuple[int, int]:
        self.constants.append(bits)
        return _kernels.CONSTANT, len(self.constants) - 1

    def _as_double(self, part: _Part) -> tuple[tuple[int, int], ...]:
        """The steps of a part that leaves a double."""
        if part.is_double:
            return part.steps
        (operation, operand), *others = part.steps
        if not others and not part.scale and operation == _kernels.COLUMN:
            return (self._double_column(operand),)
        if not others and operation == _kernels.CONSTANT:
            nearest = np.float64(self.constants[operand]) / np.float64(10**part.scale)
            return (self._put(int(nearest.view(np.int64))),)
        steps = (*part.steps, (_kernels.TO_DOUBLE, 0))
        if not part.scale:
            return steps
        power = self._put(int(np.float64(10**part.scale).view(np.int64)))
        return (*steps, power, (_kernels.DIVIDE, 0))

    def _double_column(self, place: int) -> tuple[int, int]:
        """A column of whole numbers once more, as doubles."""
        vector = self.columns[place]
        if place not in self._doubles:
            self._doubles[place] = len(self.columns)
            self.columns.append(Vector(vector.values.astype(np.float64), vector.valid))
        return _kernels.COLUMN, self._doubles[place]

    def _at_scale(self, part: _Part, scale: int) -> _Part | None:
        """Digits with so many behind the point; None where they may be too many."""
        factor = 10 ** (scale - part.scale)
        if factor == 1:
            return part
        if part.bound * factor >= _EXACT:
            return None
        return _Part((*part.steps, self._put(factor), (_kernels.MULTIPLY, 0)), part.bound * factor, scale, part.decimal)

    def doubles(self, left: _Part, right: _Part, operation: int) -> _Part:
        """Two values as doubles, and what is done with them."""
        return _Part((*self._as_double(left), *self._as_double(right), (operation, 0)), _DOUBLE)

    def whole(self, left: _Part, right: _Part, operation: int) -> _Part | None:
        """Two numbers at one scale, and what is done with them; the bound is that of their sum."""
        scale = max(left.scale, right.scale)
        one, other = self._at_scale(left, scale), self._at_scale(right, scale)
        if one is None or other is None:
            return None
        decimal = left.decimal or right.decimal
        return _Part((*one.steps, *other.steps, (operation, 0)), one.bound + other.bound, scale, decimal)

    def _column(self, path: Path) -> _Part | None:
        vector = self.vectors.of(path)
        if vector is None:
            return None
        place = self._places.get(path.name)
        if place is None:
            place = self._places[path.name] = len(self.columns)
            self.columns.append(vector)
        return _Part(((_kernels.COLUMN, place),), _DOUBLE if vector.is_double else vector.bound)

    @cached_property
    def table(self) -> tuple[NDArray[np.int64], NDArray[np.uint8], NDArray[np.int32]]:
        """The columns as rows of 64 bits, which events have a value in those that lack some, and where that is."""
        bits = np.empty((len(self.columns), self.length), dtype=np.int64)
        present: list[NDArray[Any]] = []
        rows = np.full(len(self.columns), -1, dtype=np.int32)
        for place, vector in enumerate(self.columns):
            bits[place] = vector.values.view(np.int64)
            if vector.valid is not None:
                rows[place] = len(present)
                present.append(vector.valid.view(np.uint8))
        return bits, np.stack(present) if present else np.zeros((0, 1), np.uint8), rows


def formulas_of(
    terms: Iterable[Term], vectors: Vectors, length: int, defaults: Mapping[str, object]
) -> Formulas | None:
    """The formulas among some terms; None where there are none. Defaults count before terms do, so a term with an
    attribute that has one isn't a formula."""
    found = Formulas(length, vectors)
    for term in terms:
        if not any(name in defaults for name in term.attributes()):
            found.add(term)
    return found if found.steps else None


def _within(part: _Part | None) -> _Part | None:
    """A part whose value surely fits."""
    return part if part is not None and part.bound < (KEPT if part.decimal else _INT64) else None


def _sum(formulas: Formulas, left: _Part, right: _Part) -> _Part | None:
    if left.is_double or right.is_double:
        return formulas.doubles(left, right, _kernels.ADD_DOUBLES)
    return _within(formulas.whole(left, right, _kernels.ADD))


def _difference(formulas: Formulas, left: _Part, right: _Part) -> _Part | None:
    if left.is_double or right.is_double:
        return formulas.doubles(left, right, _kernels.SUBTRACT_DOUBLES)
    return _within(formulas.whole(left, right, _kernels.SUBTRACT))


def _product(formulas: Formulas, left: _Part, right: _Part) -> _Part | None:
    if left.is_double or right.is_double:
        return formulas.doubles(left, right, _kernels.MULTIPLY_DOUBLES)
    steps, scale = (*left.steps, *right.steps, (_kernels.MULTIPLY, 0)), left.scale + right.scale
    if scale > LARGEST_SCALE:
        return None
    return _within(_Part(steps, left.bound * right.bound, scale, left.decimal or right.decimal))


def _quotient(formulas: Formulas, left: _Part, right: _Part) -> _Part | None:
    if (left.decimal or right.decimal) and not (left.is_double or right.is_double):
        return None
    return formulas.doubles(left, right, _kernels.DIVIDE)


def _negative(_formulas: Formulas, one: _Part) -> _Part | None:
    if one.is_double:
        return one._replace(steps=(*one.steps, (_kernels.NEGATE_DOUBLE, 0)))
    return None if one.bound >= _INT64 else one._replace(steps=(*one.steps, (_kernels.NEGATE, 0)))


def _comparison(formulas: Formulas, left: _Part, right: _Part) -> _Part | None:
    if left.is_double or right.is_double:
        # A whole number compares by its exact value, a decimal as its nearest double.
        if any(not part.decimal and part.bound > _EXACT for part in (left, right)):
            return None
        return formulas.doubles(left, right, _kernels.COMPARE_DOUBLES)._replace(bound=1)
    found = formulas.whole(left, right, _kernels.COMPARE)
    return None if found is None else _Part(found.steps, 1)


_OPERATIONS: Final[dict[str, Callable[..., _Part | None]]] = {
    "+": _sum,
    "-": _difference,
    "*": _product,
    "/": _quotient,
    "negative": _negative,
    "compare": _comparison,
}
