"""The matcher: an index of subscriptions, and which of them events meet.

May import `covey.events`, `covey.language`, `covey.filters` and `covey.kernels`. Knows nothing of brokers, Spark or how
filters relate. Filters are lowered to arrays (`lowering`, `coding`), compiled to tables of decision diagrams
(`tables`), and events are encoded (`encoding`) and matched (`segment`), all by kernels of `covey.kernels`.
"""

from covey.matching.bulk import BadSubscription
from covey.matching.explain import Explanation, explain
from covey.matching.index import Index
from covey.matching.matches import Matches
from covey.matching.reports import AddManyError, AddReport, IndexStats
from covey.matching.statistics import Statistics

__all__ = [
    "AddManyError",
    "AddReport",
    "BadSubscription",
    "Explanation",
    "Index",
    "IndexStats",
    "Matches",
    "Statistics",
    "explain",
]
