"""Sessions as the engine sees them: a name, a number, and somewhere to send messages to."""

from __future__ import annotations

import asyncio
from dataclasses import dataclass, field
from typing import Any, Protocol

from covey.network.errors import ConnectionLostError, RefusedError
from covey.network.frames import POLICY
from covey.routing.messages import Confirmed, Permissions, Refused


class Outlet(Protocol):
    """Where a session's messages go. Neither method waits, and neither keeps more than a limit allows."""

    def send(self, messages: list[Any]) -> None:
        """Send messages, in order."""

    def close(self, reason: str, code: int) -> None:
        """Send what waits, then close with a reason."""


@dataclass(frozen=True, slots=True)
class Closing:
    """The end of a session, in its place among the messages."""

    reason: str
    code: int = POLICY


@dataclass(slots=True, eq=False)
class Session:
    """One session of a client or a neighbour."""

    name: str
    number: int
    outlet: Outlet
    permissions: Permissions | None
    """A client's; None for a neighbour."""
    owner: str = ""
    """The principal whose session it is: a name, or `@ADDRESS` of whom nobody knows; empty for the broker's own."""
    open: bool = False
    event_seconds: float = 0.0
    subscription_seconds: float = 0.0
    """Processor time that an event of its publications took lately, and a subscription; 0 where there was none."""
    requests: dict[int, asyncio.Future[None]] = field(default_factory=dict)
    """Requests that the server itself made in this session's name."""

    @property
    def is_peer(self) -> bool:
        """Whether it is a neighbour's."""
        return self.permissions is None

    def take(self, messages: list[Any]) -> None:
        """Messages of the broker, whose rows are committed."""
        if self.requests:
            messages = [message for message in messages if not self._settles(message)]
        closing = messages[-1] if messages and isinstance(messages[-1], Closing) else None
        if closing is not None:
            messages = messages[:-1]
        if messages:
            self.outlet.send(messages)
        if closing is not None:
            self.outlet.close(closing.reason, closing.code)
            self.forget(closing.reason)

    def _settles(self, message: Any) -> bool:
        if not isinstance(message, Confirmed | Refused) or message.request not in self.requests:
            return False
        waiting = self.requests.pop(message.request)
        if not waiting.done():
            if isinstance(message, Refused):
                waiting.set_exception(RefusedError(message.reason))
            else:
                waiting.set_result(None)
        return True

    def forget(self, reason: str) -> None:
        """Nobody answers the server's own requests any more."""
        for waiting in self.requests.values():
            if not waiting.done():
                waiting.set_exception(ConnectionLostError(f"the session ended: {reason}"))
        self.requests.clear()
