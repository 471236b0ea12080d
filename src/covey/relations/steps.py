"""Steps: what work on relations is counted in, so that it is the same on every machine and in every run.

A step is a node of a formula that is looked at, a character that an automaton reads, or as much of anything else: some
microseconds. Two things are bounded by them, and they must not be mixed up. How many steps the question about one
*pair* of filters may take is part of what the answer means: beyond, the pair counts as not covering and as overlapping,
on every broker and at any time. How many steps a *request* may take says only when work is done: what it leaves is done
later, never decided (`Budget`).
"""

from __future__ import annotations


class TooMuchWork(Exception):  # noqa: N818
    """The bound on the question about a pair was reached: there is no answer."""


class LaterError(Exception):
    """A budget is used up: what was asked for is to be done later. Nothing has changed."""


class Steps:
    """Steps that the question about one pair may still take."""

    __slots__ = ("left",)

    def __init__(self, left: int) -> None:
        self.left = left

    def spend(self, steps: int = 1) -> None:
        """Take steps; raises TooMuchWork where there aren't so many."""
        self.left -= steps
        if self.left < 0:
            raise TooMuchWork


class Budget:
    """Steps that a request may still take. What has begun is finished, so the last question may take more; and one
    question is answered by every budget, so that whoever asks again and again gets on."""

    __slots__ = ("_asked", "is_for_work", "left", "spent")

    def __init__(self, steps: int, *, is_for_work: bool = False) -> None:
        self.left = steps
        self.is_for_work = is_for_work
        """Whether nobody waits: what can only be done in one piece is done, whatever it takes."""
        self.spent = 0
        self._asked = False

    def ask(self) -> None:
        """Before a question; raises LaterError where the budget is used up."""
        if self.left <= 0 and self._asked:
            raise LaterError
        self._asked = True

    def spend(self, steps: int) -> None:
        """Note what a piece of work took."""
        self.left -= steps
        self.spent += steps
