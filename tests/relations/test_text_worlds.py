"""The automata of tests on texts read as the interpreter does, and their worlds are all that there are."""

from __future__ import annotations

import random
from itertools import product

import pytest

from covey.filters import And, Compare, IContains, IEndsWith, IEquals, ILike, In, IStartsWith
from covey.filters.patterns import like_automaton, regular_expression
from covey.filters.predicates import Contains, EndsWith, Like, Predicate, RLike, StartsWith, SubstringOf
from covey.filters.semantics import predicate_truth
from covey.relations import covers, equivalent, overlaps, text_facts
from covey.relations.covering import CoveringTable
from covey.relations.cuts import BOTTOM, TOP, Kind, above, below
from covey.relations.regular_expressions import expression_automaton
from covey.relations.steps import Steps
from covey.relations.text_automata import TextAutomaton, automaton_of
from covey.relations.text_worlds import text_worlds

TEXTS = ["".join(letters) for length in range(6) for letters in product("abc", repeat=length)]


def accepted(automaton: TextAutomaton, text: str) -> bool:
    state = automaton.start
    for character in text:
        state = automaton.step(state, character)
    return automaton.accepts(state)


def test_patterns_are_read_as_defined() -> None:
    rng = random.Random(3)
    for _ in range(150):
        pattern = "".join(rng.choice("ab%_%") for _ in range(rng.randint(0, 5)))
        automaton = automaton_of(Like("s", pattern))
        assert automaton is not None
        for text in rng.sample(TEXTS, 60):
            assert accepted(automaton, text) == (like_automaton(pattern).fullmatch(text) is not None), (pattern, text)


@pytest.mark.parametrize("test", [StartsWith, EndsWith, Contains, SubstringOf])
def test_tests_on_parts_are_read_as_defined(test: type[Predicate]) -> None:
    for part in ("", "a", "ab", "aba", "cabc"):
        predicate = test("s", part)  # type: ignore[call-arg]
        automaton = automaton_of(predicate)
        assert automaton is not None
        for text in TEXTS:
            assert accepted(automaton, text) == predicate_truth(predicate, lambda _, text=text: text)  # type: ignore[misc]


def test_tests_without_case_are_read_as_defined() -> None:
    rng = random.Random(4)
    letters = "aAkKKİi\u0307éÉ%_"
    for _ in range(300):
        pattern = "".join(rng.choice(letters) for _ in range(rng.randint(0, 4)))
        test = rng.choice([ILike, IEquals, IStartsWith, IEndsWith, IContains])("s", pattern)
        automaton = automaton_of(test)
        assert automaton is not None
        for _ in range(40):
            text = "".join(rng.choice(letters + "bΣς") for _ in range(rng.randint(0, 4)))
            assert accepted(automaton, text) == test.holds(text), (pattern, text)
    assert automaton_of(ILike("s", "%Σ")) is None


def test_tests_without_case_relate_to_those_with() -> None:
    assert covers(ILike("s", "a%"), Like("s", "A%"))
    assert not covers(Like("s", "A%"), ILike("s", "a%"))
    assert equivalent(ILike("s", "aB%"), IStartsWith("s", "Ab"))
    assert covers(IContains("s", "k"), Compare("s", "=", "\u212a"))
    assert not overlaps(IEquals("s", "ab"), Like("s", "B%"))
    assert equivalent(IEquals("s", "ß"), In("s", ("ß", "ẞ")))
    assert covers(IContains("s", "b"), And((IStartsWith("s", "ab"), IEndsWith("s", "Ba"))))
    table = CoveringTable()
    table.insert("any case", ILike("s", "%mimi%"))
    assert table.insert("one case", And((Like("s", "%Mimi%"), Compare("n", "=", 1)))).covered_by == "any case"
    # A sigma is lowered by what stands around it: nothing is claimed of it, and nothing wrong either.
    assert not covers(ILike("s", "%σ%"), Like("s", "%Σ%"))
    assert overlaps(ILike("s", "%ς"), Like("s", "%Σ"))


