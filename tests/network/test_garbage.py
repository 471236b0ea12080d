from __future__ import annotations

import gc
import weakref
from collections.abc import Iterator

import pytest

from covey.network import garbage
from covey.network.garbage import Garbage
from tests.network.running import in_loop


class Cycle:
    def __init__(self) -> None:
        self.itself = self


@pytest.fixture(autouse=True)
def _as_before() -> Iterator[None]:
    before, callbacks = gc.get_threshold(), list(gc.callbacks)
    yield
    assert gc.get_threshold() == before
    assert gc.callbacks == callbacks


@in_loop
async def test_what_lives_long_is_put_aside_and_looked_at_after_many_sessions() -> None:
    sessions = 0
    collector = Garbage()
    collector.start(lambda: sessions)
    try:
        made = Cycle()
        gone = weakref.ref(made)
        gc.collect()
        assert gc.get_freeze_count() > 0
        del made
        gc.collect()
        collector.look()
        assert gone() is not None
        sessions = garbage.SESSIONS + gc.get_freeze_count() // garbage.OBJECTS
        collector.look()
        assert gone() is None
        assert gc.get_freeze_count() > 0
    finally:
        collector.stop()
    assert gc.get_freeze_count() == 0


@in_loop
async def test_young_garbage_is_collected_as_ever() -> None:
    collector = Garbage()
    collector.start(lambda: 0)
    try:
        gone = weakref.ref(Cycle())
        made = [[number] for number in range(3 * garbage.YOUNG)]
        assert gone() is None
        assert made
    finally:
        collector.stop()
