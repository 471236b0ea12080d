"""What commands that match say of subscriptions which can't fire on the events that there are."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Final

from covey.cli.terminal import complain
from covey.matching.against import Finding

MOST_CHECKED: Final = 10_000
"""Subscriptions that didn't fire, of which it is said why they can't."""
MOST_SAID: Final = 5
"""Of these so many lines; `covey check` says the rest."""


def say_findings(found: Sequence[Finding]) -> None:
    """A line for each of some."""
    for one in found[:MOST_SAID]:
        complain(str(one))
    if len(found) > MOST_SAID:
        complain(f"and {len(found) - MOST_SAID:,} more can't fire on these events; covey check RULES EVENTS names them")
