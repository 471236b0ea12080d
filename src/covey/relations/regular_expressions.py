"""Regular expressions as automata, for the part of RE2's syntax that most are written in.

Literals, `.`, classes with ranges, `\\d \\w \\s` and their complements, groups, `|`, `* + ?` (greedy or not: which
match is found doesn't matter, only that one is), `{m,n}` with small bounds, `^`, `$`, and `(?i)` before plain ASCII.
What isn't sure to mean the same as in RE2 (flags, `\\b`, named classes, Unicode classes, ...) has no automaton
(None), and no harm is done.

Thompson's construction: a place for each character to be read, and `^` and `$` as empty steps that hold at the start
and at the end only. A match may begin at every character, so the start is entered again at each; a match found stays.
"""

from __future__ import annotations

import re
from dataclasses import dataclass, field
from functools import lru_cache
from typing import Any, Final, TypeAlias

from covey.relations.text_automata import TextAutomaton

LARGEST_REPEAT: Final = 32
LARGEST_AUTOMATON: Final = 512
"""Places of one automaton."""

Ranges: TypeAlias = tuple[tuple[int, int], ...]
"""Code points from the first up to, not including, the second."""

_END: Final = 0x110000
_CLASSES: Final[dict[str, Ranges]] = {
    "d": ((48, 58),),
    "w": ((48, 58), (65, 91), (95, 96), (97, 123)),
    "s": ((9, 11), (12, 14), (32, 33)),
}
_ESCAPES: Final = {"n": "\n", "t": "\t", "r": "\r", "f": "\f"}
_REPEAT: Final = re.compile(r"\{(\d{1,4})(,(\d{0,4}))?\}")
_ANY_CASE: Final = "(?i)"
_FOLDED: Final = {"k": "\u212a", "s": "\u017f"}
"""The Kelvin sign and the long s, which are equal to k and s where case doesn't count."""
_PER_STEP: Final = 16
"""Places that are looked at in one step."""
_FOUND: Final = 1
_AT_START: Final = 4 << LARGEST_AUTOMATON


class _NotUnderstood(Exception):  # noqa: N818
    pass


@dataclass
class _Places:
    """The automaton that is being built: what each place reads, and its empty steps with their conditions."""

    reads: list[Ranges] = field(default_factory=list)
    after: list[int] = field(default_factory=list)
    empty: list[list[tuple[str, int]]] = field(default_factory=list)

    def add(self, reads: Ranges = (), after: int = -1) -> int:
        if len(self.reads) >= LARGEST_AUTOMATON:
            raise _NotUnderstood
        self.reads.append(reads)
        self.after.append(after)
        self.empty.append([])
        return len(self.reads) - 1


# A parsed expression: ("read", ranges), ("at", "^" or "$"), ("all", parts), ("any", parts), ("repeat", part, low, high)
_Tree: TypeAlias = tuple[Any, ...]


class _Parser:
    def __init__(self, pattern: str) -> None:
        self._any_case = pattern.startswith(_ANY_CASE)
        self._pattern = pattern
        self._at = len(_ANY_CASE) if self._any_case else 0

    def parsed(self) -> _Tree:
        tree = self._alternatives()
        if self._at < len(self._pattern):
            raise _NotUnderstood
        return tree

    def _peek(self) -> str:
        return self._pattern[self._at : self._at + 1]

    def _take(self) -> str:
        self._at += 1
        return self._pattern[self._at - 1 : self._at]

    def _alternatives(self) -> _Tree:
        parts = [self._sequence()]
        while self._peek() == "|":
            self._take()
            parts.append(self._sequence())
        return ("any", parts)

    def _sequence(self) -> _Tree:
        parts: list[_Tree] = []
        while self._peek() not in ("", "|", ")"):
            part = self._atom()
            bounds = self._repetition()
            if bounds is not None:
                if part[0] == "at" or self._repetition() is not None:
                    raise _NotUnderstood
                part = ("repeat", part, *bounds)
            parts.append(part)
        return ("all", parts)

    def _repetition(self) -> tuple[int, int | None] | None:
        found = {"*": (0, None), "+": (1, None), "?": (0, 1)}.get(self._peek())
        if found is not None:
            self._take()
        elif self._peek() == "{":
            form = _REPEAT.match(self._pattern, self._at)
            if form is None:
                raise _NotUnderstood
            low = int(form[1])
            high = low if form[2] is None else int(form[3]) if form[3] else None
            if max(low, high or 0) > LARGEST_REPEAT or (high is not None and high < low):
                raise _NotUnderstood
            self._at = form.end()
            found = (low, high)
        if found is not None and self._peek() == "?":
            self._take()
        return found

    def _atom(self) -> _Tree:
        character = self._take()
        match character:
            case "(":
                if self._peek() == "?":
                    if self._pattern[self._at : self._at + 2] != "?:":
                        raise _NotUnderstood
                    self._at += 2
                inner = self._alternatives()
                if self._take() != ")":
                    raise _NotUnderstood
                return inner
            case "[" if not self._any_case:
                return ("read", self._class())
            case ".":
                return ("read", ((0, 10), (11, _END)))
            case "^" | "$":
                return ("at", character)
            case "\\":
                return ("read", self._escape())
            case "*" | "+" | "?" | "{" | "}" | "[" | "]":
                raise _NotUnderstood
        return ("read", self._literal(character))

    def _literal(self, character: str) -> Ranges:
        if not self._any_case:
            return _single(character)
        if not character.isascii():
            raise _NotUnderstood
        alike = {character.lower(), character.upper(), _FOLDED.get(character.lower(), character)}
        return tuple((ord(one), ord(one) + 1) for one in alike)

    def _escape(self) -> Ranges:
        character = self._take()
        if character.lower() in _CLASSES:
            ranges = _CLASSES[character.lower()]
            return ranges if character.islower() else _others(ranges)
        if character in _ESCAPES:
            return _single(_ESCAPES[character])
        if not character or character.isalnum() or not character.isascii() or character == "_":
            raise _NotUnderstood
        return _single(character)

    def _class(self) -> Ranges:
        negated = self._peek() == "^"
        if negated:
            self._take()
        ranges: list[tuple[int, int]] = []
        while (character := self._take()) != "]":
            if character in ("", "[", "-", "&", "~"):
                raise _NotUnderstood
            if character == "\\":
                ranges += self._escape()
                if self._peek() == "-":
                    raise _NotUnderstood
                continue
            last = character
            if self._peek() == "-":
                self._take()
                last = self._take()
                if last in ("]", "[", "\\", "") or last < character:
                    raise _NotUnderstood
            ranges.append((ord(character), ord(last) + 1))
        if not ranges:
            raise _NotUnderstood
        return _others(tuple(ranges)) if negated else tuple(ranges)


