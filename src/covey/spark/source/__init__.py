"""Brokers as Spark's data source `covey`: events are read from a broker and published to one, each exactly once.

May import the brokers' clients (`covey.network`); what reads and matches DataFrames needn't know of it.
"""

from covey.spark.source.data_source import register_source

__all__ = ["register_source"]
