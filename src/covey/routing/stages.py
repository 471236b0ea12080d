"""Stages: what makes of all entries what a neighbour must know, one step each.

A stage is a table between two sets of filters by key. `change` takes what came and went on its input and gives what
comes and goes on its output, so stages stand in a row. For each of them the output matches whatever the input matches;
an entry that another one stands for is kept and comes back when that one goes (M7, M12). What a stage's output is may
depend on the order of changes (of two equivalent filters, either may stand for both), but what it means may not.

`strategies.py` says which stages a strategy has; each stage but the simplest has a file of its own.
"""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import Callable, Iterable, Sequence
from dataclasses import dataclass, field
from typing import ClassVar

from covey.filters.algebra import Filter


@dataclass(slots=True)
class Change:
    """Entries that came and keys that went."""

    added: dict[str, Filter] = field(default_factory=dict)
    removed: set[str] = field(default_factory=set)

    def add(self, key: str, condition: Filter) -> None:
        """An entry comes; one that went and comes again is a change only if the filter is another."""
        self.added[key] = condition

    def remove(self, key: str) -> None:
        """An entry goes; one that only came in this change never was."""
        if self.added.pop(key, None) is None:
            self.removed.add(key)

    def __bool__(self) -> bool:
        return bool(self.added or self.removed)


@dataclass(frozen=True, slots=True)
class Follow:
    """What stands for an entry behind a stage."""

    key: str | None
    """In the stage's output; None where several entries do together."""
    by: Filter | None = None
    """The other filter that does; None where the entry goes on as it is, or where several do."""

    @property
    def is_itself(self) -> bool:
        """Whether the entry goes on as it is."""
        return self.key is not None and self.by is None


class Stage(ABC):
    """A table between what is asked for and what is exported."""

    name: ClassVar[str]
    """What it does to an entry that another one stands for; the console shows it."""
    defers: bool = False
    """Whether it has something to do at its time, in `catch_up`."""

    @property
    def behind(self) -> int:
        """How much it has put off, for `work`."""
        return 0

    @abstractmethod
    def change(self, change: Change, now: float) -> Change:
        """Take a change of the input; give the change of the output. Keys that come again come after they went."""

    @abstractmethod
    def follow(self, key: str) -> Follow:
        """What stands for an entry of the input. Changes nothing."""

    def advertise(self, advertised: Sequence[Filter]) -> None:  # noqa: B027
        """The neighbour has advertised this: other events don't come from there. What is made of the entries may
        follow, at its time."""

    def catch_up(self, now: float) -> Change | None:  # noqa: ARG002
        """Do what is due at this time, and give the change of the output; None where nothing is."""
        return None

    def work(self, now: float) -> Change | None:  # noqa: ARG002
        """Do what was put off, as far as the budget goes, and give the change of the output; None for none."""
        return None


class Distinct(Stage):
    """Filters with the same key once (identity-based routing, Mühl et al., section 2.4)."""

    name = "identity"

    def __init__(self, key_of: Callable[[str, Filter], tuple[str, Filter]]) -> None:
        self._key_of = key_of
        self._keys: dict[str, str] = {}
        self._uses: dict[str, int] = {}

    def change(self, change: Change, now: float) -> Change:  # noqa: ARG002, D102
        out = Change()
        gone: list[str] = []
        for source in sorted(change.removed):
            key = self._keys.pop(source)
            self._uses[key] -= 1
            if not self._uses[key]:
                gone.append(key)
        for source, condition in change.added.items():
            key, normal = self._key_of(source, condition)
            self._keys[source] = key
            uses = self._uses.get(key)
            self._uses[key] = (uses or 0) + 1
            if uses is None:
                out.add(key, normal)
        for key in gone:
            if not self._uses[key]:
                del self._uses[key]
                out.remove(key)
        return out

    def follow(self, key: str) -> Follow:  # noqa: D102
        return Follow(self._keys[key])


def own_key(source: str, condition: Filter) -> tuple[str, Filter]:
    """Simple routing: every entry by the key that it came with (after the hop's name)."""
    return source.partition("\n")[2], condition


def through(stages: Iterable[Stage], change: Change, now: float) -> Change:
    """A change through stages in a row."""
    for stage in stages:
        if not change:
            return change
        change = stage.change(change, now)
    return change
