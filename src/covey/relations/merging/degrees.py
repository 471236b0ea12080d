"""The imperfect degree of mergers: which fraction of the events that match a merger match none of its parts.

Definition 1 of Li, Hou and Jacobsen, (P(m) - P(union of parts)) / P(m), with P from `covey.history.Chances`; definition
2 counts only events that some advertisement allows. All mergers of a round are asked for in one call, since a call
indexes its filters. A merger that no event matches lets none through in vain: its degree is 0.

Their threshold multiplies the degree by P(m), which gives the fraction of all events that are forwarded in vain;
`Degrees.traffic` is that.
"""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from covey.events.meaning import Meaning
from covey.filters.algebra import Filter, any_of
from covey.history.chances import Chances
from covey.relations.merging.plain import plain, plain_semantics
from covey.relations.merging.uniform import Uniform


@dataclass(frozen=True, slots=True)
class Degrees:
    """For each of several mergers: its degree, and the fraction of all events that match it in vain."""

    degree: NDArray[np.float64]
    traffic: NDArray[np.float64]
    chance: NDArray[np.float64]
    """The fraction of all events that match it."""


def imperfect_degree(
    merger: Filter,
    parts: Sequence[Filter],
    chances: Chances | None = None,
    *,
    advertisements: Iterable[Filter] = (),
    meaning: Meaning | None = None,
) -> float:
    """The degree of one merger; without `chances`, of events that are uniform around the filters' constants."""
    return float(
        imperfect_degrees([(merger, parts)], chances, advertisements=advertisements, meaning=meaning).degree[0]
    )


def imperfect_degrees(
    mergers: Sequence[tuple[Filter, Sequence[Filter]]],
    chances: Chances | None = None,
    *,
    advertisements: Iterable[Filter] = (),
    meaning: Meaning | None = None,
) -> Degrees:
    """The degrees of many mergers, each with its parts, in one question to `chances`."""
    meaning = meaning or Meaning()
    allowed = tuple(plain(advertisement, meaning) for advertisement in advertisements)
    asked: list[Filter] = []
    for merger, parts in mergers:
        asked.append(plain(merger, meaning))
        asked.append(any_of(plain(part, meaning) for part in parts))
    source = Uniform.around([*asked, *allowed]) if chances is None else chances
    if allowed:
        asked = [one & any_of(allowed) for one in asked]
    found = source.chances(asked, plain_semantics(meaning))
    return degrees_of(found[::2], found[1::2])


def degrees_of(of_merger: NDArray[np.float64], of_union: NDArray[np.float64]) -> Degrees:
    """Degrees from the chances of mergers and of the unions of their parts."""
    in_vain = np.maximum(of_merger - of_union, 0.0)
    degree = np.divide(in_vain, of_merger, out=np.zeros_like(in_vain), where=of_merger > 0)
    return Degrees(degree, in_vain, of_merger)
