"""What an index says of itself: how a bulk addition went, and how it is laid out."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

from covey.errors import CoveyError
from covey.filters import Semantics

if TYPE_CHECKING:
    from covey.matching.bulk import BadSubscription


@dataclass(frozen=True, slots=True)
class AddReport:
    """What `add_many` did."""

    added: int
    errors: list[BadSubscription]


class AddManyError(CoveyError):
    """Some rows of `add_many` are bad; nothing was added. `errors` has every one of them."""

    _SHOWN = 10

    def __init__(self, errors: list[BadSubscription]) -> None:
        self.errors = errors
        lines = [f"row {bad.row}, id {bad.id!r}: {bad.error}" for bad in errors[: self._SHOWN]]
        if len(errors) > self._SHOWN:
            lines.append(f"… and {len(errors) - self._SHOWN:,} more (see .errors)")
        super().__init__(f"{len(errors):,} subscriptions can't be added, so none was:\n" + "\n".join(lines))


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
