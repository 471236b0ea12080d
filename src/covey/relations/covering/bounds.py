"""Boolean filters between two kinds of conjunctions: a hull that they imply, and inner boxes that imply them.

Whether one Boolean filter covers another is decided exactly elsewhere (`covey.relations.exact`), for a price. Most
pairs need no decision. With H(f) a conjunction that f implies and I(f) some satisfiable conjunctions that imply f:

- e covers n if one of I(e) covers H(n), or if I(n) is all of n and each of them is covered by one of I(e);
- e doesn't cover n unless H(e) covers each of I(n).

Both are questions about conjunctions, which the covering table answers by index. The boxes are the terms of a
disjunctive normal form, as many as `INNER_BOXES` allows; where that is all of them and every test is a value set, the
hull is the least there is: for each attribute the union of the boxes' sets. Whether the union of all is a box is found
out on the way: what `conjunction_of` finds to be a conjunction is one box here. Where it isn't, boxes aren't united,
since one that two boxes of another filter cover together would need a decision.

Three-valued logic makes four questions of a filter (is it true, false, not true, not false), which are closed under
all operators; a predicate answers each with a value set, or isn't understood (patterns, lists): then it says nothing in
the hull and has no inner box.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Final, Literal, TypeAlias

from covey.events.meaning import PLAIN, Meaning
from covey.filters.algebra import And, Constant, Filter, Is, Not, Or
from covey.filters.predicates import Predicate
from covey.filters.semantics import Semantics
from covey.relations.conjunctions import UNSATISFIABLE, Conjunction, conjunction_from, covers_under
from covey.relations.predicate_sets import from_predicate
from covey.relations.value_sets import DEFINED, ValueSet

INNER_BOXES: Final = 16
"""Inner boxes that are kept of a filter."""

_Question: TypeAlias = Literal["true", "false", "not true", "not false"]
_Sets: TypeAlias = dict[str, ValueSet]

_NEGATED: Final[dict[_Question, _Question]] = {
    "true": "false",
    "false": "true",
    "not true": "not false",
    "not false": "not true",
}


@dataclass(frozen=True, slots=True)
class Bounds:
    """A hull and inner boxes of a filter. `complete`: the filter is the union of the boxes."""

    hull: Conjunction
    inner: tuple[Conjunction, ...]
    complete: bool

    def certainly_cover(self, other: Bounds) -> bool:
        """Whether the boxes say that the filter covers another: each of its boxes, or its hull, is in one of them."""
        if any(box.covers(other.hull) for box in self.inner):
            return True
        return other.complete and all(any(box.covers(theirs) for box in self.inner) for theirs in other.inner)

    def certainly_miss(self, other: Bounds, meaning: Meaning) -> bool:
        """Whether the boxes say that the filter doesn't cover another: its hull leaves out one of the other's boxes."""
        return not all(covers_under(meaning, self.hull, box) for box in other.inner)


@dataclass(frozen=True, slots=True)
class _Part:
    """Bounds on the way: no hull where nothing meets the part."""

    hull: _Sets | None
    inner: tuple[_Sets, ...]
    complete: bool
    union: _Sets | None = None
    """The one box that is all of the part, where it is known to be one."""


_NEVER: Final = _Part(None, (), True)
_ALWAYS: Final = _Part({}, ({},), True, {})
_ANYTHING: Final = _Part({}, (), False)


def bounds_of(condition: Filter, meaning: Meaning = PLAIN) -> Bounds:
    """The bounds of a filter that was read."""
    semantics = meaning.semantics
    part = _part(condition, "true", semantics)
    if semantics == "strict":
        named = dict.fromkeys(condition.attributes(), DEFINED)
        part = _all([part, _Part(named, (named,), True, named)])
    if part.hull is None:
        return Bounds(UNSATISFIABLE, (), True)
    inner = part.inner if part.union is None else (part.union,)
    boxes = [conjunction_from(box.items(), meaning) for box in inner]
    kept = tuple(dict.fromkeys([box for box in boxes if box.satisfiable]))
    complete = part.complete or part.union is not None
    hull = _union(kept, meaning) if complete else conjunction_from(part.hull.items(), meaning)
    for box in kept:
        if box.covers(hull):
            return Bounds(box, (box,), True)
    return Bounds(hull, kept, complete)


def _union(boxes: tuple[Conjunction, ...], meaning: Meaning) -> Conjunction:
    """The least conjunction that covers all of some; they are in normal form already."""
    if not boxes:
        return UNSATISFIABLE
    result = dict(boxes[0].sets)
    for box in boxes[1:]:
        sets = dict(box.sets)
        result = {name: values | sets[name] for name, values in result.items() if name in sets}
    return conjunction_from(result.items(), meaning)


def _part(condition: Filter, question: _Question, semantics: Semantics) -> _Part:
    match condition:
        case Predicate():
            return _predicate(condition, question, semantics)
        case And(parts):
            return (_conjunction if question in ("true", "not false") else _disjunction)(parts, question, semantics)
        case Or(parts):
            return (_disjunction if question in ("true", "not false") else _conjunction)(parts, question, semantics)
        case Not(part):
            return _part(part, _NEGATED[question], semantics)
        case Constant(value):
            return _constant(value, question, semantics)
        case Is(part, wanted):
            return _is(part, wanted, question in ("true", "not false"), semantics)
    raise TypeError(f"{type(condition).__name__} is not a filter")


def _constant(value: bool | None, question: _Question, semantics: Semantics) -> _Part:
    truth = value if semantics == "sql" else bool(value)
    answers = {"true": truth is True, "false": truth is False, "not true": truth is not True}
    return _ALWAYS if answers.get(question, truth is not False) else _NEVER


def _is(part: Filter, wanted: bool | None, holds: bool, semantics: Semantics) -> _Part:
    """IS is never unknown: it holds or it doesn't."""
    if wanted is None:
        if semantics != "sql":
            return _NEVER if holds else _ALWAYS
        if holds:
            return _all([_part(part, "not true", semantics), _part(part, "not false", semantics)])
        return _any([_part(part, "true", semantics), _part(part, "false", semantics)])
    question: _Question = "true" if wanted else "false"
    negated: _Question = "not true" if wanted else "not false"
    return _part(part, question if holds else negated, semantics)