def _single(character: str) -> Ranges:
    return ((ord(character), ord(character) + 1),)


def _others(ranges: Ranges) -> Ranges:
    result, at = [], 0
    for low, high in sorted(ranges):
        if low > at:
            result.append((at, low))
        at = max(at, high)
    return (*result, (at, _END)) if at < _END else tuple(result)


def _build(places: _Places, tree: _Tree, after: int) -> int:
    """The place at which a match of the tree that goes on at `after` begins; built from its end."""
    match tree:
        case ("read", ranges):
            return places.add(ranges, after)
        case ("at", anchor):
            return _jump(places, [(anchor, after)])
        case ("all", parts):
            for part in reversed(parts):
                after = _build(places, part, after)
            return after
        case ("any", parts):
            return _jump(places, [("", _build(places, part, after)) for part in parts])
        case ("repeat", part, low, high):
            if high is None:
                loop = places.add()
                places.empty[loop] = [("", _build(places, part, loop)), ("", after)]
                after = loop
            else:
                for _ in range(high - low):
                    after = _jump(places, [("", _build(places, part, after)), ("", after)])
            for _ in range(low):
                after = _build(places, part, after)
            return after
    raise TypeError("not a parsed expression")


def _jump(places: _Places, targets: list[tuple[str, int]]) -> int:
    at = places.add()
    places.empty[at] = targets
    return at


class ExpressionAutomaton:
    """A regular expression that is searched for in a text. The lowest bit is "found", the others are places."""

    def __init__(self, pattern: str) -> None:
        places = _Places()
        end = places.add()
        first = _build(places, _Parser(pattern).parsed(), end)
        self._places = places
        self.weight = 1 + len(places.reads) // _PER_STEP
        self._bit_of_end = 2 << end
        self._again = self._closed([first], ("",))
        self.edges = frozenset(edge for ranges in places.reads for pair in ranges for edge in pair)
        self.start = self._latched(self._closed([first], ("", "^")) | _AT_START)
        self._ends: dict[int, bool] = {}

    def step(self, state: int, character: str) -> int:
        """The places after one more character."""
        if state == _FOUND:
            return _FOUND
        state &= ~_AT_START
        point = ord(character)
        reached = [
            self._places.after[at]
            for at in _bits(state >> 1)
            if any(low <= point < high for low, high in self._places.reads[at])
        ]
        return self._latched(self._closed(reached, ("",)) | self._again)

    def accepts(self, state: int) -> bool:
        """Whether a match is found, `$` being true at the end of the text."""
        known = self._ends.get(state)
        if known is None:
            conditions = ("", "$", "^") if state & _AT_START else ("", "$")
            places = _bits((state & ~_AT_START) >> 1)
            known = state == _FOUND or bool(self._closed(places, conditions) & self._bit_of_end)
            self._ends[state] = known
        return known

    def _latched(self, state: int) -> int:
        return _FOUND if state & self._bit_of_end else state

    def _closed(self, reached: list[int], conditions: tuple[str, ...]) -> int:
        """All places that empty steps lead to, the ones that wait for a condition included."""
        seen = set(reached)
        stack = list(seen)
        while stack:
            for condition, target in self._places.empty[stack.pop()]:
                if condition in conditions and target not in seen:
                    seen.add(target)
                    stack.append(target)
        return sum(2 << at for at in seen)


def _bits(mask: int) -> list[int]:
    return [at for at in range(mask.bit_length()) if mask >> at & 1]


@lru_cache(maxsize=1024)
def expression_automaton(pattern: str) -> TextAutomaton | None:
    """The automaton of a regular expression; None where it isn't sure to mean what RE2 makes of it."""
    try:
        return ExpressionAutomaton(pattern)
    except (_NotUnderstood, RecursionError):
        return None
