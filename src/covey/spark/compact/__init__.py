"""Smaller tables of subscriptions, made on Spark: what `covey.relations.compaction` does to a list, for millions."""

from covey.spark.compact.table import Compaction, compact

__all__ = ["Compaction", "compact"]