def _conjunction(parts: tuple[Filter, ...], question: _Question, semantics: Semantics) -> _Part:
    """Where all parts are as asked; tests are brought together at once, since most parts are."""
    sets: _Sets = {}
    understood = True
    others: list[_Part] = []
    for part in parts:
        test, asked = (part.part, _NEGATED[question]) if type(part) is Not else (part, question)
        if not isinstance(test, Predicate):
            others.append(_part(test, asked, semantics))
            continue
        values = _values(test, asked, semantics)
        if values is None:
            understood = False
            continue
        name = test.attribute
        if name in sets:
            values = values & sets[name]
        if values.is_empty:
            return _NEVER
        sets[name] = values
    tests = _Part(sets, (sets,), True, sets) if understood else _Part(sets, (), False)
    return _all([tests, *others]) if others else tests


def _disjunction(parts: tuple[Filter, ...], question: _Question, semantics: Semantics) -> _Part:
    return _any([_part(part, question, semantics) for part in parts])


def _predicate(predicate: Predicate, question: _Question, semantics: Semantics) -> _Part:
    values = _values(predicate, question, semantics)
    if values is None:
        return _ANYTHING
    if values.is_empty:
        return _NEVER
    sets = {predicate.attribute: values}
    return _Part(sets, (sets,), True, sets)


def _values(predicate: Predicate, question: _Question, semantics: Semantics) -> ValueSet | None:
    pair = from_predicate(predicate, semantics)
    if pair is None:
        return None
    if question == "true":
        return pair[0]
    if question == "false":
        return pair[1]
    return ~pair[0] if question == "not true" else ~pair[1]


def _all(parts: list[_Part]) -> _Part:
    result = parts[0] if parts else _ALWAYS
    for part in parts[1:]:
        if result.hull is None or part.hull is None:
            return _NEVER
        hull = _meet(result.hull, part.hull)
        if hull is None:
            return _NEVER
        met = [_meet(left, right) for left in result.inner for right in part.inner]
        inner, whole = _first([box for box in met if box is not None])
        union = None if result.union is None or part.union is None else _meet(result.union, part.union)
        result = _Part(hull, inner, whole and result.complete and part.complete, union)
    return result


def _any(parts: list[_Part]) -> _Part:
    possible = [part for part in parts if part.hull is not None]
    if len(possible) < 2 or possible[0].union == {}:
        return possible[0] if possible else _NEVER
    hull = possible[0].hull or {}
    for part in possible[1:]:
        theirs = part.hull or {}
        hull = {name: values | theirs[name] for name, values in hull.items() if name in theirs}
    inner, whole = _first([box for part in possible for box in part.inner])
    union = possible[0].union
    for part in possible[1:]:
        if part.union == {}:
            return _ALWAYS
        union = None if union is None or part.union is None else _united(union, part.union)
        if union == {}:
            return _ALWAYS
    return _Part(hull, inner, whole and all(part.complete for part in possible), union)


def _first(boxes: list[_Sets]) -> tuple[tuple[_Sets, ...], bool]:
    return tuple(boxes[:INNER_BOXES]), len(boxes) <= INNER_BOXES


def _united(left: _Sets, right: _Sets) -> _Sets | None:
    """The union of two boxes where it is a box: they differ in one attribute, or one covers the other."""
    if len(left) > len(right):
        left, right = right, left
    different, covers = [name for name in right if name not in left], True
    if len(left) + len(different) != len(right):
        return None  # each asks for an attribute that the other doesn't ask for
    for name, values in left.items():
        theirs = right[name]
        if values != theirs:
            different.append(name)
            covers = covers and values.issuperset(theirs)
    if covers:
        return left
    if len(different) > 1:
        inside = len(left) == len(right) and all(right[name].issuperset(values) for name, values in left.items())
        return right if inside else None
    (name,) = different
    union = dict(left)
    union[name] = left[name] | right[name]
    if union[name].is_everything:
        del union[name]
    return union


def _meet(left: _Sets, right: _Sets) -> _Sets | None:
    result = left | right
    for name in left.keys() & right.keys():
        both = left[name] & right[name]
        if both.is_empty:
            return None
        result[name] = both
    return result
