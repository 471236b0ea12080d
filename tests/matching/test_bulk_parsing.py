"""What the kernels read of many texts is what the parser and `Lowering` give for each text alone."""

from __future__ import annotations

import random
from typing import Any

import numpy as np
import pyarrow as pa
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from tests.examples import examples
from tests.strategies import filters

from covey.errors import CoveyError
from covey.filters import FALSE
from covey.filters.quoting import KEYWORDS
from covey.kernels.bulk_lexing import WORDS
from covey.kernels.opcodes import PATTERN, STRING
from covey.language import parse
from covey.limits import DEFAULT_LIMITS, Limits
from covey.matching.bulk import parsing as bulk_parsing
from covey.matching.bulk.parsing import parse_bulk
from covey.matching.lowering import Flat, Lowering


def array(texts: list[str | None]) -> pa.Array:
    return pa.array(texts, pa.large_string())


def one_by_one(texts: list[str | None], limits: Limits) -> tuple[Flat, list[tuple[int, CoveyError]]]:
    """The twin: every row through the parser."""
    lowering = Lowering(limits)
    errors = []
    for row, text in enumerate(texts):
        try:
            lowering.add(parse(text, limits=limits))  # type: ignore[arg-type]
        except CoveyError as error:
            errors.append((row, error))
            lowering.add(FALSE)
    return lowering.finish(), errors


def decoded(flat: Flat) -> list[list[Any]]:
    """Each row's tokens, with what a leaf's numbers stand for in the place of its number."""
    rows = []
    for start, end in zip(flat.starts[:-1], flat.starts[1:], strict=True):
        rows.append([token if token < 0 else leaf(flat, token) for token in flat.tokens[start:end].tolist()])
    return rows


def leaf(flat: Flat, number: int) -> tuple[Any, ...]:
    operator, kind, text = flat.leaf_operator[number], flat.leaf_kind[number], int(flat.leaf_text[number])
    what: Any = text
    if operator == PATTERN:
        what = flat.patterns[text]
    elif kind == STRING:
        what = flat.strings[text]
    value = flat.leaf_number[number]
    return (
        flat.names[flat.leaf_attribute[number]],
        int(operator),
        int(kind),
        float(value).hex(),
        int(flat.leaf_remainder[number]),
        what,
    )


def assert_same(texts: list[str | None], limits: Limits = DEFAULT_LIMITS, **options: Any) -> None:
    flat, errors = parse_bulk(array(texts), limits, **options)
    expected, expected_errors = one_by_one(texts, limits)
    assert decoded(flat) == decoded(expected)
    assert [(row, type(error), str(error)) for row, error in errors] == [
        (row, type(error), str(error)) for row, error in expected_errors
    ]
    assert sorted(flat.names) == sorted(expected.names)
    assert sorted(flat.strings) == sorted(expected.strings)
    assert set(flat.patterns) == set(expected.patterns)
    assert len(flat.patterns) == len(expected.patterns)
    assert sorted(flat.tokens[flat.tokens >= 0]) == list(range(len(flat.leaf_attribute)))
    for column in ("tokens", "starts", "leaf_attribute", "leaf_operator", "leaf_kind", "leaf_number", "leaf_text"):
        assert getattr(flat, column).dtype == getattr(expected, column).dtype


def read_by_kernels(texts: list[str | None], limits: Limits = DEFAULT_LIMITS) -> list[bool]:
    _, parts = bulk_parsing._read(array(texts), limits, 1)
    return [not given_up for part in parts for given_up in part.given_up]


