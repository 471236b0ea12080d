"""A filter written so that it matches the same events without defaults, subtypes or strictness.

Chances are asked of events as they are, by an interface that knows none of these. A plain filter matches the same
events under `sql` (where it was meant so) or `simple`: `strict` becomes existence tests, a default what its test says
of "missing". A disjunction of plain filters is their union, which isn't so under `strict`: `a = 1 OR b = 1` asks there
for both attributes.
"""

from __future__ import annotations

from covey.events.meaning import Meaning
from covey.filters.algebra import And, Filter, Is, Not, Or, all_of
from covey.filters.predicates import IsNull, Predicate
from covey.filters.semantics import Semantics


def plain_semantics(meaning: Meaning) -> Semantics:
    """The semantics of what `plain` gives."""
    return "sql" if meaning.semantics == "sql" else "simple"


def plain(condition: Filter, meaning: Meaning) -> Filter:
    """A filter that matches the same events under `plain_semantics`."""
    condition = meaning.read(condition)
    if meaning.semantics == "strict":
        named = sorted(condition.attributes())
        return all_of((condition, *(Not(IsNull(name)) for name in named)))
    return _with_defaults(condition, meaning) if meaning.defaults else condition


def _with_defaults(condition: Filter, meaning: Meaning) -> Filter:
    match condition:
        case And(parts):
            return And(tuple(_with_defaults(part, meaning) for part in parts))
        case Or(parts):
            return Or(tuple(_with_defaults(part, meaning) for part in parts))
        case Not(part):
            return Not(_with_defaults(part, meaning))
        case Is(part, wanted):
            return Is(_with_defaults(part, meaning), wanted)
        case Predicate() if meaning.default(condition.attribute) is not None:
            missing = IsNull(condition.attribute)
            if meaning.matches(condition, {}):
                return condition | missing
            return condition & Not(missing)
    return condition
