"""How much is tried at random: all of it in `make test`, a share in `make test-core`, which is for while one works."""

from __future__ import annotations

import os

SHARE = float(os.environ.get("COVEY_EXAMPLES", "1"))
"""Of the examples that a property usually gets."""


def examples(usual: int) -> int:
    """How many examples to try of a property that usually gets so many."""
    return max(1, round(usual * SHARE))
