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
from covey.spark.source import register
from covey.spark.stream import MatchListener, match_stream, read_matches

__all__ = [
    "Compaction",
    "MatchListener",
    "TermFailures",
    "build_index",
    "compact",
    "local_session",
    "match_events",
    "match_files",
    "match_stream",
    "matching",
    "profile",
    "read_matches",
    "register",
]
