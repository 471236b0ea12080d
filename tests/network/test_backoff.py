from __future__ import annotations

from covey.network.backoff import LONGEST_PAUSE, Backoff


def test_pauses_grow_up_to_the_longest_and_start_anew() -> None:
    backoff = Backoff()
    pauses = [backoff.pause() for _ in range(20)]
    assert pauses[0] <= 0.1
    assert min(pauses[10:]) >= LONGEST_PAUSE / 2
    assert max(pauses) <= LONGEST_PAUSE
    backoff.reset()
    assert backoff.pause() <= 0.1
