"""When to merge: not at each subscription, which would cost more than it saves (Li, Hou and Jacobsen, section 5.1).

Pure: whoever asks brings the time and the counts. Any rule that is met makes merging due.
"""

from __future__ import annotations

from dataclasses import dataclass, fields

from covey.errors import CoveyError


@dataclass(frozen=True, slots=True, kw_only=True)
class MergingPolicy:
    """Rules for when merging is due; a rule that is None is not looked at. Without any it never is."""

    every: float | None = None
    """Seconds since the last merging."""
    at_size: int | None = None
    """Entries in the table."""
    at_arrivals: int | None = None
    """Entries that came since the last merging."""
    at_rate: float | None = None
    """Entries that came a second, since the last merging."""
    at_group_size: float | None = None
    """Entries with the same attributes, on average: what outputs of a diagram are in Li et al."""
    at_bandwidth: float | None = None
    """Traffic, in the unit that the caller measures it in."""

    def __post_init__(self) -> None:
        for field in fields(self):
            value = getattr(self, field.name)
            if value is not None and not value > 0:
                raise CoveyError(f"merging policy {field.name} is {value!r}; give a number above 0, or None")

    def due(
        self,
        now: float,
        *,
        last: float,
        size: int,
        arrivals: int,
        group_size: float = 0.0,
        bandwidth: float = 0.0,
        since: float | None = None,
    ) -> bool:
        """Whether to merge now. Where nothing came since the last time (`last`), there is nothing to gain. Arrivals are
        counted from `since` on, where that isn't the last time: before the first there was none."""
        if not arrivals:
            return False
        elapsed = now - last
        counted = now - (last if since is None else since)
        return (
            _reached(self.every, elapsed)
            or _reached(self.at_size, size)
            or _reached(self.at_arrivals, arrivals)
            or (self.at_rate is not None and counted > 0 and arrivals / counted >= self.at_rate)
            or _reached(self.at_group_size, group_size)
            or _reached(self.at_bandwidth, bandwidth)
        )


def _reached(limit: float | None, value: float) -> bool:
    return limit is not None and value >= limit
