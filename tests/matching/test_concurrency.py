"""Matching in threads while others change the index: every answer is that of some moment during the call."""

from __future__ import annotations

import random
import threading

import pytest

import covey
from covey.matching import index as index_module


def test_every_answer_equals_some_state_between_the_calls(monkeypatch: pytest.MonkeyPatch) -> None:
    """One writer makes a known sequence of states (with sealings and merges on the way); readers note the number of
    the last finished and the last begun change around each call, and their answer must be one of those between."""
    monkeypatch.setattr(index_module, "_HEAD", 8)
    monkeypatch.setattr(index_module, "_BACKGROUND", 30)
    rng = random.Random(9)
    index = covey.Index()
    event = {"x": 5, "y": "a"}
    states: list[frozenset[str]] = [frozenset()]
    begun = finished = 0
    problems: list[str] = []
    done = threading.Event()

    def read(batch: bool) -> None:
        calls = 0
        while not done.is_set() or calls < 20:
            before = finished
            answer = index.match_batch([event] * 3).to_pylist()[1] if batch else index.match(event)
            after = begun
            calls += 1
            if len(answer) != len(set(answer)) or not any(
                frozenset(answer) == state for state in states[before : after + 1]
            ):
                problems.append(f"between {before} and {after}: {sorted(answer)}")
                return

    index.match(event)
    readers = [threading.Thread(target=read, args=(batch,)) for batch in (True, False, False)]
    for reader in readers:
        reader.start()
    matching: set[str] = set()
    present: list[str] = []
    for step in range(150):
        roll = rng.random()
        name = f"s{step}"
        hits = rng.random() < 0.5
        text = f"x > {rng.randint(0, 4)} AND y = 'a'" if hits else f"x > {rng.randint(5, 9)} OR y = 'b'"
        if roll < 0.5 or not present:
            present.append(name)
            following = matching | {name} if hits else matching
            change = lambda: index.add(name, text)  # noqa: B023, E731
        elif roll < 0.7:
            gone = present.pop(rng.randrange(len(present)))
            following = matching - {gone}
            change = lambda: index.remove(gone)  # noqa: B023, E731
        elif roll < 0.85:
            name = rng.choice(present)
            following = matching | {name} if hits else matching - {name}
            change = lambda: index.replace(name, text)  # noqa: B023, E731
        else:
            fresh = [f"{name}-{k}" for k in range(10)]
            present += fresh
            following = matching | set(fresh) if hits else matching
            change = lambda: index.add_many([(one, text) for one in fresh])  # noqa: B023, E731
        matching = following
        states.append(frozenset(matching))
        begun += 1
        change()
        finished += 1
    done.set()
    for reader in readers:
        reader.join(timeout=120)
    index.wait()
    assert not problems
    assert frozenset(index.match(event)) == states[-1]


def test_several_writers_lose_nothing() -> None:
    index = covey.Index()

    def write(worker: int) -> None:
        for number in range(150):
            index.add(f"{worker}-{number}", f"x = {number}")
            if number % 3 == 0:
                index.remove(f"{worker}-{number}")

    writers = [threading.Thread(target=write, args=(worker,)) for worker in range(4)]
    for writer in writers:
        writer.start()
    for writer in writers:
        writer.join(timeout=120)
    assert len(index) == 400
    assert sorted(index.match({"x": 4})) == [f"{worker}-4" for worker in range(4)]
