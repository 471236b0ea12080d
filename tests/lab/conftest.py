"""The session is made as that of tests/spark; the laboratory's tests that need one are a group of their own."""

from __future__ import annotations

import pytest

from tests.spark.conftest import spark  # noqa: F401


def pytest_collection_modifyitems(config: pytest.Config, items: list[pytest.Item]) -> None:
    if config.pluginmanager.hasplugin("xdist"):
        for item in items:
            if "tests/lab/" in item.nodeid and "spark" in getattr(item, "fixturenames", ()):
                item.add_marker(pytest.mark.xdist_group("lab"))
