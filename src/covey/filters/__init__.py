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
from covey.filters.caseless import IContains, IEndsWith, IEquals, ILike, IStartsWith
from covey.filters.expressions import attr
from covey.filters.networks import CidrMatch
from covey.filters.predicates import (
    ArrayContains,
    Between,
    Compare,
    Contains,
    ElementTest,
    EndsWith,
    In,
    IsNull,
    Like,
    Predicate,
    RLike,
    StartsWith,
    SubstringOf,
    TextTest,
    text_test,
)
from covey.filters.semantics import SEMANTICS, Semantics, Supposed, matches, truth
from covey.filters.terms import Term

__all__ = [
    "FALSE",
    "SEMANTICS",
    "TRUE",
    "UNKNOWN",
    "And",
    "ArrayContains",
    "Between",
    "CidrMatch",
    "Compare",
    "Constant",
    "Contains",
    "ElementTest",
    "EndsWith",
    "Filter",
    "IContains",
    "IEndsWith",
    "IEquals",
    "ILike",
    "IStartsWith",
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
    "Supposed",
    "Term",
    "TextTest",
    "all_of",
    "any_of",
    "attr",
    "matches",
    "text_test",
    "truth",
]
