"""How far long work on a table of filters has come, for whoever waits for it."""

from __future__ import annotations

from collections.abc import Callable
from typing import TypeAlias

Progress: TypeAlias = Callable[[str, int, int], None]
"""Called with what is being done, how much of it is done, and of how much."""


def silent(_step: str, _done: int, _total: int) -> None:
    """For work that nobody waits for."""
