"""Sets of values of one ordered kind, as sorted cuts.

A *cut* lies between values: `(v, 0)` just below `v`, `(v, 1)` just above it. A set is a flat tuple of an even number of
ascending cuts; values between the first and the second are in, between the second and the third out, and so on. NaN,
which follows infinity, lies between `(inf, 1)` and `(inf, 2)`, so numbers need no value of their own for it and cuts
compare as plain tuples.

Two cuts with no value between them are one cut: above `'a'` is below `'a\\0'`, above a microsecond is below the next,
above 2^53 is below 2^53 + 1, above a small double is below the next one (an integer below 2^53 is a double, and a
double from there on is an integer, so every finite number has a neighbour). Each cut is stored in one of its two forms:
the one with the rounder value. Cuts then are equal exactly where they separate the same values, no stored span is
empty, and equal sets are equal tuples.

Cost: intersection and union are linear in the number of cuts, covering and overlap n log m.
"""

from __future__ import annotations

import math
from bisect import bisect_right
from datetime import UTC, datetime, timedelta
from typing import Any, Final, TypeAlias

from covey.filters.values import Kind, Scalar, microseconds

Cut: TypeAlias = tuple[Any, int]
Cuts: TypeAlias = tuple[Cut, ...]

_EXACT: Final = 2**53
_STEP: Final = timedelta(microseconds=1)
_ROUNDNESS: Final = (1_000_000_000, 60_000_000, 1_000_000, 1_000, 10, 2)
_LAST_CHARACTER: Final = "\U0010ffff"
EARLIEST: Final = datetime.min.replace(tzinfo=UTC)
LATEST: Final = datetime.max.replace(tzinfo=UTC)


class _AboveAll:
    """Greater than every string."""

    __slots__ = ()

    def __eq__(self, other: object) -> bool:
        return isinstance(other, _AboveAll)

    def __hash__(self) -> int:
        return 1

    def __lt__(self, other: object) -> bool:
        return False

    def __le__(self, other: object) -> bool:
        return isinstance(other, _AboveAll)

    def __gt__(self, other: object) -> bool:
        return not isinstance(other, _AboveAll)

    def __ge__(self, other: object) -> bool:
        return True

    def __repr__(self) -> str:
        return "ABOVE_ALL"


BOTTOM: Final[dict[Kind, Cut]] = {Kind.NUMBER: (-math.inf, 0), Kind.STRING: ("", 0), Kind.TIMESTAMP: (EARLIEST, 0)}
TOP: Final[dict[Kind, Cut]] = {Kind.NUMBER: (math.inf, 2), Kind.STRING: (_AboveAll(), 0), Kind.TIMESTAMP: (LATEST, 1)}
FULL: Final[dict[Kind, Cuts]] = {kind: (BOTTOM[kind], TOP[kind]) for kind in BOTTOM}


def below(value: Scalar) -> Cut:
    """The cut just below a value."""
    if isinstance(value, str):
        return (value[:-1], 1) if value.endswith("\0") else (value, 0)
    if isinstance(value, datetime):
        return _between_instants(value - _STEP, value) if value > EARLIEST else (value, 0)
    if value != value:
        return (math.inf, 1)
    number = _plain(value)
    return (number, 0) if is_infinite(number) else _between_numbers(_neighbour(number, -1), number)


def above(value: Scalar) -> Cut:
    """The cut just above a value."""
    if isinstance(value, str):
        return (value, 1)
    if isinstance(value, datetime):
        return _between_instants(value, value + _STEP) if value < LATEST else (value, 1)
    if value != value:
        return TOP[Kind.NUMBER]
    number = _plain(value)
    return (number, 1) if is_infinite(number) else _between_numbers(number, _neighbour(number, 1))


def is_infinite(number: int | float) -> bool:
    """As math.isinf, for integers that no double can hold too."""
    return number in (math.inf, -math.inf)


def _plain(number: Scalar) -> int | float:
    assert isinstance(number, (int, float))
    return int(number) if isinstance(number, float) and number.is_integer() else number


def _neighbour(number: int | float, direction: int) -> int | float:
    """The next number that an event can hold, up or down."""
    if -_EXACT < number < _EXACT or number == -direction * _EXACT:
        return _plain(math.nextafter(number, direction * math.inf))
    return int(number) + direction


def _between_numbers(low: int | float, high: int | float) -> Cut:
    if isinstance(low, int) and isinstance(high, int):
        return (high, 0) if _is_rounder(low + 1, low) else (low, 1)
    return (high, 0) if len(repr(high)) < len(repr(low)) else (low, 1)


def _between_instants(low: datetime, high: datetime) -> Cut:
    at = microseconds(low)
    return (high, 0) if _is_rounder(at + 1, at) else (low, 1)


