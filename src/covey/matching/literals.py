"""What each test on text needs: literals that must occur in a text for the test to be true of it.

A test that is true wherever one of its literals occurs is *decided* by them. Any other is verified where they occur,
and one without literals wherever it is asked for. Of several sets of literals that a test needs (`LIKE '%a%b%'` needs
both), the rarest is kept.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from typing import Final, NamedTuple

import numpy as np
from numpy.typing import NDArray

from covey.filters import Predicate
from covey.filters.patterns import ANY_TEXT, Expression, Form, Wildcards
from covey.filters.predicates import TextTest
from covey.kernels.opcodes import DECIDED, DENSE, EVERY, VERIFIED
from covey.matching.expression_literals import expression_needs

ANYWHERE, START, END, WHOLE = range(4)
IN_LOWER_CASE: Final = 4
"""As in `kernels.literals`."""
LONGEST: Final = 255
"""Bytes of a literal that are looked for. Of a longer one its last are, and what needs it is verified."""


class Literal(NamedTuple):
    """Bytes that must occur somewhere in a text."""

    tree: int
    """Where, and whether in its lower case."""
    text: bytes
    """In UTF-8; those at the end of a text stand reversed."""


@dataclass(frozen=True, slots=True)
class Need:
    """What a test on text needs."""

    mode: int
    """Whether its literals decide it, or where it is asked for."""
    sets: list[tuple[Literal, ...]]
    """Of each set one must occur; where the literals decide, there is one set."""


_EVERY = Need(EVERY, [])
_VERIFIED = Need(VERIFIED, [])
_DENSE = Need(DENSE, [])


def need_of(pattern: Predicate) -> Need:
    """What a pattern needs to be true."""
    if not isinstance(pattern, TextTest):
        return _DENSE
    form = pattern.form()
    match form:
        case Wildcards(tokens):
            return _wildcards_need(tokens, form)
        case Expression(expression):
            needs = expression_needs(expression)
            if form.ignore_case and needs.in_lower_case:
                return _VERIFIED
            folded = IN_LOWER_CASE if form.ignore_case or needs.in_lower_case else 0
            sets = [tuple(_literal(text, ANYWHERE, folded) for text in one) for one in needs.sets]
            cut = any(was_cut for one in sets for _, was_cut in one)
            found = [tuple(literal for literal, _ in one) for one in sets]
            return Need(DECIDED if needs.decided and not cut else VERIFIED, found)
        case _:
            return _VERIFIED


def _wildcards_need(tokens: tuple[str | int, ...], form: Form) -> Need:
    folded = IN_LOWER_CASE if form.ignore_case else 0
    if tokens == (ANY_TEXT,):
        return _EVERY
    if not tokens:
        return Need(DECIDED, [(Literal(WHOLE + folded, b""),)])
    last = len(tokens) - 1
    found = []
    decides = len(tokens) <= 3
    for place, token in enumerate(tokens):
        if not isinstance(token, str):
            decides = decides and token == ANY_TEXT
            continue
        where = (WHOLE if last == 0 else START) if place == 0 else END if place == last else ANYWHERE
        found.append(_literal(token, where, folded))
    decides = decides and len(found) == 1 and not found[0][1]
    return Need(DECIDED if decides else VERIFIED, [(literal,) for literal, _ in found])


def _literal(text: str, where: int, folded: int) -> tuple[Literal, bool]:
    """A literal, and whether it is only a part of the text."""
    data = text.encode(errors="surrogatepass")
    was_cut = len(data) > LONGEST
    if was_cut:
        data = data[-LONGEST:]
        where = END if where in (END, WHOLE) else ANYWHERE
    return Literal(where + folded, data[::-1] if where == END else data), was_cut


def rarest(need: Need, chance: Callable[[Literal], float]) -> tuple[Literal, ...]:
    """The set of literals of which the fewest events have one; none where there is no set."""
    if len(need.sets) <= 1:
        return need.sets[0] if need.sets else ()
    return min(need.sets, key=lambda one: sum(map(chance, one)))


_BY_LENGTH = (1.0, 0.5, 0.15, 0.04, 0.01, 0.005, 0.003, 0.002)
_START_COUNTS = 2
"""As how many bytes more it counts that a literal is at the start."""
_LONG = ((32, 0.00001), (16, 0.0001), (8, 0.001))


def guessed_chance(literal: Literal) -> float:
    """How likely a literal is to occur, by its length, and where: at the start of a text there is one place for it,
    while texts share their ends, `.exe` and the like, as often as anything."""
    at_start = (literal.tree & ~IN_LOWER_CASE) in (START, WHOLE)
    return chance_by_length(len(literal.text) + (_START_COUNTS if at_start else 0))


def chance_by_length(size: int) -> float:
    """How likely so many bytes are to occur."""
    if size < len(_BY_LENGTH):
        return _BY_LENGTH[size]
    return next(chance for least, chance in _LONG if size >= least)


@dataclass(frozen=True, slots=True)
class Needs:
    """What the patterns of a segment need. Each attribute that patterns test has a slot."""

    needs: list[Need]
    slot: NDArray[np.int32]
    """[pattern]: the slot of its attribute."""
    attribute: NDArray[np.int32]
    """[slot]: the attribute."""


def needs_of(names: list[str], patterns: Sequence[Predicate]) -> Needs:
    """What each pattern needs."""
    numbers = {name: number for number, name in enumerate(names)}
    slots: dict[int, int] = {}
    slot = np.empty(len(patterns), dtype=np.int32)
    for position, pattern in enumerate(patterns):
        slot[position] = slots.setdefault(numbers[pattern.attribute], len(slots))
    return Needs([need_of(pattern) for pattern in patterns], slot, np.array(list(slots), dtype=np.int32))
