"""How constraints on one attribute are brought together, and shapes with them: the merging rules.

Perfect rules. Value sets are a Boolean algebra, so the union of constraints on one attribute is always a constraint
on it, and two shapes that are equal but for one attribute have a perfect merger (Mühl, Fiege and Buchmann, section
3.6): sets and exclusions unite, intervals that connect become one, `x < 4` and `x > 7` exclude an interval, and
complements together ask only that the attribute is defined. What a rule for each class of constraints decides is how
simple the result is. That is measured here instead: `complexity` counts what is listed, be it what is in or what is
left out, and a limit says how much may be listed.

Imperfect rules widen the union (`widened`): to intervals (table 1 of Li, Hou and Jacobsen: `x < v1` and `x = v2` become
`x <= v2`; both directions become "is present"), to a common prefix, to existence, or to nothing at all, which drops the
attribute. Each result contains the one before it.

Values that no advertisement allows (`free`) cost nothing: gaps made of them are closed first (section 5.4 there).
"""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from functools import reduce
from typing import Final, Literal, TypeAlias

from covey.events.meaning import Meaning
from covey.filters.values import Kind
from covey.relations.conjunctions import UNSATISFIABLE, conjunction_from
from covey.relations.cuts import BOTTOM, FULL, TOP, Cuts
from covey.relations.merging.shapes import Shape
from covey.relations.value_sets import DEFINED, EVERYTHING, NOTHING, ValueSet

Rule: TypeAlias = Literal["union", "hull", "prefix", "exists", "drop"]
RULES: Final[tuple[Rule, ...]] = ("union", "hull", "prefix", "exists", "drop")

MAX_PIECES: Final = 8
"""Intervals and values that a merged constraint on one attribute may list."""


def complexity(values: ValueSet) -> int:
    """How many intervals and single values the set takes to write down, or to write what it leaves out."""
    return min(_listed(values), _listed(~values))


def _listed(values: ValueSet) -> int:
    spans = sum(_spans(cuts, kind) for kind, cuts in _by_kind(values))
    return spans + values.flags.bit_count()


def _spans(cuts: Cuts, kind: Kind) -> int:
    """Intervals, where two that are open to both sides are one that is left out."""
    count = len(cuts) // 2
    return count - (count > 1 and cuts[0] == BOTTOM[kind] and cuts[-1] == TOP[kind])


def _by_kind(values: ValueSet) -> tuple[tuple[Kind, Cuts], ...]:
    return (
        (Kind.NUMBER, values.numbers),
        (Kind.STRING, values.strings),
        (Kind.TIMESTAMP, values.timestamps),
    )


def is_simple(union: ValueSet, parts: Iterable[ValueSet], max_pieces: int) -> bool:
    """Whether a union lists no more than the limit, or than its parts did already."""
    if _listed(union) <= max_pieces:
        return True
    listed = complexity(union)
    return listed <= max_pieces or any(listed <= complexity(part) for part in parts)


def widened(values: ValueSet, rule: Rule) -> ValueSet:
    """The set of a rule around a union; "missing" stays as it is, but for "drop"."""
    match rule:
        case "union":
            return values
        case "hull":
            return _hull(values)
        case "prefix":
            return _with_common_prefix(_hull(values))
        case "exists":
            return values | DEFINED
        case "drop":
            return EVERYTHING
    raise ValueError(f"merging rule {rule!r} is not known; use one of {', '.join(RULES)}")


def _hull(values: ValueSet) -> ValueSet:
    """One interval of each kind; where that is all of a kind, existence says it shorter."""
    hull = values.hull()
    if any(cuts == FULL[kind] for kind, cuts in _by_kind(hull)):
        return hull | DEFINED
    return hull


def _with_common_prefix(hull: ValueSet) -> ValueSet:
    """The hull with its strings widened to the longest prefix that all of them have."""
    strings = ValueSet(strings=hull.strings)
    if strings.is_empty or hull.strings == FULL[Kind.STRING]:
        return hull
    low = str(next(strings.intervals()).low or "")
    prefixes = (ValueSet.with_prefix(low[:length]) for length in range(len(low), -1, -1))
    return hull | next(prefix for prefix in prefixes if prefix.issuperset(strings))


def with_gaps_closed(values: ValueSet, free: ValueSet) -> ValueSet:
    """The set with those gaps between its intervals closed in which all values are free."""
    gaps = values.hull() - values
    closing = NOTHING
    for interval in _gap_sets(gaps):
        if free.issuperset(interval):
            closing |= interval
    return values | closing


def _gap_sets(gaps: ValueSet) -> Iterable[ValueSet]:
    for kind, cuts in _by_kind(gaps):
        for at in range(0, len(cuts), 2):
            span = cuts[at : at + 2]
            if kind is Kind.NUMBER:
                yield ValueSet(numbers=span)
            elif kind is Kind.STRING:
                yield ValueSet(strings=span)
            else:
                yield ValueSet(timestamps=span)


def never_advertised(advertisements: Iterable[Shape]) -> dict[str, ValueSet]:
    """For each attribute the values that no advertised event has; attributes that some advertisement leaves open aren't
    there."""
    advertised: dict[str, ValueSet] | None = None
    for advertisement in advertisements:
        if not advertisement.satisfiable:
            continue
        sets = dict(advertisement.conjunction.sets)
        if advertised is None:
            advertised = sets
        else:
            advertised = {name: sets[name] | known for name, known in advertised.items() if name in sets}
    return {} if advertised is None else {name: ~values for name, values in advertised.items()}


def differing(left: Shape, right: Shape) -> list[str] | None:
    """The attributes whose sets aren't the same; None where opaque tests differ."""
    if left.opaque != right.opaque:
        return None
    mine, theirs = dict(left.conjunction.sets), dict(right.conjunction.sets)
    return sorted(name for name in mine.keys() | theirs.keys() if mine.get(name) != theirs.get(name))


def united(left: Shape, right: Shape, meaning: Meaning) -> Shape | None:
    """The shape that matches exactly what either matches; None where no single shape is found to."""
    if left.covers(right):
        return left
    if right.covers(left):
        return right
    names = differing(left, right)
    if names is None or len(names) != 1:
        return None
    return joined((left, right), meaning)


def joined(shapes: Sequence[Shape], meaning: Meaning, rules: Sequence[Rule] = ("union",), max_pieces: int = 0) -> Shape:
    """The shape that constrains only what all shapes do, each attribute by the first rule whose set is simple enough.

    The last rule is taken where none is. It covers all shapes. Perfect where they differ in one attribute and the rule
    is the union.
    """
    living = [shape for shape in shapes if shape.satisfiable]
    if not living:
        return Shape(UNSATISFIABLE)
    sets = [dict(shape.conjunction.sets) for shape in living]
    merged = {}
    for name in set(sets[0]).intersection(*sets[1:]):
        merged[name] = _by_rules([own[name] for own in sets], rules, max_pieces)
    opaque = living[0].opaque.intersection(*(shape.opaque for shape in living[1:]))
    return Shape(conjunction_from(merged.items(), meaning), opaque)


def _by_rules(parts: Sequence[ValueSet], rules: Sequence[Rule], max_pieces: int) -> ValueSet:
    union = reduce(ValueSet.__or__, parts)
    for rule in rules[:-1]:
        values = widened(union, rule)
        if is_simple(values, parts, max_pieces):
            return values
    if all(part == union for part in parts):
        return union
    return widened(union, rules[-1])
