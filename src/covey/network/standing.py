"""Sessions that stand, and whether they still may.

Who someone is was asked when a session opened. The answer changes: tokens end, clocks are set right, files that list
tokens and permissions are read again. So all lasting sessions are asked for here, and looked at again: every second at
least, when the next token ends, and at each reload. Whoever is nobody any more is sent away; whoever may do something
else goes on, and the broker is told (`Permit`).
"""

from __future__ import annotations

import asyncio
import time
from collections.abc import Callable, Iterable
from typing import Final

from covey.network.engine import Engine
from covey.network.errors import IdentityError
from covey.network.frames import POLICY
from covey.network.identity import Caller, Identity
from covey.network.sessions import Outlet, Session

LOOK_SECONDS: Final = 1.0
"""At least so often tokens' ends are compared with the clock, which may be set at any time."""
SHORTEST_LOOK: Final = 0.01


class Standing:
    """All lasting sessions of clients, with those who opened them."""

    def __init__(self, engine: Engine, identity: Identity, wall: Callable[[], float] = time.time) -> None:
        self._engine = engine
        self._identity = identity
        self._wall = wall
        self._callers: dict[Session, Caller] = {}
        self._ends: dict[Session, float] = {}
        self._timer: asyncio.TimerHandle | None = None

    def open(self, caller: Caller, name: str, outlet: Outlet, capabilities: Iterable[str] = ()) -> Session:
        """A session of a caller who was known a moment ago; raises IdentityError where that isn't so any more."""
        principal = self._identity.again(caller)
        session = self._engine.open_client(name, principal.permissions, outlet, caller.account, capabilities)
        self._callers[session] = caller
        self._note_end(session, principal.expires)
        self._plan()
        return session

    def end(self, session: Session) -> None:
        """A session's connection is gone."""
        self._forget(session)
        self._engine.end(session)

    def look(self) -> None:
        """Ask again who all of them are."""
        for session, caller in list(self._callers.items()):
            self._look_at(session, caller)
        self._plan()

    def stop(self) -> None:
        """Look no more."""
        if self._timer is not None:
            self._timer.cancel()

    def _look_at(self, session: Session, caller: Caller) -> None:
        try:
            principal = self._identity.again(caller)
        except IdentityError as error:
            self._forget(session)
            self._engine.counts.ended_sessions += 1
            session.outlet.close(str(error), POLICY)
            # The connection may take its time to end; nothing that comes over it counts any more.
            self._engine.end(session)
            return
        if principal.permissions != session.permissions:
            self._engine.permit(session, principal.permissions)
        self._note_end(session, principal.expires)

    def _note_end(self, session: Session, end: float | None) -> None:
        if end is None:
            self._ends.pop(session, None)
        else:
            self._ends[session] = end

    def _forget(self, session: Session) -> None:
        self._callers.pop(session, None)
        self._ends.pop(session, None)

    def _plan(self) -> None:
        if self._timer is not None:
            self._timer.cancel()
            self._timer = None
        if self._ends:
            left = min(self._ends.values()) - self._wall()
            seconds = min(LOOK_SECONDS, max(SHORTEST_LOOK, left))
            self._timer = asyncio.get_running_loop().call_later(seconds, self._check_ends)

    def _check_ends(self) -> None:
        self._timer = None
        now = self._wall()
        for session in [session for session, end in self._ends.items() if end <= now]:
            self._look_at(session, self._callers[session])
        self._plan()
