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


@pytest.fixture(scope="session")
def spark() -> SparkSession:
    return local_session("covey tests", 2, **FAST_START)
