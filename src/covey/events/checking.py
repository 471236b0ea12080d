"""A filter held against a schema: constants are converted to the attribute's type or refused, and a test on the event's
type is widened to its subtypes."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from dataclasses import dataclass

from covey.errors import FilterTypeError
from covey.events.conversion import converted
from covey.events.types import AttributeType, ListType
from covey.filters.algebra import And, Constant, Filter, Is, Not, Or, all_of, any_of, leaves
from covey.filters.predicates import (
    ArrayContains,
    Compare,
    ElementTest,
    In,
    IsNull,
    Predicate,
    TextTest,
    compared_with,
)
from covey.filters.terms import is_path
from covey.filters.values import Kind, Scalar, kind_of

_AS_WRITTEN = {
    Kind.NUMBER: "a number without quotes, such as 42",
    Kind.STRING: "a string in quotes, such as 'text'",
    Kind.BOOLEAN: "TRUE or FALSE",
    Kind.TIMESTAMP: "a timestamp, such as TIMESTAMP '2024-01-31 12:00:00'",
}


@dataclass(frozen=True, slots=True)
class Checker:
    """What of a schema a filter is held against."""

    types: Mapping[str, AttributeType]
    type_attribute: str | None
    below: Mapping[str, tuple[str, ...]]

    def check(self, condition: Filter) -> Filter:
        """The same filter with constants converted and type tests widened; FilterTypeError where a predicate
        contradicts a type."""
        changes = False
        for leaf in leaves(condition):
            kind = self.types.get(leaf.attribute) if isinstance(leaf, Predicate) else None
            if isinstance(leaf, Predicate) and kind is not None:
                fitting = converted(leaf, kind)
                changes = changes or fitting is not leaf
                if is_path(fitting.attribute):
                    _refuse(fitting, kind)
        return self.widen(self._converted(condition) if changes else condition)

    def read(self, condition: Filter) -> Filter:
        """As `check`; what contradicts a type stays, and is never met."""
        return self.widen(self._converted(condition))

    def _converted(self, condition: Filter) -> Filter:
        match condition:
            case And(parts):
                return all_of(map(self._converted, parts))
            case Or(parts):
                return any_of(map(self._converted, parts))
            case Not(part):
                return Not(self._converted(part))
            case Is(part, wanted):
                return Is(self._converted(part), wanted)
            case Predicate():
                kind = self.types.get(condition.attribute)
                try:
                    return condition if kind is None else converted(condition, kind)
                except FilterTypeError:
                    return condition
        return condition

    def widen(self, condition: Filter) -> Filter:
        """The same filter with the type tests widened; what contradicts a type stays, and is never met."""
        if self.type_attribute is None or not any(self.below.values()):
            return condition
        match condition:
            case And(parts):
                return all_of(map(self.widen, parts))
            case Or(parts):
                return any_of(map(self.widen, parts))
            case Not(part):
                return Not(self.widen(part))
            case Is(part, wanted):
                return Is(self.widen(part), wanted)
            case Predicate():
                return self._widened(condition) if condition.attribute == self.type_attribute else condition
            case Constant():
                return condition
        raise TypeError(f"{type(condition).__name__} is not a filter")

    def _widened(self, test: Predicate) -> Filter:
        """Equality with a type as membership in it. Never equal becomes NOT IN, so both stay each other's negation;
        null-safe equality becomes IS TRUE, so it stays two-valued."""
        match test:
            case Compare(name, "=" | "!=" | "<=>" as operator, str(value)) if self.below.get(value):
                among = In(name, self._with_subtypes([value]))
                return among if operator == "=" else Not(among) if operator == "!=" else Is(among, True)
            case In(name, values):
                return In(name, self._with_subtypes(values))
        return test

    def _with_subtypes(self, values: Iterable[Scalar | None]) -> tuple[Scalar | None, ...]:
        wide: dict[Scalar | None, None] = {}
        for value in values:
            wide[value] = None
            if isinstance(value, str):
                wide.update(dict.fromkeys(self.below.get(value, ())))
        return tuple(wide)


def _refuse(test: Predicate, kind: AttributeType) -> None:
    name = test.attribute
    if isinstance(test, IsNull):
        return
    if isinstance(test, ArrayContains):
        if not isinstance(kind, ListType):
            raise FilterTypeError(f"{name!r} is {kind.name}, not a list; compare it with = or IN")
        _refuse_constants(name, kind, kind.element.kind, (test.value,))
    elif isinstance(test, ElementTest):
        if not isinstance(kind, ListType):
            raise FilterTypeError(f"{name!r} is {kind.name}, not a list; test it without exists and forall")
        for leaf in leaves(test.condition):
            if isinstance(leaf, Predicate) and leaf.attribute == test.variable:
                _refuse(leaf, kind.element)
    elif isinstance(kind, ListType):
        raise FilterTypeError(
            f"{name!r} is {kind.name}; test it with array_contains({name}, value) or exists({name}, x -> …)"
        )
    elif isinstance(test, TextTest):
        if kind.kind is not Kind.STRING:
            raise FilterTypeError(f"{name!r} is {kind.name}, not string; compare it with {_AS_WRITTEN[kind.kind]}")
    else:
        _refuse_constants(name, kind, kind.kind, _constants(test))


def _constants(test: Predicate) -> tuple[Scalar | None, ...]:
    found = compared_with(test)
    if not found:
        raise TypeError(f"{type(test).__name__} has constants that a schema can't check")
    return found


def _refuse_constants(name: str, kind: AttributeType, wanted: Kind, values: Iterable[Scalar | None]) -> None:
    for value in values:
        if value is not None and kind_of(value) is not wanted:
            shown = repr(value) if len(repr(value)) <= 60 else repr(value)[:59] + "…"
            raise FilterTypeError(
                f"{name!r} is {kind.name}, but is compared with the {kind_of(value).value} {shown}; "
                f"write {_AS_WRITTEN[wanted]}"
            )
