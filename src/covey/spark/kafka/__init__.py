"""Kafka on both sides of a stream: rules that change in a compacted topic, and matches that go to one, each once.

Events come through Spark's own connector, so nothing of covey is needed for them. What is here needs the extra `kafka`
(`confluent-kafka`), on the driver for rules and on workers for matches.
"""

from covey.spark.kafka.rules_topic import RulesTopic
from covey.spark.kafka.topic_sink import TopicSink

__all__ = ["RulesTopic", "TopicSink"]