def _is_rounder(one: int, other: int) -> bool:
    """Which of two neighbours is a multiple of something larger; of any two, one is even."""
    return next(one % unit == 0 for unit in _ROUNDNESS if (one % unit == 0) != (other % unit == 0))


def after_prefix(prefix: str) -> Cut:
    """The cut above all strings with a prefix: below the next string of at most its length."""
    head = prefix.rstrip(_LAST_CHARACTER)
    if not head:
        return TOP[Kind.STRING]
    following = ord(head[-1]) + 1
    # Surrogates are no characters of text, so the strings that begin with one are skipped.
    return (head[:-1] + chr(0xE000 if following == 0xD800 else following), 0)


def meet(left: Cuts, right: Cuts) -> Cuts:
    """What is in both."""
    if left == right or not left:
        return left
    if not right:
        return right
    if len(left) == 2 and len(right) == 2:
        low, high = max(left[0], right[0]), min(left[1], right[1])
        return (low, high) if low < high else ()
    result: list[Cut] = []
    i = j = 0
    while i < len(left) and j < len(right):
        low, high = max(left[i], right[j]), min(left[i + 1], right[j + 1])
        if low < high:
            result.append(low)
            result.append(high)
        if left[i + 1] < right[j + 1]:
            i += 2
        else:
            j += 2
    return tuple(result)


def complement(cuts: Cuts, kind: Kind) -> Cuts:
    """The values of the kind that aren't in."""
    bottom, top = BOTTOM[kind], TOP[kind]
    if not cuts:
        return FULL[kind]
    inner = cuts[1:] if cuts[0] == bottom else (bottom, *cuts)
    return inner[:-1] if inner and inner[-1] == top else (*inner, top)


def join(left: Cuts, right: Cuts) -> Cuts:
    """What is in either."""
    if left == right or not right:
        return left
    if not left:
        return right
    if left[-1] < right[0]:
        return left + right
    if right[-1] < left[0]:
        return right + left
    spans = sorted([*zip(left[::2], left[1::2], strict=True), *zip(right[::2], right[1::2], strict=True)])
    result = [*spans[0]]
    for low, high in spans[1:]:
        if low > result[-1]:
            result.append(low)
            result.append(high)
        elif high > result[-1]:
            result[-1] = high
    return tuple(result)


def covers(outer: Cuts, inner: Cuts) -> bool:
    """Whether everything in `inner` is in `outer`."""
    if not inner or outer == inner:
        return True
    if len(outer) == 2:
        return outer[0] <= inner[0] and inner[-1] <= outer[1]
    for at in range(0, len(inner), 2):
        place = bisect_right(outer, inner[at])
        if not place & 1 or outer[place] < inner[at + 1]:
            return False
    return True


def overlap(left: Cuts, right: Cuts) -> bool:
    """Whether something is in both."""
    if len(left) > len(right):
        left, right = right, left
    for at in range(0, len(left), 2):
        place = bisect_right(right, left[at])
        if place & 1 or (place < len(right) and right[place] < left[at + 1]):
            return True
    return False


def holds(cuts: Cuts, value: Scalar) -> bool:
    """Whether a value is in."""
    return bool(bisect_right(cuts, below(value)) & 1)


def point(start: Cut, stop: Cut) -> Scalar | None:
    """The one value between two cuts, if it is one."""
    value: Scalar
    if start == (math.inf, 1):
        return math.nan
    if start[0] == stop[0] and stop[1] == 1:
        return start[0]  # type: ignore[no-any-return]
    if start[1] == 0:
        value = start[0]
    elif stop[1] == 1:
        value = stop[0]
    elif start[0] == -math.inf:
        return None
    else:
        value = following(start[0])
    return value if below(value) == start and above(value) == stop else None


def following(value: Scalar) -> Scalar:
    """The least value above a value that isn't the greatest nor infinite."""
    if isinstance(value, str):
        return value + "\0"
    return value + _STEP if isinstance(value, datetime) else _neighbour(_plain(value), 1)


def next_number(number: int | float) -> int | float:
    """The least number above a finite one that an event can hold."""
    return _neighbour(_plain(number), 1)


def to_integers(cuts: Cuts) -> Cuts:
    """The same integers, with every cut just below an integer and nothing that isn't finite."""
    rounded = []
    for value, side in meet(cuts, ((-math.inf, 1), (math.inf, 0))):
        if is_infinite(value):
            rounded.append((value, side))
        else:
            rounded.append(below(math.floor(value) + (side if value == math.floor(value) else 1)))
    result: list[Cut] = []
    for low, high in zip(rounded[::2], rounded[1::2], strict=True):
        if low == high:
            continue
        if result and result[-1] == low:
            result[-1] = high
        else:
            result += (low, high)
    return tuple(result)
