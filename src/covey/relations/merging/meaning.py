"""What filters are read under: semantics, defaults and schema, carried together.

Chances are asked of events as they are, by an interface that knows no defaults. `plain` therefore writes a filter so
that it matches the same events under `sql` (where it was meant so) or `simple`: `strict` becomes existence tests, and a
default becomes what its test says of "missing". A disjunction of plain filters is their union, which isn't so under
`strict`: `a = 1 OR b = 1` asks there for both attributes.
"""

from __future__ import annotations

from dataclasses import dataclass

from covey.events.schema import Schema
from covey.filters.algebra import And, Filter, Is, Not, Or, all_of
from covey.filters.predicates import IsNull, Predicate
from covey.filters.semantics import Defaults, Semantics, check_semantics, matches


@dataclass(frozen=True, slots=True)
class Meaning:
    """Semantics, the defaults of missing attributes (`default` only) and what a schema says of attributes."""

    semantics: Semantics = "sql"
    defaults: Defaults | None = None
    schema: Schema | None = None

    @staticmethod
    def of(semantics: Semantics, defaults: Defaults | None, schema: Schema | None) -> Meaning:
        """Checked, with the schema's defaults where none are given."""
        check_semantics(semantics)
        if semantics == "default" and defaults is None and schema is not None:
            defaults = schema.defaults
        return Meaning(semantics, defaults, schema)

    @property
    def plain_semantics(self) -> Semantics:
        """The semantics of what `plain` gives."""
        return "sql" if self.semantics == "sql" else "simple"

    def plain(self, condition: Filter) -> Filter:
        """A filter that matches the same events under `plain_semantics`."""
        if self.semantics == "strict":
            named = sorted(condition.attributes())
            return all_of((condition, *(Not(IsNull(name)) for name in named)))
        if self.semantics == "default" and self.defaults:
            return _with_defaults(condition, self.defaults)
        return condition


def _with_defaults(condition: Filter, defaults: Defaults) -> Filter:
    match condition:
        case And(parts):
            return And(tuple(_with_defaults(part, defaults) for part in parts))
        case Or(parts):
            return Or(tuple(_with_defaults(part, defaults) for part in parts))
        case Not(part):
            return Not(_with_defaults(part, defaults))
        case Is(part, wanted):
            return Is(_with_defaults(part, defaults), wanted)
        case Predicate() if condition.attribute in defaults:
            missing = IsNull(condition.attribute)
            if matches(condition, {}, semantics="default", defaults=defaults):
                return condition | missing
            return condition & Not(missing)
    return condition
