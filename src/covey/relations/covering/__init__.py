"""The covering table: which of a neighbour's subscriptions are forwarded, and which another one covers.

`CoveringTable` takes filters of any form; conjunctions are compared by kernels over an index of their value sets. May
import `covey.relations`' value sets, conjunctions and exact decisions; knows nothing of brokers or of forwarding.
"""

from __future__ import annotations

from covey.relations.covering.table import (
    DEFAULT_COVERING_LIMITS,
    CoveringLimits,
    CoveringTable,
    Insertion,
    Removal,
)

__all__ = ["DEFAULT_COVERING_LIMITS", "CoveringLimits", "CoveringTable", "Insertion", "Removal"]
