"""covey on Spark: DataFrames of events matched against tables of subscriptions, in bulk.

May import everything below it (`covey.relations`, `covey.history`, `covey.matching` and so on); nothing below
knows of Spark, and PySpark is imported only here. It uses the DataFrame API alone, so it runs on Spark Connect too.
"""

from covey.spark.batch import match_events, matching
from covey.spark.build import build_index
from covey.spark.compact import Compaction, compact
from covey.spark.files import match_files
from covey.spark.profile import profile
from covey.spark.rules import TermFailures
from covey.spark.session import local_session
from covey.spark.sql import Registered, register
from covey.spark.stream import (
    MatchListener,
    hit_counts,
    match_batch_version,
    match_stream,
    newest_version,
    read_matches,
    silent_rules,
)

__all__ = [
    "Compaction",
    "MatchListener",
    "Registered",
    "TermFailures",
    "build_index",
    "compact",
    "hit_counts",
    "local_session",
    "match_batch_version",
    "match_events",
    "match_files",
    "match_stream",
    "matching",
    "newest_version",
    "profile",
    "read_matches",
    "register",
    "silent_rules",
]
