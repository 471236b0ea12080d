"""Which truths the tests on one text can have together: exactly, by running all automata side by side.

Starting from the empty text, every combination of states that some text leads to is visited once, with the shortest
text that leads there. The combinations' truths are all that there are (*worlds*), and each comes with a text that
shows it. Constants that the text is compared with take part as one more automaton: it keeps the text while that is a
prefix of a constant, and where it is none any more, the interval between constants in which all longer texts lie too.

Characters between two neighbouring edges of the automata lead to the same states, so one of them stands for all.

Cost: states times characters times what a step of all automata takes; `steps` bounds it. Beyond the bound, the worlds
found are real, but there may be others. Of networks of IP addresses, which have no automaton, all combinations are
known (`networks.py`), each with some addresses. A regular expression that `regular_expressions.py` doesn't understand
is asked of the found texts; that it may be true and false in each world is then all that is known.
"""

from __future__ import annotations

from bisect import bisect_right
from collections import deque
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from itertools import pairwise, product
from typing import TypeAlias

from covey.filters.patterns import Form, Network
from covey.filters.predicates import Predicate, TextTest
from covey.filters.semantics import truth_for
from covey.relations.cuts import Cuts, below, point
from covey.relations.networks import network_regions
from covey.relations.steps import Steps
from covey.relations.text_automata import TextAutomaton, automaton_of, edges_of

World: TypeAlias = tuple[int, int]
"""The interval between cuts that a text lies in, and the tests that it meets, as bits."""

TEXTS_OF_A_WORLD = 8
"""Texts kept for each world, so that tests without an automaton find some to be true of and some to be false of."""

OPAQUE_TESTS = 6
"""Regular expressions without an automaton whose truths are guessed in all combinations."""

NETWORKS = 256
"""Networks of IP addresses whose combinations are listed: their number's square is the cost."""

CONSTANT_SQUARES = 50_000_000
"""The sum of the squares of the lengths of constants that texts are compared with: characters of their prefixes."""

_PER_STEP = 4096
"""Characters of prefixes that are written in one step."""

_State: TypeAlias = tuple[str | int, tuple[int, ...]]
"""The text while it is a prefix of a constant, else the interval that it is in for good; and the automata's states."""

_FIRST_SURROGATE, _AFTER_SURROGATES, _END = 0xD800, 0xE000, 0x110000


@dataclass(frozen=True, slots=True)
class TextWorlds:
    """What is known of the worlds of some tests on one text."""

    shown: dict[World, str]
    """Worlds that exist, each with a text that shows it."""
    doubtful: tuple[World, ...]
    """Worlds that may or may not exist."""
    complete: bool
    """Whether there are no other worlds than these."""


def text_worlds(tests: Sequence[Predicate], bounds: Cuts, steps: Steps) -> TextWorlds:
    """The worlds of tests on one text, where `bounds` are all cuts that comparisons make, the lowest one included."""
    automata = [automaton_of(test) for test in tests]
    known = {1 << at: automaton for at, automaton in enumerate(automata) if automaton is not None}
    networks = {1 << at: form for at, test in enumerate(tests) if isinstance(form := form_of(test), Network)}
    opaque = {1 << at: test for at, test in enumerate(tests) if automata[at] is None}
    search = _Search(known, bounds, steps)
    complete = search.run(steps)
    shown: dict[World, str] = {}
    for (place, truths), examples in search.texts.items():
        for text in examples:
            shown.setdefault((place, truths | _met(opaque, text)), text)
    complete &= len(networks) <= NETWORKS
    regions = network_regions(networks if complete else {})
    for text in (text for examples in regions.values() for text in examples):
        shown.setdefault(search.world_of(text, _met(opaque, text)), text)
    others = [bit for bit in opaque if bit not in networks]
    complete &= len(others) <= OPAQUE_TESTS
    guesses: list[int] = []
    if opaque and complete:
        guesses = [sum(chosen) for chosen in product(regions, *((0, bit) for bit in others))]
    # At a single text nothing is left to guess.
    open_worlds = [world for world in search.texts if point(bounds[world[0]], bounds[world[0] + 1]) is None]
    worlds = ((place, truths | guess) for (place, truths), guess in product(open_worlds, guesses))
    return TextWorlds(shown, tuple(world for world in worlds if world not in shown), complete)


