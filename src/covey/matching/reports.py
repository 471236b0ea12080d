"""What an index says of itself: how a bulk addition went, and how it is laid out."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING, Any, Final

from covey.errors import CoveyError
from covey.filters import Semantics

if TYPE_CHECKING:
    from covey.matching.bulk import BadSubscription


@dataclass(frozen=True, slots=True)
class AddReport:
    """What `add_many` did."""

    added: int
    errors: list[BadSubscription]

    def __str__(self) -> str:
        """For people: how many were added, and what is wrong with the others."""
        said = f"{self.added:,} subscriptions added"
        return f"{said}; {len(self.errors):,} can't be:\n{_listed(self.errors)}" if self.errors else said


class AddManyError(CoveyError):
    """Some rows of `add_many` are bad; nothing was added. `errors` has every one of them."""

    def __init__(self, errors: list[BadSubscription]) -> None:
        self.errors = errors
        super().__init__(f"{len(errors):,} subscriptions can't be added, so none was:\n{_listed(errors)}")


SHOWN: Final = 10
"""Bad subscriptions that a text names."""


def _listed(errors: list[BadSubscription]) -> str:
    lines = [f"row {bad.row}, id {bad.id!r}: {bad.error}" for bad in errors[:SHOWN]]
    if len(errors) > SHOWN:
        lines.append(f"… and {len(errors) - SHOWN:,} more (see .errors)")
    return "\n".join(lines)


@dataclass(frozen=True, slots=True)
class IndexStats:
    """How large an index is and how it is laid out."""

    subscriptions: int
    segments: int
    waiting: int
    deleted: int
    attributes: int
    predicates: int
    """Distinct constants that attributes are compared with, and patterns."""
    tables: int
    partitions: int
    entries: int
    swept: int
    """Entries without a key or range: every event is tried on them."""
    nodes: int
    bytes: int
    semantics: Semantics

    def to_dict(self) -> dict[str, Any]:
        """For JSON."""
        return {name: getattr(self, name) for name in self.__slots__}
