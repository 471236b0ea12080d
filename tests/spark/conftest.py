"""One Spark session for all tests, started with what makes a JVM quick to start rather than quick to run."""

from __future__ import annotations

import pytest
from pyspark.sql import SparkSession

from covey.spark import local_session

FAST_START = {
    "spark.driver.extraJavaOptions": "-XX:TieredStopAtLevel=1 -XX:+UseSerialGC",
    "spark.driver.memory": "1g",
    "spark.sql.shuffle.partitions": "2",
    "spark.sql.adaptive.enabled": "false",
    "spark.shuffle.compress": "false",
    "spark.sql.session.timeZone": "UTC",
    "spark.log.level": "ERROR",
}


def pytest_collection_modifyitems(config: pytest.Config, items: list[pytest.Item]) -> None:
    """Where tests are spread over processes by groups, those of Spark stay in two, so that few sessions are started."""
    if config.pluginmanager.hasplugin("xdist"):
        for item in items:
            if "tests/spark/" in item.nodeid:
                streams = "test_stream" in item.nodeid or "test_source" in item.nodeid or "test_loading" in item.nodeid
                item.add_marker(pytest.mark.xdist_group("spark streams" if streams else "spark"))


@pytest.fixture(scope="session")
def spark() -> SparkSession:
    return local_session("covey tests", 2, **FAST_START)
