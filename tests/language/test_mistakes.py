"""Every mistake has one line that says what is wrong and what to write, and a caret under the token."""

from __future__ import annotations

import pytest

from covey.errors import FilterSyntaxError
from covey.language import parse

MISTAKES = """
the filter is empty
|
the filter ends after =
a =|
the filter ends after AND
a = 1 AND|
did you mean >=
a |=> 5
did you mean <=
a |=< 5
did you mean =
a |=== 5
write AND
a = 1 |&& b = 2
AND and AND stand side by side
a = 1 AND |AND b = 2
OR needs a condition before it
|OR a = 1
the string is not closed
name = |'abc
the name is not closed
|`abc = 1
the comment is not closed
a = 1 |/* one
opened at character 1 is not closed
(a = 1|
opened at character 6 is not closed
a IN (1, 2|
opened at character 9 is not closed
contains(a, 'x'|
never opened
a = 1|)
write a IS NULL
a = |None
write double('nan')
a = |nan
needs a value on both sides
a > |* 2
+ takes a number, a timestamp or an interval here, not a string
|lower(a) + 1 > 2
is not a condition; compare it
b = 1 AND |-a + 2
^ is not supported
a |^ 2 = 1
a sign stands only before a number
a = -|'x'
IN takes at least one value
a IN (|)
IN takes a list in parentheses
a IN |5
separated by commas
a IN (1 |2)
mix number and string
b = 1 AND |a IN (1, 'x')
mix number and string
|a BETWEEN 1 AND 'x'
subqueries are not supported
a IN (|SELECT x FROM t)
subqueries are not supported
EXISTS (|SELECT 1)
subqueries are not supported
|SELECT * FROM t
leave out WHERE
|WHERE a = 1
after WHEN comes THEN
CASE WHEN a |ELSE b END = 1
CASE is closed by END
CASE WHEN a > 5 THEN 1 = 1|
CASE takes at least one WHEN
CASE a |THEN b END = 1
without the rest of a query
a = 1 |ORDER BY a
leave out the semicolon
a = 1|;
did you mean contains?
|contians(a, 'x')
did you mean array_contains?
a = 1 OR |arraycontains(a, 1)
the function qqqqq is not known; there are contains
|qqqqq(a)
did you mean lower?
|lowr(a) = 'x'
the function now is refused; a filter is about one event, not about the time
ts < |now()
the function rand is refused; a filter gives one answer for one event
|rand() > 0.5
the function current_user is refused; a filter is about the event
|current_user() = 'x'
the function reflect is refused; filters can't run code
|reflect('java.lang.System', 'exit', 0) = 1
the aggregate count is not supported
|count(*) > 5
substr takes 2 to 3 arguments, not 1
|substr(a) = 'x'
lower(a), a string, is compared with 5, a number
|lower(a) = 5
has no fixed length
ts + INTERVAL |1 MONTH > ts
contains takes a constant here; a string is written in quotes: 'b'
contains(a, |b)
contains takes a string here
contains(a, |5)
takes an attribute here
array_contains(|5, 5)
takes an attribute here, not a condition
contains(|a = 1, 'x')
LIKE takes a pattern in quotes
a LIKE |5
RLIKE takes a pattern in quotes
a RLIKE |NULL
must stand before %, _ or itself
b = 1 AND |a LIKE '!x' ESCAPE '!'
ESCAPE takes one character
|a LIKE 'x' ESCAPE 'ab'
missing )
|a RLIKE '('
missing )
|rlike(a, '(')
ILIKE takes a pattern in quotes
a ILIKE |5
put that condition in parentheses
a IS NULL |ILIKE 'x'
LIKE ANY takes patterns in parentheses
a LIKE ANY |'x'
ILIKE ALL takes patterns in quotes
a ILIKE ALL ('x', |5)
LIKE SOME takes no ESCAPE
a LIKE SOME ('x') |ESCAPE '!'
a value or condition is missing
a LIKE ANY (|)
write NOT a = 5, or a != 5
a |NOT = 5
IS takes [NOT] NULL
a IS |5
IS takes [NOT] NULL
a IS NOT|
put that condition in parentheses
a IS NULL |IS TRUE
IN tests an attribute, not a condition
(a = 1) |IN (1)
a condition compares only with TRUE
5 > |(b = 1)
BETWEEN takes two ends
a BETWEEN 1|, 2
'price', a string, is compared with 5, a number; an attribute is written without quotes
|"price" < 5
a constant alone is not a condition
b AND |5
a constant alone is not a condition
|'x'
AND or OR is missing before b
a = 1 |b = 2
an operator is missing between a and 5
a |5
a comma stands only in
a = 1|, b = 2
DECIMAL has at most 38 digits
CAST(a AS |DECIMAL(40, 2)) > 1
CAST is written CAST(value AS type)
a = CAST('1'|, DOUBLE)
CAST knows the types
a = CAST('1' AS |MONEY)
is not a timestamp
a = |TIMESTAMP 'x'
a value or condition is missing before this parenthesis
a = 1 AND (|)
curly quote
a = |‘x’
brackets follow an attribute
a = |[0]
the bracket is not closed
a[0|
braces are not used
|{"and": []}
no dot at its start
|.a = 1
no dot at its start
a|..b = 1
the character '@' has no meaning here
a = |@x
two operators stand side by side
a = |= 5
needs an attribute or a constant before it
|= 5
"""
LINES = MISTAKES.strip("\n").split("\n")


@pytest.mark.parametrize(("reason", "marked"), list(zip(LINES[::2], LINES[1::2], strict=True)))
def test_the_caret_stands_under_the_mistake(reason: str, marked: str) -> None:
    """The bar in the marked text is where the caret belongs."""
    position = marked.index("|")
    text = marked[:position] + marked[position + 1 :]
    with pytest.raises(FilterSyntaxError) as caught:
        parse(text)
    assert reason in caught.value.message
    assert caught.value.position == position
    assert str(caught.value).split("\n")[1:] == [f"  {text}", f"  {' ' * position}^"]


def test_the_first_of_two_mistakes_is_reported() -> None:
    with pytest.raises(FilterSyntaxError) as caught:
        parse("a = nan AND name = 'abc")
    assert caught.value.position == 4


def test_the_line_of_the_mistake_is_shown() -> None:
    with pytest.raises(FilterSyntaxError) as caught:
        parse("a = 1\nAND b => 2\nAND c = 3")
    assert str(caught.value) == "=> is not an operator; did you mean >=?\n  AND b => 2\n        ^"


@pytest.mark.parametrize("text", ["lower(`b\nc`) = 1", "1 '\nx'", "contains(a, `b\nc`)", "a RLIKE '(\n'"])
def test_a_message_is_one_line_whatever_it_quotes(text: str) -> None:
    with pytest.raises(FilterSyntaxError) as caught:
        parse(text)
    assert "\n" not in caught.value.message


def test_the_end_is_where_the_text_ends_not_its_trailing_space() -> None:
    with pytest.raises(FilterSyntaxError) as caught:
        parse("a =  \n\n")
    assert caught.value.position == 3
