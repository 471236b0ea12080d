"""The engine: drives one broker by what sockets, the clock and the disk report.

Inputs wait in one queue. A *turn* hands as many of them to the broker as fit into a few milliseconds, one when one is
there, hundreds under load; publications that follow each other are one input, whoever they come from, so that they are
matched together. A turn's rows are submitted to the journal together, and its messages wait until the journal says that
these rows are committed. Messages keep their order, so nothing that a client or a neighbour hears can be
undone by a crash. Turns go on while commits are under way; a turn without rows is shipped with the commit before it.

Nothing here grows without bound: above `waiting_inputs` or `waiting_records`, readers wait in `room`, and TCP makes the
senders wait. What is sent is bounded by each session's outlet.

A broker that raises has a defect, and its memory can't be trusted against its journal: the engine stops, and with it
the server. Starting it again restores what was committed.
"""

from __future__ import annotations

import asyncio
import itertools
import logging
import threading
import time
from collections import deque
from collections.abc import Callable
from dataclasses import dataclass
from math import inf
from typing import Any, Final, TypeAlias

from covey.network.errors import NetworkError
from covey.network.frames import GOING_AWAY, TAKEN
from covey.network.limits import DEFAULT_NETWORK_LIMITS, NetworkLimits
from covey.network.sessions import Closing, Outlet, Session
from covey.network.storage import Journal
from covey.routing.broker import Broker
from covey.routing.config import BrokerConfig
from covey.routing.journal import Outputs, Record
from covey.routing.messages import (
    ClientDown,
    ClientMessage,
    ClientUp,
    FromClient,
    FromPeer,
    Input,
    OperatorMessage,
    PeerDown,
    PeerMessage,
    PeerUp,
    Permissions,
    Publish,
    Tick,
    ToClient,
    ToPeer,
)

TURN_SECONDS: Final = 0.005
"""How long a turn goes on taking inputs: sockets are read between turns."""
TOGETHER: Final = 2_000
"""Events from which on publications aren't put together any further: a turn would take too long."""
SHORTEST_WAIT: Final = 0.01
"""Seconds between two ticks at least."""

_CARRIERS: Final = (ToClient, ToPeer)

log = logging.getLogger("covey.network")

Mail: TypeAlias = dict[Session, list[Any]]
"""Messages by session, in order."""


@dataclass(slots=True)
class Counts:
    """What has happened since the start; for metrics."""

    inputs: int = 0
    turns: int = 0
    published: int = 0
    sent: int = 0
    commits: int = 0
    records: int = 0
    sessions_cut: int = 0
    bad_frames: int = 0
    refused_connections: int = 0


class Clock:
    """Wall time that never goes backwards within a run."""

    def __init__(self) -> None:
        self._offset = time.time() - time.monotonic()

    def __call__(self) -> float:
        """Seconds."""
        return self._offset + time.monotonic()