READ = """
a = 1
a=1
  a  ==  1
a <> 1 AND b != 'x' and c <= 2 aNd d >= 3 OR e < 4 or f > 5
a <=> 'x' OR a <=> NULL OR a <=> TRUE
a = NULL OR a != NULL
5 < a AND 'x' = b AND TRUE = c AND 1 >= d AND 2 != e AND NULL <=> f
android = 1 AND in_stock = 2 OR nothing = 3 AND isnt = 4 AND order = 5 AND nullable = 6 AND _x1 = 7
a.b.c = 1 AND is.null = 2 AND a.1 = 3 AND not.in = 4
a
NOT a
a AND NOT b OR NOT (c)
((a)) AND (b)
TRUE
FALSE OR NULL
(TRUE) AND NOT (NULL)
NOT NOT NOT a = 1
NOT(a=1)AND(b=2)OR(c)
a AND (b AND c) AND ((d AND e) AND (f AND (g AND h)))
a OR (b OR c) OR ((d OR e) OR (f OR (g OR h)))
a AND (b OR c AND (d OR (e OR f) OR g)) OR (h AND (i AND j) OR (k OR l AND m))
(a AND b) AND c BETWEEN 1 AND 2 AND (d BETWEEN 1 AND 2 AND e)
a OR b IN (1, 2, 3) OR (c IN (1, 2) OR d)
a OR (b IN (1, 2, 3)) OR NOT (c OR d) OR (NOT c OR d)
a IN (1) AND b NOT IN ('x', 'y', 'x') AND c IN (1, 2.5, -3, NULL) AND d IN (TRUE, FALSE) AND e IN (NULL)
a BETWEEN -1 AND +1.5 AND b NOT BETWEEN 'a' AND 'b' AND c BETWEEN NULL AND 3 AND NOT d BETWEEN TRUE AND FALSE
a = - 5 AND b =-5 AND c<-.5 AND d>+ 5. AND e = -0.0 AND f = -0
a IS NULL AND b IS NOT NULL AND NOT c IS NULL
a IS TRUE OR b IS NOT FALSE OR c IS UNKNOWN OR d IS NOT unknown
a = 1 IS TRUE AND (a = 1 AND b) IS NOT UNKNOWN AND 5 = a IS NULL AND NOT (a IS NULL) IS FALSE
(a IS NULL) IS NULL AND ((a AND b)) IS TRUE AND (NOT a) IS NULL
contains(a, 'x') AND STARTSWITH (b,'y') AND EndsWith( c , '' ) OR NOT substring_of(d.e, 'x y')
contains(a, 'x') IS TRUE OR contains(a, 'x') OR contains(b, 'x') OR endswith(a, 'x')
a LIKE 'x' AND a LIKE 'x%' AND a LIKE '%x' AND a LIKE '%x%' AND a LIKE 'x_y' AND a LIKE ''
a NOT LIKE '%' AND s = 'x'
where = 1 AND select IS NULL AND case AND date = 'x' AND r = 'y' AND unknown AND escape = 1
s = 'é' AND s = '𝔘😀' AND s = '' AND s = ' -- /* " ` ; and' AND contains(s, 'żółw')
a = 123456789012345678 AND b = 9007199254740993 AND c = -9007199254740993 AND d = 000000000000000000000012
a = 0.1 AND b = 1e22 AND c = 1E-22 AND d = 1.5e+3 AND e = 2.718281828459045 AND f = -2.2250738585072014e-108
a = 1e100 AND b = -1.7976931348623157e50 AND c = 0.30000000000000004 AND d = 9007199254740993.0 AND e = 0e5
""".strip().split("\n")

LEFT_TO_THE_PARSER = r"""
a ILIKE 'x%'
a NOT ILIKE 'x'
a LIKE ANY ('x', 'y')
a NOT LIKE SOME ('x')
a ILIKE ALL ('x', NULL)
exists(tags, x -> x > 5)
exists(tags,x->x>5)AND a=1
forall(t, x -> x = -5)
arrays_overlap(t, array('a'))
is_missing(a) AND b = 1
cidr_match(a, '10.0.0.0/8')
iequals(a, 'X') OR icontains(a, 'y')
a = 1 -- comment
/* comment */ a = 1
`a b` = 1
a.`b` = 1
é = 1
a = "x"
a = 'it''s'
a = 'x\ny'
a = r'x'
r'x' = a
a = 1L AND b = 1.5f AND c = 2BD
a = 1e400
a = 12345678901234567890
a !< 1
!a
a = 1 = TRUE
(a) = 5
(a) IS NULL
(TRUE) IS NULL
TRUE IS NULL
1 = 1
a RLIKE 'x+'
a LIKE 'x!%' ESCAPE '!'
a = TIMESTAMP '2024-01-31'
a IS DISTINCT FROM 1
array_contains(a, 1)
contains('x', a)
superstring(a, 'x')
a IN ((1), 2)
a = - - 5
a = double('NaN')
1a = 2
""".strip().split("\n")

ERRORS = r"""
a =
a = b
a = 'x
a = = 1
a => 1
a === 1
a !== 1
a <== 1
= 1
a = 1 AND
AND a
(a = 1
a = 1)
()
a b
a 'x'
a IN ()
a IN (1, 'x')
a IN (1,)
a IN 1
a BETWEEN 1 AND 'x'
a BETWEEN 1
a IS 5
a IS NULL IS NULL
a IN (1) = TRUE
a NOT
a NOT b
a LIKE 5
contains(where, 'x')
contains(a 'x')
contains(a, 5)
contains(a)
nosuch(a, 'x')
contains(a, 'x') IN (1)
(a = 1) IN (1)
5
'x'
NOT 5
a.
a..b = 1
.a = 1
a = 1.5.5
a = 1.e
a = .
a = -
a = --5
a = 1;
a = 1 -- x
é
a = ‘x’
""".strip("\n").split("\n")


@pytest.mark.parametrize("text", READ)
def test_common_text_is_read_by_the_kernels_as_by_the_parser(text: str) -> None:
    assert read_by_kernels([text]) == [True]
    assert_same([text])


