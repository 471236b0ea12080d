"""Filters that are a conjunction of one value set for each attribute: the common case, and an exact normal form.

Most subscriptions are conjunctions of tests, several on one attribute perhaps. Brought together into one value set for
each attribute, they meet the condition of Mühl, Fiege and Buchmann's corollary 1 and propositions 3 and 4 (sections 3.4
and 3.5: at most one attribute filter for each attribute), which are equivalences: f covers g exactly where each of f's
sets has g's set of that attribute in it, they are identical where all sets are equal, and overlap exactly where all
sets do. Attributes are independent, and no set of a satisfiable conjunction is empty. Their figure 2, a filter with two
constraints on an attribute that is covered although neither constraint is, is an ordinary case here.

NOT is pushed to the leaves as SQL's three-valued logic has it: "is true" of a negation asks "is false" of its part. A
disjunction is still a conjunction where its parts differ in one attribute at most (`a < 1 OR a > 5`), or one part
covers another. What remains isn't of this form, and `conjunction_of` gives None.

`strict` asks beyond the sets that every attribute which the filter names is defined, simplified away or not. `default`
puts the default in the place of "missing". A schema narrows what an attribute can be: a set that has all of that in it
says nothing and drops out, and integers are rounded. Conjunctions compare only with those of the same `Meaning`.

Attributes that a schema makes mandatory by the event's type depend on it (`domains.py`). One conjunction still has one
form, so equality stays exact, and sets are never wider than what they stand for, so `covers` and `overlaps` err on the
safe side at most: where an existence test is implied by a type. `covers_under` and `overlap_under` know that too.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Any, Final, Literal, TypeAlias

from covey.events.meaning import PLAIN, Meaning
from covey.events.schema import Schema
from covey.filters.algebra import FALSE, And, Constant, Filter, Is, Not, Or, all_of, any_of
from covey.filters.predicates import Between, Compare, In, Predicate
from covey.filters.semantics import Semantics
from covey.filters.terms import is_presence, term_of
from covey.relations.domains import domain_of, implied, is_integer, narrowed, with_presence
from covey.relations.plain_forms import is_plain_disjunction
from covey.relations.predicate_sets import from_predicate
from covey.relations.value_sets import DEFINED, EVERYTHING, MISSING, ValueSet

if TYPE_CHECKING:
    from collections.abc import Iterable

_Box: TypeAlias = dict[str, ValueSet]
_Result: TypeAlias = _Box | Literal[False] | None
"""One set for each attribute that is constrained; False where nothing meets them; None where it is no conjunction."""


class Conjunction:
    """One value set for each constrained attribute, sorted by name; or unsatisfiable."""

    __slots__ = ("_hash", "satisfiable", "sets")

    sets: tuple[tuple[str, ValueSet], ...]
    satisfiable: bool

    def __init__(self, sets: tuple[tuple[str, ValueSet], ...], *, satisfiable: bool = True) -> None:
        """`sets` sorted by name, none of them empty or all that its attribute can be."""
        self.sets = sets
        self.satisfiable = satisfiable
        self._hash = hash((sets, satisfiable))

    def __eq__(self, other: object) -> bool:
        return self is other or (
            isinstance(other, Conjunction)
            and self._hash == other._hash
            and self.satisfiable == other.satisfiable
            and self.sets == other.sets
        )

    def __hash__(self) -> int:
        return self._hash

    def __reduce__(self) -> tuple[Any, ...]:
        return _rebuilt, (self.sets, self.satisfiable)

    def __repr__(self) -> str:
        return f"<Conjunction {self.to_filter()}>"

    def get(self, name: str) -> ValueSet | None:
        """The set of an attribute; None where it isn't constrained."""
        return next((values for one, values in self.sets if one == name), None)

    def covers(self, other: Conjunction) -> bool:
        """Whether every event that meets the other conjunction meets this one."""
        if not other.satisfiable:
            return True
        if not self.satisfiable or len(self.sets) > len(other.sets):
            return False
        theirs = iter(other.sets)
        for name, values in self.sets:
            for their_name, their_values in theirs:
                if their_name == name:
                    if not values.issuperset(their_values):
                        return False
                    break
            else:
                return False
        return True

    def overlaps(self, other: Conjunction) -> bool:
        """Whether some event meets both."""
        if not (self.satisfiable and other.satisfiable):
            return False
        theirs = dict(other.sets)
        return all(name not in theirs or values.overlaps(theirs[name]) for name, values in self.sets)

    def equivalent(self, other: Conjunction) -> bool:
        """Whether the same events meet both: the normal form makes that equality."""
        return self == other

    def to_filter(self, semantics: Semantics = "sql", *, schema: Schema | None = None) -> Filter:
        """A short filter that means this conjunction."""
        if not self.satisfiable:
            return FALSE
        return all_of(_printed(name, values, semantics, schema) for name, values in self.sets)


