"""The session is that of tests/spark."""

from tests.spark.conftest import spark  # noqa: F401
