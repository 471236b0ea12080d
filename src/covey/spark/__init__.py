"""covey on Spark: DataFrames of events matched against tables of subscriptions, in bulk.

May import everything below it (`covey.relations`, `covey.history`, `covey.matching` and so on); nothing below
knows of Spark, and PySpark is imported only here. It uses the DataFrame API alone, so it runs on Spark Connect too.
"""

from covey.spark.batch import match_events, matching
from covey.spark.build import build_index
from covey.spark.compact import Compaction, compact
from covey.spark.files import match_files
from covey.spark.profile import profile
from covey.spark.session import local_session
from covey.spark.source import register
from covey.spark.stream import match_stream
from covey.spark.stream_listener import MatchListener
from covey.spark.stream_sink import read_matches

__all__ = [
    "Compaction",
    "MatchListener",
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
