"""Brokers' own events, as filters and schemas see them: which they may match, and which of a schema's words hold."""

from __future__ import annotations

from collections.abc import Container

from covey.events.schema import Attribute, Schema
from covey.filters.algebra import Filter, all_of
from covey.filters.predicates import IsNull
from covey.routing.meta_events import META_ATTRIBUTES


def also_of_brokers(schema: Schema) -> Schema:
    """What a schema says that holds for brokers' own events, too: they lack what is mandatory for all events, and what
    they are called by needn't be of the type that it names."""
    types = {
        name: Attribute(attribute.type, default=attribute.default)
        for name, attribute in schema.attributes.items()
        if name not in META_ATTRIBUTES
    }
    if schema.type_attribute is None or schema.type_attribute in META_ATTRIBUTES:
        return Schema(types)
    return Schema(
        types,
        type_attribute=schema.type_attribute,
        subtypes=schema.subtypes,
        mandatory_by_type=schema.mandatory_by_type,
    )


def asked_of_brokers(condition: Filter, meta: Filter, defaults: Container[str]) -> Filter:
    """Brokers' own events as a filter sees them: all that it asks for beside their attributes is missing."""
    beyond = sorted(name for name in condition.attributes() if name not in META_ATTRIBUTES and name not in defaults)
    return all_of([meta, *map(IsNull, beyond)])
