"""Whatever is done to a part's containers and attributes within a turn can be taken back."""

from __future__ import annotations

from collections import OrderedDict, deque
from collections.abc import Callable
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from covey.routing import undo


class Part(undo.Remembered):
    def __init__(self) -> None:
        self.dict: dict[int, int] = {1: 1, 2: 2, 3: 3}
        self.order: OrderedDict[int, int] = OrderedDict({1: 1, 2: 2, 3: 3})
        self.set = {1, 2, 3}
        self.deque = deque([1, 2, 3])
        self.list = [1, 2, 3]
        self.number = 0

    def state(self) -> tuple[Any, ...]:
        return dict(self.dict), list(self.order.items()), set(self.set), list(self.deque), list(self.list), self.number


OPERATIONS: dict[str, Callable[[Part, int, int], object]] = {
    "dict set": lambda part, at, value: part.dict.__setitem__(at, value),
    "dict del": lambda part, at, value: part.dict.__delitem__(at),
    "dict pop": lambda part, at, value: part.dict.pop(at, None),
    "dict popitem": lambda part, at, value: part.dict.popitem(),
    "dict setdefault": lambda part, at, value: part.dict.setdefault(at, value),
    "dict update": lambda part, at, value: part.dict.update({at: value, value: at}),
    "dict or": lambda part, at, value: part.dict.__ior__({at: value}),
    "dict clear": lambda part, at, value: part.dict.clear(),
    "dict new": lambda part, at, value: setattr(part, "dict", {at: value}),
    "order set": lambda part, at, value: part.order.__setitem__(at, value),
    "order del": lambda part, at, value: part.order.__delitem__(at),
    "order pop": lambda part, at, value: part.order.pop(at, None),
    "order first": lambda part, at, value: part.order.popitem(last=False),
    "order last": lambda part, at, value: part.order.popitem(),
    "order move": lambda part, at, value: part.order.move_to_end(at, last=bool(value % 2)),
    "order update": lambda part, at, value: part.order.update({at: value, value: at}),
    "order clear": lambda part, at, value: part.order.clear(),
    "set add": lambda part, at, value: part.set.add(at),
    "set discard": lambda part, at, value: part.set.discard(at),
    "set remove": lambda part, at, value: part.set.remove(at),
    "set pop": lambda part, at, value: part.set.pop(),
    "set update": lambda part, at, value: part.set.update({at, value}, [7]),
    "set or": lambda part, at, value: setattr(part, "set", part.set.__ior__({at, value})),
    "set minus": lambda part, at, value: part.set.__isub__({at, value}),
    "set and": lambda part, at, value: part.set.__iand__({at, value}),
    "set clear": lambda part, at, value: part.set.clear(),
    "deque append": lambda part, at, value: part.deque.append(at),
    "deque appendleft": lambda part, at, value: part.deque.appendleft(at),
    "deque pop": lambda part, at, value: part.deque.pop(),
    "deque popleft": lambda part, at, value: part.deque.popleft(),
    "deque extend": lambda part, at, value: part.deque.extend([at, value]),
    "deque clear": lambda part, at, value: part.deque.clear(),
    "deque new": lambda part, at, value: setattr(part, "deque", deque([at])),
    "list append": lambda part, at, value: part.list.append(at),
    "list extend": lambda part, at, value: part.list.extend([at, value]),
    "list set": lambda part, at, value: part.list.__setitem__(at, value),
    "list slice": lambda part, at, value: part.list.__setitem__(slice(at, None), [value]),
    "list del": lambda part, at, value: part.list.__delitem__(at),
    "list pop": lambda part, at, value: part.list.pop(),
    "list clear": lambda part, at, value: part.list.clear(),
    "number": lambda part, at, value: setattr(part, "number", value),
}
calls = st.lists(st.tuples(st.sampled_from(sorted(OPERATIONS)), st.integers(0, 4), st.integers(0, 9)), max_size=12)


def play(part: Part, done: list[tuple[str, int, int]]) -> None:
    for name, at, value in done:
        try:
            OPERATIONS[name](part, at, value)
        except (KeyError, IndexError, StopIteration):
            continue


@given(calls, calls)
def test_rolling_back_leaves_what_was_before_and_no_more(earlier: list[Any], later: list[Any]) -> None:
    part = Part()
    undo.begin()
    play(part, earlier)
    undo.end()
    before = part.state()
    undo.begin()
    play(part, later)
    undo.roll_back()
    assert part.state() == before


@given(calls)
def test_containers_do_what_those_of_python_do(done: list[Any]) -> None:
    part = Part()
    plain = Part()
    for name in ("dict", "order", "set", "deque", "list"):
        kind = type(getattr(plain, name)).__mro__[1]
        object.__setattr__(plain, name, kind(getattr(plain, name)))
    undo.begin()
    # A set gives up any of its elements.
    done = [call for call in done if call[0] != "set pop"]
    play(part, done)
    undo.end()
    play(plain, done)
    assert part.state() == plain.state()


def test_what_is_noted_is_taken_back_last_first_and_only_within_a_turn() -> None:
    said: list[int] = []
    undo.note(said.append, 0)
    undo.begin()
    undo.note(said.append, 1)
    undo.note(said.append, 2)
    undo.roll_back()
    assert said == [2, 1]
    undo.roll_back()
    assert said == [2, 1]


def test_a_step_that_raises_is_heard_of() -> None:
    undo.begin()
    undo.note(int, "x")
    with pytest.raises(ValueError, match="invalid literal"):
        undo.roll_back()
