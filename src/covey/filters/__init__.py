"""The filter algebra: predicates on attributes, And/Or/Not over them, and what they mean under each semantics.

Pure values and functions. May import `covey.errors` and `covey.limits`; knows nothing of text dialects,
diagrams, indexes or events' encodings (an event is a mapping from attribute names to values here).
"""

from covey.filters.algebra import (
    FALSE,
    TRUE,
    UNKNOWN,
    And,
    Constant,
    Filter,
    Is,
    Not,
    Or,
    all_of,
    any_of,
)
from covey.filters.expressions import attr
from covey.filters.predicates import (
    ArrayContains,
    Between,
    Compare,
    Contains,
    EndsWith,
    In,
    IsNull,
    Like,
    Predicate,
    RLike,
    StartsWith,
    SubstringOf,
)
from covey.filters.semantics import SEMANTICS, Semantics, matches, truth

__all__ = [
    "FALSE",
    "SEMANTICS",
    "TRUE",
    "UNKNOWN",
    "And",
    "ArrayContains",
    "Between",
    "Compare",
    "Constant",
    "Contains",
    "EndsWith",
    "Filter",
    "In",
    "Is",
    "IsNull",
    "Like",
    "Not",
    "Or",
    "Predicate",
    "RLike",
    "Semantics",
    "StartsWith",
    "SubstringOf",
    "all_of",
    "any_of",
    "attr",
    "matches",
    "truth",
]
