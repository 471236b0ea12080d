"""Many subscriptions at once: their texts read by kernels, compiled to one segment, and what is wrong with which row.

Gives what `covey.matching.index` gets from single ones too; knows nothing of the index or its state.
"""

from covey.matching.bulk.given import Subscriptions, given_rows
from covey.matching.bulk.rows import BadSubscription, bad_ids, compile_rows, listed, no_filter, translated

__all__ = [
    "BadSubscription",
    "Subscriptions",
    "bad_ids",
    "compile_rows",
    "given_rows",
    "listed",
    "no_filter",
    "translated",
]
