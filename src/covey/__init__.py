"""covey: content-based publish/subscribe. Register Boolean subscriptions, match events to those who asked for them."""

from typing import TYPE_CHECKING, Any

from covey.errors import (
    CoveyError,
    DuplicateIdError,
    EventError,
    FilterError,
    FilterSyntaxError,
    FilterTypeError,
    IndexFileError,
    LimitError,
    SchemaError,
    UnknownIdError,
)
from covey.filters import Filter, attr
from covey.filters.algebra import relations_in
from covey.language import from_json, parse, to_json
from covey.lazily import names_of
from covey.limits import Limits

if TYPE_CHECKING:
    from covey.events import Attribute, Schema, parse_xml, read_json_lines
    from covey.history import Profile
    from covey.matching import (
        AddManyError,
        AddReport,
        BadSubscription,
        Explanation,
        Index,
        IndexStats,
        Matches,
        Statistics,
        explain,
    )
    from covey.relations import Relation, relate
    from covey.relations.merging import Merger, merge

__version__ = "0.1.0"

relations_in("covey.relations.exact")

_find = names_of(
    "covey",
    {
        "covey.events": (
            "Attribute",
            "Schema",
            "parse_xml",
            "read_json_lines",
        ),
        "covey.history": ("Profile",),
        "covey.matching": (
            "AddManyError",
            "AddReport",
            "BadSubscription",
            "Explanation",
            "Index",
            "IndexStats",
            "Matches",
            "Statistics",
            "explain",
        ),
        "covey.relations": (
            "Relation",
            "relate",
        ),
        "covey.relations.merging": (
            "Merger",
            "merge",
        ),
        "covey.network": ("connect", "connect_sync"),
    },
)


def __getattr__(name: str) -> Any:
    """What takes long to import is imported when it is first used; clients of brokers need the extra `broker`."""
    try:
        return _find(name)
    except ModuleNotFoundError as error:
        if name not in ("connect", "connect_sync"):
            raise
        raise CoveyError(f"covey.{name} needs {error.name}; pip install 'covey[broker]'") from None


__all__ = [
    "AddManyError",
    "AddReport",
    "Attribute",
    "BadSubscription",
    "CoveyError",
    "DuplicateIdError",
    "EventError",
    "Explanation",
    "Filter",
    "FilterError",
    "FilterSyntaxError",
    "FilterTypeError",
    "Index",
    "IndexFileError",
    "IndexStats",
    "LimitError",
    "Limits",
    "Matches",
    "Merger",
    "Profile",
    "Relation",
    "Schema",
    "SchemaError",
    "Statistics",
    "UnknownIdError",
    "attr",
    "explain",
    "from_json",
    "merge",
    "parse",
    "parse_xml",
    "read_json_lines",
    "relate",
    "to_json",
]