UNSATISFIABLE: Final = Conjunction((), satisfiable=False)
ALWAYS: Final = Conjunction(())


def _rebuilt(sets: tuple[tuple[str, ValueSet], ...], satisfiable: bool) -> Conjunction:
    return Conjunction(sets, satisfiable=satisfiable)


def _printed(name: str, values: ValueSet, semantics: Semantics, schema: Schema | None) -> Filter:
    """A set as a filter that means the same set when the schema reads it."""
    plain = values.to_filter(name, semantics, integer=is_integer(schema, name))
    return plain if schema is None or name != schema.type_attribute else _as_text(plain, schema)


def _as_text(condition: Filter, schema: Schema) -> Filter:
    """The filter with those tests on an event's type that would take in subtypes as tests on its text."""
    match condition:
        case And(parts):
            return all_of(_as_text(part, schema) for part in parts)
        case Or(parts):
            return any_of(_as_text(part, schema) for part in parts)
        case Not(part):
            return Not(_as_text(part, schema))
        case Is(part, wanted):
            return Is(_as_text(part, schema), wanted)
        case Compare(name, "=" | "!=" as operator, str(value)) if schema.types_below(value):
            exactly = Between(name, value, value)
            return exactly if operator == "=" else Not(exactly)
        case In(name, values):
            wide = {below for value in values if isinstance(value, str) for below in schema.types_below(value)}
            if not wide <= {*values}:
                return any_of(Between(name, value, value) for value in values)
    return condition


def conjunction_of(condition: Filter, meaning: Meaning = PLAIN) -> Conjunction | None:
    """The filter, which was read, as a conjunction of one set for each attribute; None where it isn't one."""
    semantics = meaning.semantics
    box = None if is_plain_disjunction(condition) else _holds(condition, semantics)
    if box is None:
        return None
    if box is False:
        return UNSATISFIABLE
    if semantics == "strict":
        for name in _named(condition):
            values = box.get(name, EVERYTHING)
            box[name] = values & DEFINED if None in values else values
    return conjunction_from(box.items(), meaning)


def conjunction_from(sets: Iterable[tuple[str, ValueSet]], meaning: Meaning = PLAIN) -> Conjunction:
    """The conjunction of one set for each of several attributes, in normal form."""
    defaults, schema = meaning.defaults, meaning.schema
    kept = []
    present = False
    for name, given in sets:
        values = given
        if defaults:
            values = values.with_default(defaults.get(name))
        presence = is_presence(name)
        present = present or presence
        if presence or schema is not None:
            domain = domain_of(schema, name)
            values = (values.integers() if is_integer(schema, name) else values) & domain
            if values == domain:
                continue
        elif values.is_everything:
            continue
        if values.is_empty:
            return UNSATISFIABLE
        kept.append((name, values))
    if present:
        known = with_presence(dict(kept), meaning)
        if known is None:
            return UNSATISFIABLE
        kept = list(known.items())
    if schema is not None and schema.required_by:
        found = narrowed(dict(kept), schema, meaning)
        if found is None:
            return UNSATISFIABLE
        kept = list(found.items())
    kept.sort(key=_name)
    return Conjunction(tuple(kept))


def covers_under(meaning: Meaning, one: Conjunction, other: Conjunction) -> bool:
    """Whether every event that there is and that meets the other conjunction meets the first."""
    if one.covers(other):
        return True
    other = _with_presence(one, other, meaning)
    if one.covers(other):
        return True
    schema = meaning.schema
    if schema is None or not schema.required_by or schema.type_attribute is None:
        return False
    sets = dict(other.sets)
    types = sets.get(schema.type_attribute, EVERYTHING)
    for name in implied(types, schema) - sets.keys():
        sets[name] = domain_of(schema, name) - MISSING
    return one.covers(Conjunction(tuple(sorted(sets.items(), key=_name)), satisfiable=other.satisfiable))


def _with_presence(one: Conjunction, other: Conjunction, meaning: Meaning) -> Conjunction:
    """The other conjunction with the presence of what it defines, where the first asks for that."""
    sets = dict(other.sets)
    asked = [name for name, _ in one.sets if is_presence(name) and name not in sets]
    for name in asked:
        path = term_of(name).attributes()[0]
        defined = None not in sets.get(path, domain_of(meaning.schema, path))
        if defined and meaning.default(path) is None:
            sets[name] = ValueSet.of((True,))
    if not asked:
        return other
    return Conjunction(tuple(sorted(sets.items(), key=_name)), satisfiable=other.satisfiable)


