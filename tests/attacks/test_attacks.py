"""Whatever a client does, brokers go on, and a bystander loses nothing and waits no longer than a while.

Sizes are small and machines that run tests are busy, so what is asked here is that nobody stands still; `make attack`
asks for more.
"""

from __future__ import annotations

import asyncio
from collections.abc import Callable
from functools import cache
from typing import Final

import pytest

from tests.attacks.attacks import ATTACKS
from tests.attacks.runs import Outcome, Place, run

SMALL: Final = 0.01
LONGEST: Final = 120.0
"""A broker that stands still for so long hangs."""
WAITED: Final = 10.0
"""What attacks did to bystanders before was half a minute and more."""


@pytest.fixture(scope="module")
def outcomes(tmp_path_factory: pytest.TempPathFactory) -> Callable[[str], Outcome]:
    """What came of an attack; those on the same brokers are done one after the other."""

    @cache
    def at(place: Place) -> dict[str, Outcome | BaseException]:
        names = [name for name in ATTACKS if Place.of(name) == place]
        return asyncio.run(run(names, SMALL, tmp_path_factory.mktemp("brokers"), LONGEST))

    def outcome(name: str) -> Outcome:
        found = at(Place.of(name))[name]
        if isinstance(found, BaseException):
            raise found
        return found

    return outcome


@pytest.mark.parametrize("name", ATTACKS)
def test_a_bystander_goes_on(name: str, outcomes: Callable[[str], Outcome]) -> None:
    found = outcomes(name)
    assert found.answered > 0
    assert found.seen.lost == 0
    assert found.seen.times
    assert found.seen.part(1.0) < WAITED
