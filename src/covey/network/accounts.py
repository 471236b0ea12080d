"""What one principal may send in a second, over all of its connections and requests together.

Limits by connection or by name are none: both cost nothing to make. So rates are kept by account, which is the name of
a principal, or the address of those whom nobody knows.

The broker's own time is shared evenly, turn by turn (`fair_inputs.py`); here it has a quota beside. What a principal's
inputs have cost the broker, measured, is held against `processor_share` while anyone else has something to say: its
connections are read more slowly then, so that some of each second is free for those who say little.
"""

from __future__ import annotations

from math import inf
from typing import Final

from covey.network.limits import NetworkLimits, Rate

IDLE_SECONDS: Final = 2.0
"""An account that was silent for so long has full buckets, and can be forgotten."""
SWEEP_ABOVE: Final = 1_000
"""Accounts from which on idle ones are forgotten."""
COMPANY_SECONDS: Final = 1.0
"""Whoever said something so long ago is there."""


class Account:
    """One principal's buckets."""

    __slots__ = ("_bytes", "_events", "_messages", "_seconds", "_spent", "at")

    def __init__(self, limits: NetworkLimits) -> None:
        self._messages = Rate(limits.message_rate)
        self._events = Rate(limits.event_rate)
        self._bytes = Rate(limits.byte_rate)
        self._seconds = Rate(limits.processor_share)
        self._spent = 0.0
        self.at = 0.0

    def spend(self, seconds: float) -> None:
        """Note what an input has cost the broker."""
        self._spent += seconds

    def take(self, messages: int, events: int, bytes: int, now: float, *, alone: bool) -> float:
        """Take what came in out of all buckets; gives the seconds to wait until none is overdrawn."""
        self.at = now
        spent, self._spent = self._spent, 0.0
        return max(
            self._messages.take(messages, now),
            self._events.take(events, now),
            self._bytes.take(bytes, now),
            0.0 if alone else self._seconds.take(spent, now),
        )


class Accounts:
    """All principals' buckets."""

    def __init__(self, limits: NetworkLimits) -> None:
        self._limits = limits
        self._accounts: dict[str, Account] = {}
        self._sweep_at = SWEEP_ABOVE
        self._last = ""
        self._last_at = self._before_at = -inf

    def __len__(self) -> int:
        return len(self._accounts)

    def take(self, account: str, messages: int, events: int, bytes: int, now: float) -> float:
        """Note what came in of a principal; gives the seconds that it has to wait."""
        found = self._accounts.get(account)
        if found is None:
            if len(self._accounts) >= self._sweep_at:
                self._sweep(now)
            found = self._accounts[account] = Account(self._limits)
        if account != self._last:
            self._last, self._before_at = account, self._last_at
        self._last_at = now
        return found.take(messages, events, bytes, now, alone=now - self._before_at > COMPANY_SECONDS)

    def spend(self, account: str, seconds: float) -> None:
        """Note what an input of a principal has cost the broker."""
        found = self._accounts.get(account)
        if found is not None:
            found.spend(seconds)

    def _sweep(self, now: float) -> None:
        """Forget idle accounts; their number is at most twice that of principals who said something lately."""
        self._accounts = {name: one for name, one in self._accounts.items() if now - one.at < IDLE_SECONDS}
        self._sweep_at = max(SWEEP_ABOVE, 2 * len(self._accounts))