class Engine:
    """One broker, driven. Made and used within one event loop."""

    def __init__(
        self, config: BrokerConfig, journal: Journal, limits: NetworkLimits = DEFAULT_NETWORK_LIMITS,
        clock: Callable[[], float] | None = None,
    ) -> None:  # fmt: skip
        self.limits = limits
        self.counts = Counts()
        self.clock = clock or Clock()
        self._journal = journal
        self._loop = asyncio.get_running_loop()
        self._thread = threading.get_ident()
        self._inputs: deque[tuple[Session | None, Input]] = deque()
        self._records: list[Record] = []
        self._mail: Mail = {}
        self._in_flight: deque[tuple[int, Mail]] = deque()
        self._records_waiting = 0
        self._sessions: dict[int, Session] = {}
        self._present: dict[tuple[bool, str], Session] = {}
        self._latest: dict[str, Session] = {}
        self._numbers = itertools.count(1)
        self._requests = itertools.count(1 << 40)
        self._scheduled = False
        self._stopping = False
        self._timer: asyncio.TimerHandle | None = None
        self._timer_at = inf
        self._room = asyncio.Event()
        self._room.set()
        self._idle = asyncio.Event()
        self._idle.set()
        self.stopped: asyncio.Future[None] = self._loop.create_future()
        self.broker, outputs = Broker.restore(config, journal.rows(), self.clock())
        self._collect(outputs)
        self._ship()
        self._set_timer()

    # Sessions

    def open_client(self, name: str, permissions: Permissions, outlet: Outlet) -> Session:
        """A client's session; one that this client had before ends."""
        session = self._latest[name] = Session(name, next(self._numbers), outlet, permissions)
        self._put(session, ClientUp(name, permissions, session.number))
        return session

    def open_peer(self, name: str, outlet: Outlet) -> Session:
        """A neighbour's session; the one before it ends."""
        session = Session(name, next(self._numbers), outlet, None)
        self._put(session, PeerUp(name, session.number))
        return session

    def client(self, name: str) -> Session | None:
        """A client's last session, if it isn't over."""
        return self._latest.get(name)

    def say(self, session: Session, message: ClientMessage | OperatorMessage) -> None:
        """A client's message."""
        if isinstance(message, Publish):
            self.counts.published += len(message.events)
        self._put(session, FromClient(session.name, message, session.number))

    def hear(self, session: Session, message: PeerMessage) -> None:
        """A neighbour's message."""
        self._put(session, FromPeer(session.name, message, session.number))

    def end(self, session: Session) -> None:
        """A session's connection is gone."""
        if self._latest.get(session.name) is session:
            del self._latest[session.name]
        down = PeerDown if session.is_peer else ClientDown
        self._put(session, down(session.name, session.number))

    async def ask(self, session: Session, request: Callable[[int], ClientMessage | OperatorMessage]) -> None:
        """Make a request in a client's name; returns when it is confirmed, raises RefusedError."""
        number = next(self._requests)
        session.requests[number] = answered = self._loop.create_future()
        self.say(session, request(number))
        await answered

    async def room(self) -> None:
        """Wait until there is room for inputs."""
        await self._room.wait()

    @property
    def waiting(self) -> tuple[int, int]:
        """Inputs that wait for the broker, and rows that wait for the disk."""
        return len(self._inputs), self._records_waiting

    @property
    def sessions(self) -> int:
        """Open sessions."""
        return len(self._sessions)

    async def stop(self) -> None:
        """End all sessions, commit what waits, and close the journal."""
        self._stopping = True
        for session in list(self._sessions.values()):
            session.open = False
            session.outlet.close("the broker stops", GOING_AWAY)
            session.forget("the broker stops")
        self._sessions.clear()
        # Inputs that nobody has answered are as if they had not come.
        self._inputs.clear()
        if self._timer is not None:
            self._timer.cancel()
        if not self.stopped.done():
            await self._idle.wait()
            self.stopped.set_result(None)
        await asyncio.to_thread(self._journal.close)

    # Turns

    def _put(self, session: Session | None, input: Input) -> None:
        if self._stopping or self.stopped.done():
            if session is not None and not session.open:
                session.outlet.close("the broker stops", GOING_AWAY)
            return
        self._inputs.append((session, input))
        if len(self._inputs) >= self.limits.waiting_inputs:
            self._room.clear()
        if not self._scheduled:
            self._scheduled = True
            self._loop.call_soon(self._turn)

    def _turn(self) -> None:
        self._scheduled = False
        if self.stopped.done():
            return
        try:
            self._take_some()
            self._ship()
        except Exception as error:
            log.exception("the broker has a defect and stops")
            self._fail(error)
            return
        self._set_timer()
        self._set_room()
        if self._inputs and not self._scheduled:
            self._scheduled = True
            self._loop.call_soon(self._turn)

    def _take_some(self) -> None:
        end = time.perf_counter() + TURN_SECONDS
        self.counts.turns += 1
        while self._inputs:
            session, input = self._inputs.popleft()
            if session is not None and not self._admits(session, input):
                continue
            self.counts.inputs += 1
            if isinstance(input, FromClient) and isinstance(input.message, Publish):
                self._collect(self.broker.publish(self._publications(input), self.clock()))
            else:
                self._collect(self.broker.handle(input, self.clock()))
            if time.perf_counter() > end:
                return

    def _publications(self, first: FromClient) -> list[FromClient]:
        """A publication and those that follow it directly."""
        run = [first]
        assert isinstance(first.message, Publish)
        events = len(first.message.events)
        while self._inputs and events < TOGETHER:
            session, input = self._inputs[0]
            if not isinstance(input, FromClient) or not isinstance(input.message, Publish):
                break
            self._inputs.popleft()
            if session is None or self._admits(session, input):
                self.counts.inputs += 1
                run.append(input)
                events += len(input.message.events)
        return run

    def _admits(self, session: Session, input: Input) -> bool:
        """Note that a session opens or ends; False where the broker needn't hear of an input."""
        if isinstance(input, ClientUp | PeerUp):
            key = (session.is_peer, session.name)
            before = self._present.get(key)
            if before is not None:
                self._shut(before)
                self._mail.setdefault(before, []).append(
                    Closing(f"another session of {session.name!r} was opened", TAKEN)
                )
            session.open = True
            self._present[key] = self._sessions[session.number] = session
            return True
        if not session.open:
            return False
        if isinstance(input, ClientDown | PeerDown):
            self._shut(session)
            session.forget("the connection was closed")
        return True

    def _shut(self, session: Session) -> None:
        session.open = False
        self._sessions.pop(session.number, None)
        key = (session.is_peer, session.name)
        if self._present.get(key) is session:
            del self._present[key]
        if self._latest.get(session.name) is session:
            del self._latest[session.name]

    def _collect(self, outputs: Outputs) -> None:
        if outputs.records:
            self._records += outputs.records
        number, messages = -1, None
        for output in outputs.sends:
            if output.session != number:
                # Outputs come in runs for one session.
                number = output.session
                session = self._sessions.get(number)
                messages = None if session is None else self._mail.setdefault(session, [])
            if messages is None:
                continue
            if isinstance(output, _CARRIERS):
                messages.append(output.message)
            else:
                self._shut(self._sessions[number])
                messages.append(Closing(output.reason))
                messages = None

    def _ship(self) -> None:
        """Let the messages of this turn go once its rows are committed."""
        records, mail = self._records, self._mail
        self._records, self._mail = [], {}
        if records:
            self._in_flight.append((len(records), mail))
            self._records_waiting += len(records)
            self._idle.clear()
            self._journal.submit(records, self._reported)
        elif self._in_flight:
            before = self._in_flight[-1][1]
            for session, messages in mail.items():
                before.setdefault(session, []).extend(messages)
        else:
            self._deliver(mail)

    def _reported(self, error: Exception | None) -> None:
        if threading.get_ident() == self._thread:
            self._committed(error)
        elif not self._loop.is_closed():
            self._loop.call_soon_threadsafe(self._committed, error)

    def _committed(self, error: Exception | None) -> None:
        count, mail = self._in_flight.popleft()
        self._records_waiting -= count
        if error is not None:
            self._fail(error)
        else:
            self.counts.commits += 1
            self.counts.records += count
            self._deliver(mail)
        if not self._in_flight:
            self._idle.set()
        self._set_room()

    def _deliver(self, mail: Mail) -> None:
        for session, messages in mail.items():
            self.counts.sent += len(messages)
            session.take(messages)

    def _set_room(self) -> None:
        if len(self._inputs) < self.limits.waiting_inputs and self._records_waiting < self.limits.waiting_records:
            self._room.set()
        else:
            self._room.clear()

    def _set_timer(self) -> None:
        wake = self.broker.wake_at
        if wake == self._timer_at:
            return
        if self._timer is not None:
            self._timer.cancel()
            self._timer = None
        self._timer_at = wake
        if wake != inf:
            self._timer = self._loop.call_later(max(SHORTEST_WAIT, wake - self.clock()), self._tick)

    def _tick(self) -> None:
        self._timer = None
        self._timer_at = inf
        self._put(None, Tick())

    def _fail(self, error: Exception) -> None:
        if not self.stopped.done():
            failure = error if isinstance(error, NetworkError) else NetworkError(f"the broker has a defect: {error!r}")
            self.stopped.set_exception(failure)
            # Whoever waits for the engine hears of it; nobody must.
            self.stopped.exception()
        for session in list(self._sessions.values()):
            session.outlet.close("the broker failed", 1011)
            session.forget("the broker failed")
        self._room.set()
        self._idle.set()
