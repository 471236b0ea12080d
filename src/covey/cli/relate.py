"""`covey relate`: whether one filter covers another, and events that tell them apart."""

from __future__ import annotations

import json
from datetime import datetime
from typing import Any

from covey.cli.arguments import RelateOptions
from covey.cli.subscriptions import schema_of
from covey.filters.values import Element, Value
from covey.language import parse
from covey.relations.relate import Relation, relate


def run(options: RelateOptions) -> int:
    """Relate two filters."""
    schema = schema_of(options)
    f, g = (parse(text, dialect=options.dialect) for text in (options.first, options.second))
    if schema is not None:
        f, g = schema.check(f), schema.check(g)
    found = relate(f, g, semantics=options.semantics or "sql", schema=schema)
    print(json.dumps(_to_dict(found), ensure_ascii=False) if options.json else found)
    return 0


def _to_dict(found: Relation) -> dict[str, Any]:
    return {
        "covers": found.covers,
        "covered": found.covered,
        "equivalent": found.equivalent,
        "overlaps": found.overlaps,
        "only_a": _plain_event(found.only_f),
        "only_b": _plain_event(found.only_g),
        "both": _plain_event(found.both),
    }


def _plain_event(event: dict[str, Value | None] | None) -> dict[str, Any] | None:
    return None if event is None else {name: _plain(value) for name, value in event.items()}


def _plain(value: Element) -> Any:
    if isinstance(value, tuple):
        return [_plain(element) for element in value]
    return value.isoformat() if isinstance(value, datetime) else value
