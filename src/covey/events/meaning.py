"""What a filter is read under: semantics, defaults and schema, which only together say which events it matches.

Whatever compares filters takes one `Meaning` and hands it on. It is the one place that knows which defaults count, and
how a schema reads a filter: a test on an event's type is a test on its subtypes too. What else a schema says narrows
the events there are, not the filter: the attributes' types, and what is mandatory, for all events or by their type.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any, Final

from covey.events.schema import Schema
from covey.filters.algebra import Filter
from covey.filters.semantics import Defaults, Semantics, check_semantics, matches

_NO_DEFAULTS: Final[Defaults] = {}


@dataclass(frozen=True, slots=True)
class Meaning:
    """Semantics, the defaults of missing attributes, and what a schema says."""

    semantics: Semantics = "sql"
    defaults: Defaults | None = None
    """Those that count: none but under `default`, where the schema's are taken unless others are given."""
    schema: Schema | None = None

    def __post_init__(self) -> None:
        check_semantics(self.semantics)
        known = _NO_DEFAULTS
        if self.semantics == "default":
            known = self.defaults if self.defaults is not None else {} if self.schema is None else self.schema.defaults
        object.__setattr__(self, "defaults", known)

    def default(self, name: str) -> Any:
        """What stands for an attribute that an event doesn't define; None where nothing does."""
        return self.defaults.get(name) if self.defaults else None

    def read(self, condition: Filter) -> Filter:
        """The filter with constants in the attributes' types and tests on the event's type widened to subtypes. Reading
        it again changes nothing."""
        return condition if self.schema is None else self.schema.read(condition)

    def matches(self, condition: Filter, event: Mapping[str, Any]) -> bool:
        """Whether an event meets a filter that was read."""
        return matches(condition, event, semantics=self.semantics, defaults=self.defaults)


PLAIN: Final = Meaning()
"""SQL's semantics, and nothing known of events."""
