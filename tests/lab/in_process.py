"""A lab whose points are measured here and now, or given."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from pathlib import Path
from typing import Any, cast

from covey.lab.experiments import Row
from covey.lab.points import Lab, Measure, Point

Given = Callable[[Point, str], Row | list[Row]]


class GivenLab(Lab):
    """Rows come from a function of the point and of the name of what measures it."""

    def __init__(self, given: Given, scale: float = 1.0) -> None:
        super().__init__(cast(Any, None), Path("unused"), scale=scale)
        self._given = given

    def points(self, rows: Sequence[Point], function: Measure, alone: bool = False) -> list[Row]:
        found = [(point, self._given({"seed": self.seed, **point}, function.__name__)) for point in rows]
        return [{**point, **row} for point, some in found for row in (some if isinstance(some, list) else [some])]
