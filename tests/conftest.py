"""Hypothesis: the same examples in every `make test`, other ones in `make fuzz`; a busy machine is no failure.

Every Spark that a test starts, in whatever process, lives for seconds only: its Java needn't optimise what it runs, and
Spark needn't write and compile Java for each query. `make test-long` has it do so, as people's Spark does.
"""

from __future__ import annotations

import os
import sys
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest
from hypothesis import HealthCheck, settings

from tests import rooms
from tests.examples import examples

settings.register_profile(
    "test", derandomize=True, deadline=None, max_examples=examples(100), suppress_health_check=list(HealthCheck)
)
settings.register_profile("fuzz", deadline=None, suppress_health_check=list(HealthCheck), print_blob=True)
settings.load_profile("fuzz" if "COVEY_FUZZ_EXAMPLES" in os.environ else "test")

QUICK_JAVA = "-XX:TieredStopAtLevel=1 -XX:+UseSerialGC"
INTERPRETED = "-Dspark.sql.codegen.wholeStage=false -Dspark.sql.codegen.factoryMode=NO_CODEGEN"


def pytest_configure(config: pytest.Config) -> None:
    rooms.register(config)
    os.environ.setdefault(
        "SPARK_SUBMIT_OPTS", QUICK_JAVA if config.option.markexpr == "long" else f"{QUICK_JAVA} {INTERPRETED}"
    )


# Before pytest leaves out what `-m` doesn't ask for.
@pytest.hookimpl(tryfirst=True)
def pytest_collection_modifyitems(items: list[pytest.Item]) -> None:
    for item in items:
        rooms.mark(item)


def pytest_ignore_collect(collection_path: Path, config: pytest.Config) -> bool | None:
    """What core can't have isn't imported for it: Spark, browsers and charts take seconds."""
    return True if config.option.markexpr == "core" and rooms.is_never_core(collection_path) else None


@pytest.hookimpl(optionalhook=True)
def pytest_xdist_make_scheduler(config: pytest.Config, log: Any) -> object:
    """How tests are dealt out to several processes, unless a way was asked for."""
    from tests.dealing import Dealing

    return Dealing(config, log) if config.getvalue("dist") == "load" else None


class Doors:
    """Tells of sockets that are opened while they shouldn't be; an audit hook, since that sees every thread."""

    def __init__(self) -> None:
        self.shut = False
        self.tried: list[str] = []
        sys.addaudithook(self._notice)

    def _notice(self, event: str, arguments: tuple[Any, ...]) -> None:
        if self.shut and event in ("socket.bind", "socket.connect") and isinstance(arguments[1], tuple):
            self.tried.append(f"{event} {arguments[1]}")


DOORS = Doors()


@pytest.fixture(autouse=True)
def only_what_it_says_that_it_needs(request: pytest.FixtureRequest) -> Iterator[None]:
    """A test in core that opens a socket is in the wrong tier."""
    DOORS.shut = request.node.get_closest_marker("core") is not None
    DOORS.tried.clear()
    yield
    DOORS.shut = False
    assert DOORS.tried == [], "this test opens sockets: say so in NEEDED of tests/rooms.py"
