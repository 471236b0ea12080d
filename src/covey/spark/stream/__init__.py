"""Matching streams against subscriptions that change: which version each micro-batch uses, and what it writes, once.

Builds on the rest of the Spark room (`batch`, `build`, `worker_files`), which knows nothing of streams.
"""

from covey.spark.stream.listener import MatchListener
from covey.spark.stream.query import BatchReport, match_stream
from covey.spark.stream.sink import read_matches

__all__ = ["BatchReport", "MatchListener", "match_stream", "read_matches"]