def overlap_under(meaning: Meaning, one: Conjunction, other: Conjunction) -> bool:
    """Whether some event that there is meets both conjunctions."""
    if not one.overlaps(other) or meaning.schema is None or not meaning.schema.required_by:
        return one.overlaps(other)
    sets = dict(one.sets)
    for name, values in other.sets:
        sets[name] = values & sets.get(name, EVERYTHING)
    return conjunction_from(sets.items(), meaning).satisfiable


def _named(condition: Filter) -> set[str] | frozenset[str]:
    """The attributes that a filter names; a short way for a conjunction of predicates, the common case."""
    if isinstance(condition, And) and all(isinstance(part, Predicate) for part in condition.parts):
        return {name for part in condition.parts if isinstance(part, Predicate) for name in part.term.attributes()}
    return condition.attributes()


def _name(pair: tuple[str, ValueSet]) -> str:
    return pair[0]


def _holds(condition: Filter, semantics: Semantics) -> _Result:
    """Where a filter is true."""
    match condition:
        case And(parts):
            return _all(parts, semantics)
        case Predicate():
            return _predicate(condition, semantics, 0)
        case Or(parts):
            return _any([_holds(part, semantics) for part in parts])
        case Not(part):
            return _fails(part, semantics)
        case Constant(value):
            return {} if value else False
        case Is(part, wanted):
            return _is(part, wanted, semantics)
    raise TypeError(f"{type(condition).__name__} is not a filter")


def _fails(condition: Filter, semantics: Semantics) -> _Result:
    """Where a filter is false: two-valued, wherever it isn't true."""
    match condition:
        case Predicate():
            return _predicate(condition, semantics, 1)
        case And(parts):
            return _any([_fails(part, semantics) for part in parts])
        case Or(parts):
            return _meet([_fails(part, semantics) for part in parts])
        case Not(part):
            return _holds(part, semantics)
        case Constant(value):
            return {} if value is False or (value is None and semantics != "sql") else False
        case Is(part, wanted):
            return _complement(_is(part, wanted, semantics))
    raise TypeError(f"{type(condition).__name__} is not a filter")


def _is(part: Filter, wanted: bool | None, semantics: Semantics) -> _Result:
    if wanted is not None:
        return _holds(part, semantics) if wanted else _fails(part, semantics)
    if semantics != "sql":
        return False
    if not isinstance(part, Predicate):
        # It asks its part both questions: one within another, they would double at each level.
        return None
    return _complement(_any([_holds(part, semantics), _fails(part, semantics)]))


def _all(parts: tuple[Filter, ...], semantics: Semantics) -> _Result:
    """The conjunction of filters; its own loop, since tables of subscriptions are mostly conjunctions of predicates."""
    box: _Box = {}
    others: list[Filter] = []
    for part in parts:
        if not isinstance(part, Predicate):
            others.append(part)
            continue
        pair = from_predicate(part, semantics)
        if pair is None:
            return None
        name, values = part.attribute, pair[0]
        known = box.get(name)
        if known is not None:
            values = known & values
        if values.is_empty:
            return False
        box[name] = values
    return _meet([box, *(_holds(part, semantics) for part in others)]) if others else box


def _predicate(predicate: Predicate, semantics: Semantics, side: int) -> _Result:
    pair = from_predicate(predicate, semantics)
    if pair is None:
        return None
    values = pair[side]
    if values.is_empty:
        return False
    return {predicate.attribute: values}


def _meet(boxes: list[_Result]) -> _Result:
    if any(box is False for box in boxes):
        return False
    result: _Box = {}
    for box in boxes:
        if not isinstance(box, dict):
            return None
        for name, values in box.items():
            both = values & result.get(name, EVERYTHING)
            if both.is_empty:
                return False
            result[name] = both
    return result


def _any(boxes: list[_Result]) -> _Result:
    result: _Result = False
    for box in boxes:
        result = _union(result, box)
    return result


def _union(left: _Result, right: _Result) -> _Result:
    """The union of two boxes where it is a box: one covers the other, or they differ in one attribute."""
    if left == {} or right == {}:
        return {}
    if left is None or right is None:
        return None
    if left is False or right is False:
        return right if left is False else left
    different = [
        name for name in left.keys() | right.keys() if left.get(name, EVERYTHING) != right.get(name, EVERYTHING)
    ]
    if len(different) > 1:
        if _covers(left, right):
            return left
        return right if _covers(right, left) else None
    result = dict(left)
    for name in different:
        result[name] = left.get(name, EVERYTHING) | right.get(name, EVERYTHING)
    return {name: values for name, values in result.items() if not values.is_everything}


def _covers(left: _Box, right: _Box) -> bool:
    return all(values.issuperset(right.get(name, EVERYTHING)) for name, values in left.items())


def _complement(box: _Result) -> _Result:
    if box is None:
        return None
    if box is False:
        return {}
    constrained = {name: ~values for name, values in box.items() if not values.is_everything}
    if not constrained:
        return False
    return constrained if len(constrained) == 1 else None
