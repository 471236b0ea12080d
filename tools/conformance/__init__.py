"""Cases that others wrote, run: what covey answers beside what they say it should.

The suites of CloudEvents SQL and SigmaHQ have licences of their own and are not part of covey. They are looked for in
the directory that COVEY_SUITES names, or in `shared/suites` beside a directory above this one; where they aren't,
nothing of them is run. Cases written for covey, from what the standards say, are in `tests/language/cases`.
"""

from __future__ import annotations

import os
from dataclasses import dataclass, field
from pathlib import Path
from typing import Final

ROOT: Final = Path(__file__).parents[2]
OWN: Final = ROOT / "tests" / "language" / "cases"


@dataclass(slots=True)
class Outcome:
    """What came of the cases of a suite."""

    suite: str
    what: str
    """What a case is, in the plural."""
    same: int = 0
    refused: dict[str, int] = field(default_factory=dict)
    """How many are refused, by reason."""
    different: list[str] = field(default_factory=list)
    """The cases that covey answers otherwise."""

    @property
    def cases(self) -> int:
        """All of them."""
        return self.same + sum(self.refused.values()) + len(self.different)

    def refuse(self, reason: str) -> None:
        """Count one that is refused."""
        self.refused[reason] = self.refused.get(reason, 0) + 1


def suites() -> Path | None:
    """Where the suites of others are, if they are there."""
    named = os.environ.get("COVEY_SUITES")
    places = [Path(named)] if named else [above / "shared" / "suites" for above in ROOT.parents]
    return next((place for place in places if place.is_dir()), None)
