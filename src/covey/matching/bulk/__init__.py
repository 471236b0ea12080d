"""Many subscriptions at once: their texts read by kernels, compiled to one segment, and what is wrong with which row.

Gives what `covey.matching.index` gets from single ones too; knows nothing of the index or its state.
"""

from covey.matching.bulk.rows import BadSubscription, bad_ids, check_id, compile_rows, listed, translated

__all__ = ["BadSubscription", "bad_ids", "check_id", "compile_rows", "listed", "translated"]
