"""The matcher: an index of subscriptions, and which of them events meet.

May import `covey.events`, `covey.language`, `covey.filters` and `covey.kernels`. Knows nothing of brokers, Spark or how
filters relate. Filters are lowered to arrays (`lowering`, `coding`), compiled to tables of decision diagrams
(`tables`), and events are encoded (`encoding`) and matched (`segment`), all by kernels of `covey.kernels`.
"""

from typing import TYPE_CHECKING

from covey.lazy_names import have_names
from covey.matching.explain import Explanation, explain
from covey.matching.index import Index
from covey.matching.matches import Matches
from covey.matching.reports import AddManyError, AddReport, IndexStats
from covey.matching.state import Prepared

if TYPE_CHECKING:
    from covey.matching.against import Finding
    from covey.matching.bulk import BadSubscription
    from covey.matching.statistics import Statistics

have_names(
    __name__,
    {
        "covey.matching.against": ("Finding",),
        "covey.matching.bulk": ("BadSubscription",),
        "covey.matching.statistics": ("Statistics",),
    },
)

__all__ = [
    "AddManyError",
    "AddReport",
    "BadSubscription",
    "Explanation",
    "Finding",
    "Index",
    "IndexStats",
    "Matches",
    "Prepared",
    "Statistics",
    "explain",
]
