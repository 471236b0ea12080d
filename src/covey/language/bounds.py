"""The one way in which a text that is too large is refused: how large it is, which limit, and what to do."""

from __future__ import annotations

from covey.errors import LimitError
from covey.limits import Limits


def over_limit(what: str, name: str, limits: Limits) -> LimitError:
    """An error for what is larger than the limit of that name."""
    return LimitError(f"{what}; the limit {name} is {getattr(limits, name):,}. Make it smaller, or pass larger limits")
