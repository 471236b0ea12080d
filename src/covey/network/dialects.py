"""Filters of other dialects that come over HTTP, as the SQL that the broker keeps.

Clients of covey translate by themselves. Sigma's rules take pySigma some milliseconds each, in which a broker would do
nothing else, so it doesn't read them; whoever sends them translates them first.
"""

from __future__ import annotations

from typing import Final

from covey.errors import CoveyError
from covey.language import sql_text
from covey.limits import BROKER_FILTER_LIMITS
from covey.network.errors import FrameError

_SLOW: Final = frozenset({"sigma"})


def claimed_sql(text: str, dialect: str) -> str:
    """The SQL of a filter; the broker checks it against its limits as any other."""
    if dialect in _SLOW:
        raise FrameError(f"brokers don't read the dialect {dialect}; covey sub --dialect {dialect} translates it")
    try:
        return sql_text(text, dialect, BROKER_FILTER_LIMITS)
    except CoveyError as error:
        raise FrameError(str(error)) from None
