"""What an imperfect merger has spent of the threshold, carried with it from broker to broker (R9).

A broker bounds by its threshold how much a merger lets through in vain. The next broker knows the merger and not what
it is made of: merging it again by the same threshold lets more through, and so on along a path. So an entry's key says
what has been spent, in thousandths, rounded up: `0f3c…~37` is a merger of which at most 3.7% match nothing that its
subscribers asked for. What becomes of it counts that in, and every entry of a path stays within one threshold.

Keys are names to whoever holds them. A broker that knows nothing of this holds, matches and takes back such entries as
any others; what it makes of them starts from nothing spent. Another degree is another entry, so nothing else has to
notice that one has changed.
"""

from __future__ import annotations

import math
import re
from typing import Final

PARTS: Final = 1_000
_SPENT: Final = re.compile(r"(.*)~([0-9]{1,4})", re.DOTALL)


def with_spent(key: str, spent: float) -> str:
    """A key that says what its entry has spent; as it is where that is nothing."""
    # A degree that was read from a key must be written as it was read.
    parts = min(math.ceil(spent * PARTS - 1e-6), PARTS)
    return f"{key}~{parts}" if parts > 0 else key


def without_spent(key: str) -> tuple[str, float]:
    """What an entry is called beside what it has spent, and that."""
    found = _SPENT.fullmatch(key)
    return (key, 0.0) if found is None else (found[1], min(int(found[2]), PARTS) / PARTS)


def spent_of(key: str) -> float:
    """What an entry has spent, by its key."""
    return without_spent(key)[1]