@pytest.mark.parametrize("text", [*LEFT_TO_THE_PARSER, *ERRORS, "", "   ", "\x1ca = 1", "a\xa0= 1", "a = 1\0"])
def test_other_text_is_left_to_the_parser(text: str) -> None:
    assert read_by_kernels([text]) == [False]
    assert_same([text])


@pytest.mark.parametrize("threads", [1, 3])
def test_rows_stay_in_order_whoever_reads_them(threads: int, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(bulk_parsing, "_PART_ROWS", 10)
    rows: list[str | None] = [*READ, *LEFT_TO_THE_PARSER, *ERRORS, None, "", *READ]
    random.Random(3).shuffle(rows)
    assert_same(rows, threads=threads)


def test_no_rows_and_none_that_can_be_read() -> None:
    assert_same([])
    assert_same([None])
    assert_same(["", None, "("])


def test_slices_and_plain_string_arrays_are_read_too() -> None:
    texts = ["x = 'cut off'", *READ, "y"]
    expected = decoded(one_by_one(texts[1:-1], DEFAULT_LIMITS)[0])  # type: ignore[arg-type]
    for kind in (pa.large_string(), pa.string()):
        flat, errors = parse_bulk(pa.array(texts, kind)[1:-1])
        assert decoded(flat) == expected
        assert errors == []
        assert "x" not in flat.names


def test_a_row_that_is_given_up_leaves_no_names_or_strings_behind() -> None:
    rows: list[str | None] = []
    for row in range(3000):
        rows.append(f"a{row} = 's{row}' AND contains(b{row}, 'p{row}')" + (" AND" if row % 3 else ""))
    assert_same(rows)


def test_many_distinct_names_strings_and_patterns() -> None:
    assert_same([f"a{row % 700} = 's{row}' AND b LIKE '{row % 900}%' OR c LIKE '{row}'" for row in range(5000)])


@pytest.mark.parametrize(
    "limits",
    [
        Limits(text_length=20),
        Limits(tokens=7),
        Limits(depth=2),
        Limits(depth=1),
        Limits(depth=0),
        Limits(set_values=2),
        Limits(pattern_length=3),
        Limits(diagram_nodes=3),
    ],
)
def test_every_limit_gives_the_parsers_error(limits: Limits) -> None:
    near: list[str | None] = [
        *("(" * depth + "a" + ")" * depth for depth in range(4)),
        *("NOT " * depth + "contains(a, 'x')" for depth in range(4)),
        "NOT (a) AND NOT (b) OR ((c))",
        *(f"a IN ({', '.join('1' * size)})" for size in range(1, 5)),
        *(f"a LIKE '{'é' * size}'" for size in range(5)),
        *(" AND ".join("a" * size) for size in range(1, 6)),
        *(f"a = -{'1' * size}" for size in range(10, 18)),
        "a = 'ééééééééééé'",
    ]
    assert_same([*near, *READ], limits)


def test_deep_and_long_texts() -> None:
    deep: list[str | None] = ["(" * depth + "a" + " AND b)" * depth + " OR c" for depth in (50, 98, 99, 100, 101, 200)]
    right = [" AND (".join(["a", "b OR c"] * 45) + ")" * 89, " AND (".join("a" * 90) + ")" * 89]
    flat = [" OR ".join(f"a{i} = {i} AND b" for i in range(size)) for size in (100, 1365, 1366, 3000)]
    assert_same([*deep, *right, *flat, "a = '" + "x" * 70_000 + "'", "a = '" + "x" * 60_000 + "'"])


def test_keywords_are_the_languages() -> None:
    assert set(WORDS) == KEYWORDS


@settings(max_examples=examples(300), deadline=None)
@given(st.lists(filters().map(str), min_size=1, max_size=5))
def test_printed_filters(texts: list[str | None]) -> None:
    assert_same(texts)


ATOMS = (
    "a", "b = 1", "c <> 'x'", "d IN (1, 2)", "e NOT BETWEEN 1 AND 2.5", "f IS NOT NULL", "NULL", "TRUE",
    "startswith(g, 'x')", "h LIKE 'x%'", "1.5 >= i", "j IS TRUE", "k = 2 IS NOT TRUE",
)  # fmt: skip


@settings(max_examples=examples(300), deadline=None)
@given(
    st.recursive(
        st.sampled_from(ATOMS),
        lambda inner: st.one_of(
            st.tuples(inner, st.sampled_from((" AND ", " OR ", " and\n", "\tOr ")), inner).map("".join),
            inner.map(lambda text: f"({text})"),
            inner.map(lambda text: f"NOT ({text})"),
            inner.map(lambda text: f"NOT {text}"),
            inner.map(lambda text: f"( {text} ) IS FALSE"),
        ),
        max_leaves=15,
    )
)
def test_any_nesting(text: str) -> None:
    assert_same([text])


WORDS_AND_SIGNS = [
    "ILIKE",
    "ANY",
    "->",
    "exists(a, x ->",
    "is_missing(a)",
    "and",
    "OR",
    "not",
    "In",
    "BETWEEN",
    "like",
    "rlike",
    "IS",
    "null",
    "TRUE",
    "false",
    "unknown",
    "distinct",
    "from",
    "escape",
    "contains",
    "startswith",
    "where",
    "(",
    "(",
    ")",
    ")",
    ",",
    ",",
    ".",
    "=",
    "==",
    "<>",
    "!=",
    "<",
    "<=",
    ">",
    ">=",
    "<=>",
    "!",
    "+",
    "-",
    "*",
    ";",
    "'",
    '"',
    "`",
    "--",
    "/*",
    "0",
    "1",
    "-1",
    "1.5",
    "1e3",
    ".5",
    "5.",
    "1L",
    "'a'",
    "'b%'",
    "''",
    "a",
    "b.c",
    "s",
    "i",
    "d",
    "x1",
    "r",
    "é",
    "_",
]


@settings(max_examples=examples(1000), deadline=None)
@given(st.lists(st.sampled_from(WORDS_AND_SIGNS), max_size=12), st.sampled_from((" ", " ", "")))
def test_arbitrary_words(words: list[str], between: str) -> None:
    assert_same([between.join(words)])


@settings(max_examples=examples(500), deadline=None)
@given(st.lists(st.text(st.characters(max_codepoint=127), max_size=12), max_size=5))
def test_arbitrary_characters(texts: list[str | None]) -> None:
    assert_same(texts)


@pytest.mark.thorough
def test_random_words_by_the_thousand() -> None:
    """Short runs of words are filters often enough to try the grammar's corners."""
    rng = random.Random(5)
    texts: list[str | None] = [" ".join(rng.choices(WORDS_AND_SIGNS, k=rng.randint(1, 7))) for _ in range(20_000)]
    assert_same(texts)


@pytest.mark.thorough
def test_mutated_texts() -> None:
    """A character left out, doubled or replaced: near the grammar's edge on both sides."""
    rng = random.Random(6)
    texts: list[str | None] = []
    for _ in range(10_000):
        text = rng.choice(READ)
        at = rng.randrange(len(text))
        texts.append(text[:at] + rng.choice(("", text[at] * 2, rng.choice("()',.=<>!-+ 1eaN%_\\"))) + text[at + 1 :])
    assert_same(texts)


def test_numbers_are_rounded_as_python_rounds_them() -> None:
    rng = random.Random(7)
    literals = ["0.0", "9007199254740991.0", "9007199254740992.0", "9007199254740993.0", "9007199254740992e22", "1e23"]
    for _ in range(20_000):
        whole = str(rng.randrange(10 ** rng.randint(0, 18)))
        fraction = "".join(rng.choices("0123456789", k=rng.randint(0, 20)))
        exponent = rng.choice(("", "", f"e{rng.randint(-40, 40)}", f"E+{rng.randint(0, 30)}"))
        literals.append(f"{whole}.{fraction}{exponent}")
    literals += [repr(rng.uniform(-1, 1) * 10 ** rng.randint(-20, 20)) for _ in range(20_000)]
    texts: list[str | None] = [f"a = {literal}" for literal in literals]
    assert all(read_by_kernels(texts))
    flat, errors = parse_bulk(array(texts))
    assert errors == []
    numbers = flat.leaf_number[flat.tokens]
    tested = [flat.names[leaf] for leaf in flat.leaf_attribute[flat.tokens].tolist()]
    # What says more digits than a double has is compared by a term, or is the integer that it says.
    rests = flat.leaf_remainder[flat.tokens].tolist()
    plain = np.array([name == "a" and rest == 0 for name, rest in zip(tested, rests, strict=True)])
    assert plain.mean() > 0.7
    wanted = np.array([float(literal) for literal in literals]) + 0.0
    assert numbers[plain].tobytes() == wanted[plain].tobytes()


def test_integers_are_exact() -> None:
    rng = random.Random(8)
    integers = [rng.randrange(10 ** rng.randint(0, 18)) * rng.choice((1, -1)) for _ in range(20_000)]
    texts: list[str | None] = [f"a = {integer}" for integer in integers]
    assert all(read_by_kernels(texts))
    flat, _ = parse_bulk(array(texts))
    exact = [int(flat.leaf_number[leaf]) + int(flat.leaf_remainder[leaf]) for leaf in flat.tokens]
    assert exact == integers
    assert [float(integer) for integer in integers] == flat.leaf_number[flat.tokens].tolist()
