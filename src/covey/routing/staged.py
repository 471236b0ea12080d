"""The stages of one export in a row, with what came out of them; can be brought back to what went in before a turn.

A stage can't be taken back bit by bit: covering and merging have tables of their own. But it takes changes, so the
opposite changes bring it back. Where something raised within a stage nobody knows what it holds, and it is made again.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence

from covey.filters.algebra import Filter
from covey.routing.stages import Change, Stage, through
from covey.routing.undo import is_written_down


class Staged:
    """Stages in a row."""

    def __init__(self, stages: list[Stage]) -> None:
        self.stages = stages
        self.outcome: dict[str, Filter] = {}
        """What came out, by key."""
        self.is_broken = False
        """Whether something raised within a stage."""
        self.touched: set[str] = set()
        """Keys of the outcome that changed in this turn."""
        self._changed: dict[str, Filter | None] = {}
        """What the entries that changed in this turn are now; None for those that went."""
        self._deferring = [(at, stage) for at, stage in enumerate(stages) if stage.defers]

    @property
    def defers(self) -> bool:
        """Whether `catch_up` may have something to do."""
        return bool(self._deferring)

    def begin(self) -> None:
        """The first change of a turn is about to come."""
        self.touched = set()
        self._changed = {}

    def change(self, change: Change, now: float) -> set[str]:
        """Take a change; gives the keys of the outcome that it touches."""
        if is_written_down():
            self._changed.update(dict.fromkeys(change.removed))
            self._changed.update(change.added)
        self.is_broken = True
        touched = self._apply(through(self.stages, change, now))
        self.is_broken = False
        return touched

    def advertise(self, advertised: Sequence[Filter]) -> None:
        """Let stages know what the neighbour has advertised."""
        for stage in self.stages:
            stage.advertise(advertised)

    def catch_up(self, now: float) -> set[str]:
        """Let stages do what is due at this time; gives the keys of the outcome that this touches."""
        touched: set[str] = set()
        self.is_broken = True
        for at, stage in self._deferring:
            change = stage.catch_up(now)
            if change is not None:
                touched |= self._apply(through(self.stages[at + 1 :], change, now))
        self.is_broken = False
        return touched

    @property
    def behind(self) -> int:
        """How much was put off."""
        return sum(stage.behind for stage in self.stages)

    def work(self, now: float) -> set[str]:
        """Do what was put off, as far as the budget goes; gives the keys of the outcome that this touches."""
        touched: set[str] = set()
        self.is_broken = True
        for at, stage in enumerate(self.stages):
            if stage.behind:
                change = stage.work(now)
                if change is not None:
                    touched |= self._apply(through(self.stages[at + 1 :], change, now))
        self.is_broken = False
        return touched

    def back_to(self, entries: Mapping[str, Filter]) -> Change:
        """The change that takes this turn's changes back, where these were the entries before."""
        back = Change()
        for key, condition in self._changed.items():
            before = entries.get(key)
            if before == condition:
                continue
            if condition is not None:
                back.removed.add(key)
            if before is not None:
                back.added[key] = before
        self._changed = {}
        return back

    def _apply(self, change: Change) -> set[str]:
        for key in change.removed:
            self.outcome.pop(key, None)
        self.outcome.update(change.added)
        touched = change.removed | change.added.keys()
        self.touched |= touched
        return touched
