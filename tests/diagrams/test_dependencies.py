"""The table of dependencies is complete and minimal, while tests come and go."""

from __future__ import annotations

from hypothesis import given, settings
from hypothesis import strategies as st
from tests.examples import examples

from covey.diagrams import Dependencies, truth_of
from covey.diagrams.worlds import implies as world_implies
from covey.filters import Compare, Contains, In, Is, Like, StartsWith

OPERATORS = st.sampled_from(("=", "!=", "<", "<=", ">", ">="))
COMPARISONS = st.builds(Compare, st.sampled_from(("n", "m")), OPERATORS, st.integers(0, 6))
SETS = st.builds(In, st.just("n"), st.sets(st.integers(0, 6), min_size=2, max_size=3).map(lambda s: tuple(sorted(s))))
TEXTS = st.one_of(
    st.builds(Contains, st.just("s"), st.sampled_from(("", "a", "aa", "ab", "b"))),
    st.builds(StartsWith, st.just("s"), st.sampled_from(("a", "aa", "ab", "b"))),
    st.builds(Like, st.just("s"), st.sampled_from(("%", "a%", "%a%", "ab%"))),
    st.builds(Compare, st.just("s"), OPERATORS, st.sampled_from(("a", "ab", "b"))),
)
BOOLEANS = st.builds(Compare, st.just("b"), OPERATORS, st.booleans())
OTHERS = (
    SETS | TEXTS | BOOLEANS | (SETS | TEXTS.filter(lambda t: not isinstance(t, Compare))).map(lambda p: Is(p, False))
)

# Every cell of the constants 0..6, and beyond.
LINE = [at / 2 for at in range(-2, 16)]


def brute_force(given_test, asked):
    return all(truth_of(asked, value) is True for value in LINE if truth_of(given_test, value) is True)


def check(table, tests, implied):
    for variable in tests:
        wanted = {other for other in tests if implied(variable, other)}
        assert table.closure(variable) == wanted
        assert {other for other in tests if table.implies(variable, other)} == wanted
    edges = set(table.edges())
    for edge in edges:
        assert not reaches(edges - {edge}, *edge), "an edge that can be left out"


def reaches(edges, start, end):
    reached, waiting = {start}, [start]
    while waiting:
        at = waiting.pop()
        new = {b for a, b in edges if a == at} - reached
        reached |= new
        waiting.extend(new)
    return end in reached


@settings(max_examples=examples(200), deadline=None)
@given(st.lists(COMPARISONS, unique=True, max_size=14), st.data())
def test_comparisons_against_brute_force(tests, data):
    table = Dependencies()
    named = dict(enumerate(tests))
    for variable, test in named.items():
        table.add(variable, test)
    for variable in data.draw(st.sets(st.sampled_from(sorted(named)))) if named else set():
        table.remove(variable)
        del named[variable]
    assert len(table) == len(named)

    def implied(given_test, asked):
        left, right = named[given_test], named[asked]
        return left.attribute == right.attribute and brute_force(left, right)

    check(table, named, implied)


@settings(max_examples=examples(150), deadline=None)
@given(st.lists(COMPARISONS | OTHERS, unique=True, max_size=10), st.data())
def test_all_tests_against_pairwise_worlds(tests, data):
    table = Dependencies()
    named = dict(enumerate(tests))
    for variable, test in named.items():
        table.add(variable, test)
    for variable in data.draw(st.sets(st.sampled_from(sorted(named)))) if named else set():
        table.remove(variable)
        del named[variable]

    def implied(given_test, asked):
        left, right = named[given_test], named[asked]
        same = (left.part if isinstance(left, Is) else left).attribute == (
            right.part if isinstance(right, Is) else right
        ).attribute
        return same and world_implies(left, right)

    check(table, named, implied)


def test_the_papers_example():
    table = Dependencies()
    for variable, value in enumerate((10, 8, 5)):
        table.add(variable, Compare("price", ">=", value))
    assert set(table.edges()) == {(0, 1), (1, 2)}
    table.remove(1)
    assert set(table.edges()) == {(0, 2)}
    table.add(7, Compare("price", ">", 5))
    assert set(table.edges()) == {(0, 7), (7, 2)}


def test_a_large_table_of_thresholds_is_a_chain():
    table = Dependencies()
    for at in range(20_000):
        table.add(at, Compare("price", "<", at * 7919 % 20_000))
    assert sum(1 for _ in table.edges()) == 19_999