def _met(tests: dict[int, Predicate], text: str) -> int:
    return sum(bit for bit, test in tests.items() if truth_for(test, text))


def form_of(test: Predicate) -> Form:
    """What a test asks of a text."""
    if not isinstance(test, TextTest):
        raise TypeError(f"{type(test).__name__} is no test on texts")
    return test.form()


class _Search:
    """Visits every combination of states that some text leads to."""

    def __init__(self, automata: dict[int, TextAutomaton], bounds: Cuts, steps: Steps) -> None:
        self.texts: dict[World, list[str]] = {}
        self._bits = list(automata)
        self._automata = list(automata.values())
        self._bounds = bounds
        constants = {value for value, _ in bounds if isinstance(value, str)}
        # Prefixes of long constants take more memory than all the steps are worth.
        squares = sum(len(constant) ** 2 for constant in constants)
        self._affordable = squares <= CONSTANT_SQUARES and squares // _PER_STEP <= steps.left
        cut = constants if self._affordable else ()
        self._prefixes = {constant[:end] for constant in cut for end in range(len(constant) + 1)}
        self._alphabet = list(_alphabet(self._automata, self._prefixes))
        if self._affordable:
            steps.spend(squares // _PER_STEP)
        self._cost = len(self._alphabet) * (1 + sum(automaton.weight for automaton in self._automata))

    def run(self, steps: Steps) -> bool:
        """Whether there was time for all."""
        start: _State = ("", tuple(automaton.start for automaton in self._automata))
        seen = {start}
        queue = deque([(start, "")])
        while queue:
            state, text = queue.popleft()
            self._note(state, text)
            if not self._affordable or steps.left < self._cost:
                return False
            steps.spend(self._cost)
            for character in self._alphabet:
                following = self._step(state, character)
                if following not in seen:
                    seen.add(following)
                    queue.append((following, text + character))
        return True

    def _note(self, state: _State, text: str) -> None:
        prefix, states = state
        place = prefix if isinstance(prefix, int) else self._place(prefix)
        accepting = zip(self._bits, self._automata, states, strict=True)
        truths = sum(bit for bit, automaton, at in accepting if automaton.accepts(at))
        examples = self.texts.setdefault((place, truths), [])
        if len(examples) < TEXTS_OF_A_WORLD:
            examples.append(text)

    def world_of(self, text: str, truths: int) -> World:
        """The world of a text that meets these tests without an automaton."""
        for bit, automaton in zip(self._bits, self._automata, strict=True):
            state = automaton.start
            for character in text:
                state = automaton.step(state, character)
            truths |= bit if automaton.accepts(state) else 0
        return self._place(text), truths

    def _step(self, state: _State, character: str) -> _State:
        prefix, states = state
        if isinstance(prefix, str):
            longer = prefix + character
            prefix = longer if longer in self._prefixes else self._place(longer)
        pairs = zip(self._automata, states, strict=True)
        return prefix, tuple([automaton.step(at, character) for automaton, at in pairs])

    def _place(self, text: str) -> int:
        return bisect_right(self._bounds, below(text)) - 1


def _alphabet(automata: list[TextAutomaton], prefixes: set[str]) -> Iterator[str]:
    """One character, as plain as there is, for all that no automaton tells apart."""
    edges = {0, _FIRST_SURROGATE, _AFTER_SURROGATES, _END} | edges_of({text[-1] for text in prefixes if text})
    for automaton in automata:
        edges |= automaton.edges
    ordered = sorted(edge for edge in edges if edge <= _END)
    for low, high in pairwise(ordered):
        if not _FIRST_SURROGATE <= low < _AFTER_SURROGATES:
            yield next((plain for plain in "axmAX05 -" if low <= ord(plain) < high), chr(low))
