"""covey: content-based publish/subscribe. Register Boolean subscriptions, match events to those who asked for them."""

from typing import Any

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
from covey.events import Attribute, Schema, parse_xml, read_json_lines
from covey.filters import Filter, attr
from covey.history import Profile
from covey.language import from_json, parse, to_json
from covey.limits import Limits
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


def __getattr__(name: str) -> Any:
    """Clients of brokers are imported when they are first used, since they need the extra `broker`."""
    if name not in ("connect", "connect_sync"):
        raise AttributeError(f"module 'covey' has no attribute {name!r}")
    try:
        from covey import network
    except ModuleNotFoundError as error:
        raise CoveyError(f"covey.{name} needs {error.name}; pip install 'covey[broker]'") from None
    return getattr(network, name)


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
