"""What a schema says an attribute can be, and what the type of an event makes of that.

Attributes are independent but for one rule: events of some types must define attributes that others may lack
(`Schema.required_by`). So "type is Quote" implies "price is defined", and "price is missing" implies that the type is
another. `narrowed` brings both into a conjunction's sets; an existence test that the type implies drops out, since it
is then no constraint (Mühl, Fiege and Buchmann, section 3.6).
"""

from __future__ import annotations

from functools import lru_cache
from typing import Final

from covey.events.meaning import Meaning
from covey.events.schema import Schema
from covey.filters.terms import is_presence, term_of
from covey.relations.value_sets import EVERYTHING, MISSING, ValueSet

PRESENCE: Final = ValueSet.of((False, True))
"""What an attribute's presence can be."""


def domain_of(schema: Schema | None, name: str) -> ValueSet:
    """What an attribute can be, "missing" included unless it is mandatory for all events."""
    if is_presence(name):
        return PRESENCE
    attribute = None if schema is None else schema.attributes.get(name)
    kind = None if schema is None else schema.type_of(name)
    if attribute is None or kind is None:
        return EVERYTHING
    values = ValueSet.of_kind(kind.kind)
    if kind.name == "int":
        values = values.integers()
    return values if attribute.mandatory else values | MISSING


def is_integer(schema: Schema | None, name: str) -> bool:
    """Whether a schema makes an attribute an integer."""
    kind = None if schema is None else schema.type_of(name)
    return kind is not None and kind.name == "int"


def requirements(schema: Schema | None) -> dict[str, ValueSet]:
    """For each attribute that some events must define by their type: those types."""
    if schema is None or not schema.required_by:
        return {}
    return {name: _types(kinds) for name, kinds in schema.required_by.items()}


@lru_cache(maxsize=1024)
def _types(kinds: tuple[str, ...]) -> ValueSet:
    return ValueSet.of(kinds)


def with_presence(sets: dict[str, ValueSet], meaning: Meaning) -> dict[str, ValueSet] | None:
    """The sets with what presence says of attributes: one that isn't there is missing, one that is defined is there.
    None where nothing meets them. Where a default stands for what is missing, nothing follows."""
    found = dict(sets)
    for name in [name for name in sets if is_presence(name)]:
        path = term_of(name).attributes()[0]
        if meaning.default(path) is not None:
            continue
        values = found.get(path, domain_of(meaning.schema, path))
        if True not in found[name]:
            if None not in values:
                return None
            found[path] = MISSING
        elif None not in values:
            del found[name]
    return found


def narrowed(sets: dict[str, ValueSet], schema: Schema, meaning: Meaning) -> dict[str, ValueSet] | None:
    """A set for each constrained attribute, with what types make mandatory; None where nothing meets them.

    The sets are the least around what there is, so one conjunction has one form. But what a type implies is left out,
    and "missing" stays in a set exactly where the attribute's default is, or no filter could say the set.
    """
    assert schema.type_attribute is not None, "only types of events make attributes mandatory"
    every = domain_of(schema, schema.type_attribute)
    types = sets.get(schema.type_attribute, every)
    for name, kinds in requirements(schema).items():
        if name in sets and MISSING.issuperset(sets[name]):
            types = types - kinds
    if types.is_empty:
        return None
    default = meaning.default(schema.type_attribute)
    if default is not None and None in types:
        types = types | ValueSet.of((default,))
    found = dict(sets)
    if types != every:
        found[schema.type_attribute] = types
    for name in implied(types, schema) & found.keys():
        defined = found[name] - MISSING
        if defined == domain_of(schema, name) - MISSING:
            del found[name]
        else:
            found[name] = defined.with_default(meaning.default(name))
    return found


def implied(types: ValueSet, schema: Schema) -> set[str]:
    """The attributes that all events of some types must define, and others needn't."""
    return {name for name, kinds in requirements(schema).items() if kinds.issuperset(types)}
