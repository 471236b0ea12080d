"""Matching streams against subscriptions that change: which version each micro-batch uses, and what it writes, once.

Builds on the rest of the Spark room (`batch`, `build`, `worker_files`), which knows nothing of streams.
"""

from covey.spark.stream.hits import hit_counts, silent_rules
from covey.spark.stream.listener import MatchListener
from covey.spark.stream.query import BatchReport, match_stream
from covey.spark.stream.sinks import read_matches
from covey.spark.stream.versions import match_batch_version, newest_version

__all__ = [
    "BatchReport",
    "MatchListener",
    "hit_counts",
    "match_batch_version",
    "match_stream",
    "newest_version",
    "read_matches",
    "silent_rules",
]
