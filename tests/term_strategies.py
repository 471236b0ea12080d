"""Hypothesis strategies for terms and for filters that test them, over the attributes of `strategies.py`."""

from __future__ import annotations

from datetime import timedelta
from decimal import Decimal
from functools import lru_cache

from hypothesis import strategies as st

from covey.filters import Filter, IsNull, Like, Not
from covey.filters.algebra import And, Or
from covey.filters.casting import CastType
from covey.filters.conditional import case, truth_term
from covey.filters.predicates import OPERATORS, Compare, In
from covey.filters.terms import Fixed, Path, Term, call, cast, comparison, fixed
from tests.strategies import filters, predicates, strings, timestamps

NUMBERS = ("i", "d", "nested.x")
_SMALL = st.sampled_from((0, 1, -1, 2, 3, 7, 10)).map(fixed)
_POINTS = st.sampled_from(("0.1", "1.5", "2.50", "-0.25", "100.0")).map(lambda text: fixed(Decimal(text)))
_DOUBLES = st.sampled_from((0.1, -0.0, 1e300)).map(fixed)
_CASTS = (*map(CastType, ("INT", "BIGINT", "DOUBLE", "FLOAT", "SMALLINT")), CastType("DECIMAL", 10, 2))
_INTERVALS = st.sampled_from((timedelta(days=1), timedelta(seconds=-1, microseconds=7), timedelta(days=800_000))).map(
    fixed
)
_FIELDS = (
    "year",
    "quarter",
    "month",
    "weekofyear",
    "day",
    "dayofyear",
    "weekday",
    "dayofweek",
    "hour",
    "minute",
    "second",
)
_UNITS = ("year", "quarter", "month", "week", "day", "hour", "minute", "second", "millisecond", "century")


@lru_cache
def numbers(depth: int = 2) -> st.SearchStrategy[Term]:
    """Terms whose values are numbers, where the attributes inside have their usual kinds."""
    leaves = st.sampled_from(NUMBERS).map(Path) | _SMALL | _POINTS | _DOUBLES
    if not depth:
        return leaves
    inner = numbers(depth - 1)
    two = st.tuples(inner, inner)
    return st.one_of(
        leaves,
        st.builds(call, st.sampled_from(("+", "-", "*", "/", "%", "div", "power")), two),
        st.builds(
            call, st.sampled_from(("negative", "abs", "round", "floor", "ceil", "sign", "sqrt")), inner.map(_one)
        ),
        st.builds(lambda term, places: call("round", (term, fixed(places))), inner, st.integers(-3, 3)),
        st.builds(call, st.sampled_from(("coalesce", "nullif", "greatest", "least", "compare")), two),
        st.builds(cast, inner | texts(depth - 1), st.sampled_from(_CASTS)),
        st.builds(call, st.just("length"), texts(depth - 1).map(_one)),
        st.builds(call, st.just("instr"), st.tuples(texts(depth - 1), texts(0))),
        st.builds(call, st.sampled_from(_FIELDS), times(depth - 1).map(_one)),
        st.builds(call, st.just("size"), st.just((Path("l"),))),
        st.builds(lambda place: call("element", (Path("l"), fixed(place))), st.integers(-1, 3)),
        st.builds(lambda condition, a, b: case([(condition, a)], b), filters(max_leaves=2), inner, inner),
    )


@lru_cache
def texts(depth: int = 2) -> st.SearchStrategy[Term]:
    """Terms whose values are text."""
    leaves = st.just(Path("s")) | strings().map(fixed)
    if not depth:
        return leaves
    inner = texts(depth - 1)
    place = st.integers(-3, 4).map(fixed)
    anything = numbers(depth - 1) | inner | times(0)
    return st.one_of(
        leaves,
        st.builds(call, st.sampled_from(("lower", "upper", "trim", "ltrim", "rtrim")), inner.map(_one)),
        st.builds(call, st.just("concat"), st.tuples(inner, anything)),
        st.builds(call, st.just("substr"), st.tuples(inner, place, place) | st.tuples(inner, place)),
        st.builds(call, st.sampled_from(("left", "right")), st.tuples(inner, place)),
        st.builds(call, st.just("replace"), st.tuples(inner, texts(0), texts(0))),
        st.builds(cast, anything, st.just(CastType("STRING"))),
    )


@lru_cache
def times(depth: int = 1) -> st.SearchStrategy[Term]:
    """Terms whose values are times."""
    leaves = st.just(Path("t")) | timestamps().map(fixed)
    if not depth:
        return leaves
    inner = times(depth - 1)
    return st.one_of(
        leaves,
        st.builds(call, st.sampled_from(("+", "-")), st.tuples(inner, _INTERVALS)),
        st.builds(lambda unit, term: call("date_trunc", (fixed(unit), term)), st.sampled_from(_UNITS), inner),
        st.builds(cast, inner | texts(0), st.sampled_from((CastType("DATE"), CastType("TIMESTAMP")))),
    )


def terms() -> st.SearchStrategy[Term]:
    """Any term."""
    # With TRUE or FALSE in the place of the attribute this would be a condition, `IS TRUE`, and no term.
    truths = st.builds(lambda test: call("coalesce", (truth_term(test), Path("b"))), predicates())
    return _made(numbers()) | _made(texts()) | _made(times()) | truths


def _made(of: st.SearchStrategy[Term]) -> st.SearchStrategy[Term]:
    """Without mere constants, which parsing folds."""
    return of.filter(lambda term: not isinstance(term, Fixed))


def _one(term: Term) -> tuple[Term]:
    return (term,)


@st.composite
def _tests(draw: st.DrawFn) -> Filter:
    kind = draw(st.integers(0, 5))
    if kind == 0:
        left, right = draw(
            st.sampled_from([_made(numbers()), _made(texts()), _made(times())]).flatmap(lambda of: st.tuples(of, of))
        )
        operator = draw(st.sampled_from(OPERATORS[:-1]))
        compared = comparison(left, right)[0]
        return Compare(compared, operator, 0) if not isinstance(compared, Fixed) else IsNull("i")  # type: ignore[arg-type]
    if kind == 1:
        term = draw(_made(texts()))
        return Like(term, draw(st.sampled_from(("a%", "%b", "_", "%"))))  # type: ignore[arg-type]
    if kind == 2:
        return IsNull(draw(terms()))  # type: ignore[arg-type]
    if kind == 3:
        return Compare(draw(_made(texts())), draw(st.sampled_from(OPERATORS)), draw(strings()))  # type: ignore[arg-type]
    if kind == 4:
        return In(draw(_made(numbers())), tuple(draw(st.lists(st.integers(-3, 10), min_size=1, max_size=3))))  # type: ignore[arg-type]
    constant = st.integers(-3, 12) | st.sampled_from((0.1, 0.5, 2**53 + 1, 1e300))
    return Compare(draw(_made(numbers())), draw(st.sampled_from(OPERATORS)), draw(constant))  # type: ignore[arg-type]


def term_filters(max_leaves: int = 4) -> st.SearchStrategy[Filter]:
    """Filters that test terms, and attributes beside them."""
    leaves = _tests() | _tests() | predicates()
    return st.recursive(
        leaves,
        lambda inner: st.one_of(
            st.builds(Not, inner),
            st.lists(inner, min_size=2, max_size=3).map(lambda parts: And(tuple(parts))),
            st.lists(inner, min_size=2, max_size=3).map(lambda parts: Or(tuple(parts))),
        ),
        max_leaves=max_leaves,
    )
