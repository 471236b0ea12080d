"""Attacks from their beginning to their end, with a bystander, and what came of them."""

from __future__ import annotations

import asyncio
import time
from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Final

import msgspec

from tests.attacks.attacks import ATTACKS
from tests.attacks.bystander import Seen
from tests.attacks.ground import ATTACKERS_CORE, BROKERS_CORE, Ground, ground, role

LOOK_SECONDS: Final = 0.2
"""Between looks at a broker's memory."""
AFTER_SECONDS: Final = 1.0
"""The bystander goes on for so long after an attack: what it left behind counts too."""


@dataclass(frozen=True, slots=True)
class Outcome:
    """What came of an attack."""

    answered: int
    seconds: float
    seen: Seen
    memory: int
    """The most that a broker held, in bytes."""


@dataclass(frozen=True, slots=True)
class Place:
    """The brokers that attacks are done to, which several can share."""

    brokers: int
    absent: tuple[str, ...]
    settings: str

    @classmethod
    def of(cls, name: str) -> Place:
        """Where an attack takes place."""
        attack = ATTACKS[name]
        return cls(attack.brokers, attack.absent, repr(attack.settings))


async def run(names: Sequence[str], size: float, folder: Path, longest: float) -> dict[str, Outcome | BaseException]:
    """Attack the same brokers in one way after the other; gives what the bystander saw, or how it failed."""
    attack = ATTACKS[names[0]]
    found: dict[str, Outcome | BaseException] = {}
    async with ground(folder, attack.brokers, attack.settings, attack.absent) as brokers:
        for name in names:
            try:
                found[name] = await _attack(brokers, name, size, longest)
            except (AssertionError, TimeoutError, OSError) as error:
                found[name] = error
    return found


async def _attack(brokers: Ground, name: str, size: float, longest: float) -> Outcome:
    brokers.peak.clear()
    async with role("tests.attacks.bystander", BROKERS_CORE, brokers.urls[-1], brokers.urls[0]) as bystander:
        assert bystander.stdin is not None
        assert bystander.stdout is not None
        async with asyncio.timeout(longest):
            assert (await bystander.stdout.readline()).strip() == b"ready"
        looking = asyncio.create_task(_look(brokers))
        began = time.monotonic()
        url = brokers.urls[ATTACKS[name].at]
        async with role("tests.attacks.attacker", ATTACKERS_CORE, name, url, str(size)) as bad:
            assert bad.stdout is not None
            async with asyncio.timeout(longest):
                said = await bad.stdout.readline()
            assert said, f"the attacker failed ({await bad.wait()})"
        took = time.monotonic() - began
        await asyncio.sleep(AFTER_SECONDS)
        bystander.stdin.write(b"stop\n")
        async with asyncio.timeout(longest):
            seen = msgspec.json.decode(await bystander.stdout.readline(), type=Seen)
        looking.cancel()
        brokers.look()
    return Outcome(int(said), took, seen, max(brokers.peak))


async def _look(brokers: Ground) -> None:
    while True:
        brokers.look()
        await asyncio.sleep(LOOK_SECONDS)
