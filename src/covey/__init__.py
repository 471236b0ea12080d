"""covey: content-based publish/subscribe. Register Boolean subscriptions, match events to those who asked for them."""

from typing import TYPE_CHECKING

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
from covey.lazy_names import have_names
from covey.limits import Limits

if TYPE_CHECKING:
    from covey.events import Attribute, Schema, parse_xml, read_json_lines
    from covey.history import Profile
    from covey.matching import (
        AddManyError,
        AddReport,
        BadSubscription,
        Explanation,
        Finding,
        Index,
        IndexStats,
        Matches,
        Statistics,
        explain,
    )
    from covey.network import connect as connect
    from covey.network import connect_sync as connect_sync
    from covey.relations import Relation, relate
    from covey.relations.merging import Merger, merge
    from covey.relations.rule_report import RuleReport, report

__version__ = "0.1.0"

relations_in("covey.relations.exact")

have_names(
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
            "Finding",
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
        "covey.relations.rule_report": ("RuleReport", "report"),
        "covey.relations.merging": (
            "Merger",
            "merge",
        ),
        "covey.network": ("connect", "connect_sync"),
    },
    extras={"broker": ("connect", "connect_sync")},
)

# Clients of brokers aren't among them, as `from covey import *` shall work without the extra that they need.
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
    "Finding",
    "Index",
    "IndexFileError",
    "IndexStats",
    "LimitError",
    "Limits",
    "Matches",
    "Merger",
    "Profile",
    "Relation",
    "RuleReport",
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
    "report",
    "to_json",
]