@pytest.mark.parametrize("seed", range(3))
def test_what_one_test_says_of_another_without_case_holds_of_every_text(seed: int) -> None:
    rng = random.Random(seed)
    kinds = (ILike, IEquals, IStartsWith, IEndsWith, IContains, Like, StartsWith, EndsWith, Contains, SubstringOf)
    texts = ["".join(letters) for length in range(4) for letters in product("aAΣςσİ", repeat=length)]
    for _ in range(400):
        left, right = (
            rng.choice(kinds)("s", "".join(rng.choice("aAΣς%İ") for _ in range(rng.randint(0, 3)))) for _ in range(2)
        )
        if text_facts.implies(left, right):
            assert all(right.holds(text) for text in texts if left.holds(text)), (left, right)
        if text_facts.excludes(left, right):
            assert not any(left.holds(text) and right.holds(text) for text in texts), (left, right)


def _expression(rng: random.Random, depth: int = 3) -> str:
    roll = rng.random()
    if depth == 0 or roll < 0.35:
        return rng.choice(["a", "b", ".", "[ab]", "[^a]", "\\w", "\\d", "[a-c1]", "\\.", "c"])
    inner = _expression(rng, depth - 1)
    if roll < 0.55:
        return f"(?:{inner}){rng.choice(['*', '+', '?', '{2}', '{1,2}', '{0,}', '*?'])}"
    if roll < 0.65:
        return rng.choice([f"^{inner}", f"{inner}$", f"^{inner}$", f"(^|{inner})", f"({inner}|$)"])
    other = _expression(rng, depth - 1)
    return inner + other if roll < 0.85 else f"({inner}|{other})"


def test_regular_expressions_are_read_as_re2_reads_them() -> None:
    rng = random.Random(4)
    texts = [*rng.sample(TEXTS, 40), "", "\n", "a\nb", "1", "a.b", "_", "é"]
    understood = 0
    for _ in range(300):
        pattern = _expression(rng)
        automaton = expression_automaton(pattern)
        if automaton is not None:
            understood += 1
            for text in texts:
                assert accepted(automaton, text) == (regular_expression(pattern).search(text) is not None), pattern
    assert understood > 250


@pytest.mark.parametrize(
    "pattern",
    [
        "(?i)ibm k", "(?i)[a-z]s", "\\bx", "[[:alpha:]]", "\\pN", "a{1,1000}", "x{2}{3}", "(?P<n>a)", "\\Q.\\E",
        "(?i)é", "[-a]", "a{,2}", "\\x41", "(?s).", "(?i)\\.s",
    ],
)  # fmt: skip
def test_an_expression_is_read_as_re2_does_or_not_at_all(pattern: str) -> None:
    automaton = expression_automaton(pattern)
    for text in ("IBM K", "ibm \u212a", "\u017f", "s", "x", "a", "", "1", "aa", "É", "A", "\n", "-", "zs"):
        if automaton is not None:
            assert accepted(automaton, text) == (regular_expression(pattern).search(text) is not None)


def test_worlds_are_all_combinations_and_each_has_a_text() -> None:
    rng = random.Random(5)
    for _ in range(60):
        constants = sorted({"".join(rng.choice("ab") for _ in range(rng.randint(0, 2))) for _ in range(2)})
        cuts = {BOTTOM[Kind.STRING], TOP[Kind.STRING], *map(below, constants), *map(above, constants)}
        bounds = tuple(sorted(cuts))
        tests: list[Predicate] = [
            Like("s", "".join(rng.choice("ab%_") for _ in range(3))),
            rng.choice([Contains("s", "ab"), EndsWith("s", "b"), SubstringOf("s", "abab"), RLike("s", "a.b")]),
            RLike("s", rng.choice(["^b+$", "a{2}", "\\bab"])),
        ]
        found = text_worlds(tests, bounds, Steps(1_000_000))
        assert found.complete
        every = {*found.shown, *found.doubtful}

        def world(text: str, bounds=bounds, tests=tests) -> tuple[int, int]:  # type: ignore[no-untyped-def]
            place = sum(cut <= below(text) for cut in bounds) - 1
            return place, sum(1 << at for at, test in enumerate(tests) if predicate_truth(test, lambda _: text))

        for shown, text in found.shown.items():
            assert world(text) == shown
        for text in TEXTS:
            assert world(text) in every


def test_beyond_the_bound_worlds_are_real_but_not_all() -> None:
    tests = [Contains("s", letter * 3) for letter in "abcdefgh"]
    found = text_worlds(tests, (BOTTOM[Kind.STRING], TOP[Kind.STRING]), Steps(2_000))
    assert not found.complete
    assert all(
        truths == sum(1 << at for at, test in enumerate(tests) if test.text in text)
        for (_, truths), text in found.shown.items()
    )
