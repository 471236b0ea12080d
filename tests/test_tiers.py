"""Tests are marked by where they are, and dealt out to processes so that what shares something is in one of them."""

from __future__ import annotations

from fnmatch import fnmatch

import pytest

from tests.dealing import EARLY, LANES, SPREAD, lane, rank
from tests.rooms import HERE, NEEDED, NEEDS

pytest_plugins = ["pytester"]

FILES = [f"tests/{path.relative_to(HERE).as_posix()}" for path in HERE.rglob("test_*.py")]
TOLD = """
import os, pytest

@pytest.mark.parametrize("number", range(8))
def test_where(number):
    with open(os.environ["TOLD"], "a") as told:
        told.write(f"{__name__} {os.environ['PYTEST_XDIST_WORKER']}\\n")
"""


@pytest.mark.parametrize("place", NEEDED)
def test_what_is_said_to_need_something_is_there(place: str) -> None:
    assert (HERE / place).exists()
    assert set(NEEDED[place]) <= set(NEEDS)


@pytest.mark.parametrize("pattern", [*(one for patterns in LANES.values() for one in patterns), *EARLY])
def test_a_pattern_of_lanes_fits_some_file(pattern: str) -> None:
    assert any(fnmatch(f"{file}::test_of_a_network", pattern) for file in FILES)


def test_what_is_spread_is_there() -> None:
    assert set(SPREAD) <= set(FILES)


def test_lanes_come_first_and_in_their_order() -> None:
    found = [
        lane(f"tests/{file}::test_x") for file in ("network/test_links.py", "spark/test_stream.py", "lab/test_a.py")
    ]
    assert found == ["waits", "spark streams", "lab"]
    assert lane("tests/matching/test_index.py::test_x[a::b]") == "tests/matching/test_index.py"
    assert lane("tests/simulation/test_seeds.py::test_x[0]") == "tests/simulation/test_seeds.py::test_x[0]"
    units = ["tests/filters/test_values.py::test_x", "tests/docs/test_pages.py::test_x[a]", "lab", "waits"]
    assert sorted(units, key=rank) == units[::-1]


def test_tests_of_a_lane_or_file_run_in_one_process(pytester: pytest.Pytester, monkeypatch: pytest.MonkeyPatch) -> None:
    told = pytester.path / "told"
    monkeypatch.setenv("TOLD", str(told))
    monkeypatch.setenv("PYTHONPATH", str(HERE.parent))
    pytester.makeconftest("from tests.conftest import pytest_xdist_make_scheduler  # noqa: F401")
    places = ("lab/test_quick.py", "lab/test_curves.py", "filters/test_values.py")
    for place in places:
        path = pytester.path / "tests" / place
        path.parent.mkdir(parents=True, exist_ok=True)
        path.write_text(TOLD)
    outcome = pytester.runpytest_subprocess("-n", "2", "--import-mode=importlib", "--rootdir", str(pytester.path))
    outcome.assert_outcomes(passed=24)
    workers: dict[str, set[str]] = {}
    for line in told.read_text().splitlines():
        name, worker = line.split()
        workers.setdefault(name.rpartition(".")[2], set()).add(worker)
    assert len(workers["test_quick"]) == len(workers["test_values"]) == 1
    assert workers["test_quick"] == workers["test_curves"]


def test_a_test_that_opens_a_socket_is_not_in_core(pytester: pytest.Pytester, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("PYTHONPATH", str(HERE.parent))
    pytester.makeconftest("from tests.conftest import only_what_it_says_that_it_needs  # noqa: F401")
    pytester.makepyfile(
        """
        import socket, pytest

        @pytest.mark.core
        def test_core():
            socket.create_server(("127.0.0.1", 0)).close()

        def test_other():
            socket.create_server(("127.0.0.1", 0)).close()

        @pytest.mark.core
        def test_pair():
            one, other = socket.socketpair()
            one.close(), other.close()
        """
    )
    outcome = pytester.runpytest_subprocess("-p", "no:xdist", "-W", "ignore")
    outcome.assert_outcomes(passed=3, errors=1)
    outcome.stdout.fnmatch_lines(["*this test opens sockets: say so in NEEDED*"])
