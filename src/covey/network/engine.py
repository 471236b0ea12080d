"""The engine: drives one broker by what sockets, the clock and the disk report.

Inputs wait in queues by session and are taken fairly (`fair_inputs.py`). A *turn* hands as many of them to the broker
as fit into a few milliseconds, one when one is there, hundreds under load; publications that are next in their queues
are one input, whoever they come from, so that they are matched together. A turn's rows are submitted to the journal
together, and its messages wait until the journal says that these rows are committed. Messages keep their order, so
nothing that a client or a neighbour hears can be undone by a crash. Turns go on while commits are under way; a turn
without rows is shipped with the commit before it, but for plain events, which wait for no commit
(`covey.routing.overtaking`).

What requests put off (covering, merging and the like beyond their budget) is done when nothing waits, and in small
pieces now and then when something does; where much waits, requests leave all of it for later.

Nothing here grows without bound: above `waiting_inputs`, readers of sessions that have something waiting wait in
`room`, above `waiting_records` all of them do, and TCP makes the senders wait. What is sent is bounded by each
session's outlet.

A broker that raises has a defect. It has taken the input back by then (`covey.routing.undo`), so whoever sent it loses
the connection and nobody else notices; of publications that were put together, each is tried alone. Where taking back
failed, or there is nobody to blame (time, a connection that is gone), the broker is restored from its journal after all
that waits is committed: every session is told to come again, and the input is set aside (`set_aside.py`). Too many
restarts in a minute stop the engine, and with it the server.
"""

from __future__ import annotations

import asyncio
import contextlib
import itertools
import logging
import threading
import time
from collections import deque
from collections.abc import Callable, Iterable
from dataclasses import dataclass
from math import inf
from typing import Any, Final, TypeAlias

from covey.network.accounts import Accounts
from covey.network.errors import NetworkError
from covey.network.fair_inputs import FairInputs
from covey.network.frames import GOING_AWAY, INTERNAL, RESTARTING, TAKEN
from covey.network.histograms import Histogram
from covey.network.limits import DEFAULT_NETWORK_LIMITS, NetworkLimits
from covey.network.send_buffers import SendBuffers
from covey.network.sessions import Closing, Outlet, Session
from covey.network.set_aside import described
from covey.network.spans import spans_of
from covey.network.storage import Journal
from covey.routing.broker import Broker
from covey.routing.config import BrokerConfig
from covey.routing.defects import BrokenError, DefectError
from covey.routing.journal import Outputs, Record
from covey.routing.messages import (
    ClientDown,
    ClientMessage,
    ClientUp,
    Deliveries,
    Delta,
    Events,
    FromClient,
    FromPeer,
    Held,
    Input,
    Measured,
    OperatorMessage,
    Output,
    PeerDown,
    PeerMessage,
    PeerUp,
    Permissions,
    Permit,
    Pressure,
    Publications,
    Publish,
    Refused,
    Reroute,
    Subscribe,
    Subscriptions,
    Tick,
    ToClient,
    ToPeer,
    Work,
)
from covey.routing.overtaking import Receiver, UnderWay
from covey.routing.packed_events import PackedDeliveries, PackedPublications
from covey.routing.ranges import OWN_REQUESTS

TURN_SECONDS: Final = 0.002
"""How long a turn goes on taking inputs: sockets are read between turns."""
MANY_INPUTS: Final = 64
"""Inputs that wait, from which on requests leave all work on relations for later."""
MANY_ENTRIES: Final = 8
"""Entries of a neighbour in one message, from which on the same holds: its clients wait for the answer."""
MANY_CHARACTERS: Final = 4_000
"""Characters of filters in one input, from which on the same holds: one question about a long one can take longer than
a request should, and every budget answers one."""
DELIVER_SECONDS: Final = 0.002
"""How long messages are handed to sessions in one go: an event for a thousand of them is as many frames to be made."""
WORK_SECONDS: Final = 0.003
"""What a piece of what requests put off should take."""
WORK_STEPS: Final = 3_000
"""Steps in the largest piece. Steps are alike in cost, but not equal, and machines aren't: how many a piece has follows
from what the one before it took."""
FIRST_STEPS: Final = 300
"""Steps in the first piece, and of the first request."""
LEAST_STEPS: Final = 50
REQUEST_SECONDS: Final = 0.01
"""What a request should take with its work on relations: after one that took longer, requests have fewer steps, and
leave the rest for later."""
WORK_EVERY_SECONDS: Final = 0.1
"""Time from one such piece to the next while inputs wait, or requests go on putting work off."""
REST_SECONDS: Final = 0.25
"""Requests have stopped putting work off where none did for so long: whoever asks for much waits for neighbours now and
then, which need the processor more than this work does."""
LONGEST_REST: Final = 10.0
"""Seconds after which work goes on beside requests that put off more."""
TOGETHER: Final = 2_000
"""Events from which on publications aren't put together any further: a turn would take too long."""
EVENTS_SECONDS: Final = 0.007
"""What publications that are taken together may take."""
EVENT_SECONDS: Final = 4e-6
DELIVERY_SECONDS: Final = 2e-6
DURABLE_SECONDS: Final = 2e-5
"""What an event takes, and each of its deliveries where every session gets it, about; and a durable one in addition: as
long as a session hasn't shown what its events take."""
SUBSCRIPTIONS_TOGETHER: Final = 64
LEAST_SUBSCRIPTIONS: Final = 8
"""Subscriptions of a session that are taken as one input, at most and at least: some cost ten times what others do."""
SUBSCRIPTIONS_SECONDS: Final = 0.002
"""What subscriptions that are taken together may take."""
FORGETTING: Final = 0.25
ALARM: Final = 0.5
"""How much the last cost counts beside those before, where it was less, and where it was more."""
READING_ROUNDS: Final = 2
"""Rounds of the loop between two turns while inputs wait: in one a socket is read, in the next its reader says what
came. Without them whoever has just spoken would wait for two turns more."""
SHORTEST_WAIT: Final = 0.01
"""Seconds between two ticks at least."""

RESTARTS: Final = 3
"""Restarts from the journal within `RESTARTS_SECONDS`, after which the engine stops."""
RESTARTS_SECONDS: Final = 60.0

_CARRIERS: Final = (ToClient, ToPeer)

log = logging.getLogger("covey.network")

Mail: TypeAlias = dict[Session, list[Any]]
"""Messages by session, in order."""


@dataclass(slots=True)
class Flight:
    """Rows that are being committed, and what waits for them."""

    records: int
    mail: Mail
    in_order: list[Receiver]
    """Who must not hear anything before it."""
    began: float


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
    unknown_messages: int = 0
    strangers: int = 0
    turned_away: int = 0
    reloads: int = 0
    failed_reloads: int = 0
    ended_sessions: int = 0
    defects: int = 0
    restarts: int = 0


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
        self.accounts = Accounts(limits)
        """What principals send and cost, over all of their sessions."""
        self.buffers = SendBuffers(limits.send_buffers_bytes)
        """What waits for clients' connections."""
        self._unpressed = asyncio.Event()
        self._unpressed.set()
        self.clock = clock or Clock()
        self._journal = journal
        self._loop = asyncio.get_running_loop()
        self._thread = threading.get_ident()
        self._inputs = FairInputs()
        self._records: list[Record] = []
        self._mail: Mail = {}
        self._prompt: Mail = {}
        """What goes with this turn whatever is being committed."""
        self._in_order: list[Receiver] = []
        """Who must not hear anything before `_mail`."""
        self._under_way = UnderWay()
        self._in_flight: deque[Flight] = deque()
        self.answers = Histogram()
        """From when inputs are taken up until all that they cause is with the connections, commits included."""
        self._spans = spans_of(config.broker)
        self.pauses = Histogram()
        """Processor time of single inputs: nothing else is taken up meanwhile."""
        self._began = 0.0
        self._begun: dict[Session, Publish] = {}
        """What is left of publications that are taken in parts."""
        self._undelivered: Mail = {}
        """What may go, and hasn't been handed to its session."""
        self._records_waiting = 0
        self._sessions: dict[int, Session] = {}
        self._present: dict[tuple[bool, str], Session] = {}
        self._latest: dict[str, Session] = {}
        self.sessions_opened = 0
        self._requests = itertools.count(OWN_REQUESTS)
        self._scheduled = False
        self._working: asyncio.TimerHandle | None = None
        self._work_steps = FIRST_STEPS
        self._request_steps = min(FIRST_STEPS, config.limits.request_steps)
        """Steps that a request may take at once."""
        self._behind = 0
        """How much was put off, when that was last looked at."""
        self._grew_at = self._behind_since = -inf
        """When requests last put work off, and when they began to."""
        self._stopping = False
        self._config = config
        self._restarting = False
        self._restarted_at: deque[float] = deque(maxlen=RESTARTS)
        self._taking: Input | None = None
        """What the broker is about."""
        self._timer: asyncio.TimerHandle | None = None
        self._timer_at = inf
        self._held: dict[asyncio.Future[None], Session | None] = {}
        """Readers that wait for room."""
        self._idle = asyncio.Event()
        self._idle.set()
        self.stopped: asyncio.Future[None] = self._loop.create_future()
        self.broker, outputs = Broker.restore(config, journal.rows(), self.clock())
        damaged = getattr(self.broker, "damaged", ())
        if damaged:
            log.warning(
                "%d rows of the journal can't be read; they are set aside in its space damaged, and the broker goes on "
                "without them: %s", len(damaged), ", ".join(damaged[:10]),
            )  # fmt: skip
        self._collect(outputs)
        self._ship()
        self._set_timer()
        self._go_on()

    # Sessions

    def open_client(
        self,
        name: str,
        permissions: Permissions,
        outlet: Outlet,
        owner: str = "",
        capabilities: Iterable[str] = (),
    ) -> Session:
        """A client's session; one that this client had before ends. `owner` is its principal, if that is known: all
        sessions of a principal share one queue."""
        session = self._latest[name] = Session(name, self._number(), outlet, permissions, owner)
        self._put(session, ClientUp(name, permissions, session.number, tuple(capabilities), owner))
        return session

    def _number(self) -> int:
        self.sessions_opened += 1
        return self.sessions_opened

    def permit(self, session: Session, permissions: Permissions) -> None:
        """What a client may do from now on, also in what it said before and waits."""
        session.permissions = permissions
        # The broker can't hear of it before it has heard of the session; otherwise nothing goes before it.
        self._put(None if session.open else session, Permit(session.name, permissions, session.number))

    def open_peer(self, name: str, outlet: Outlet) -> Session:
        """A neighbour's session; the one before it ends."""
        session = Session(name, self._number(), outlet, None)
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
        # Before both have said Hello events would be for nobody.
        link = self.broker.links.get(session.name) if isinstance(message, Events) else None
        passes = link is not None and link.open and link.session == session.number
        self._put(session, FromPeer(session.name, message, session.number), passes=passes)

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

    async def room(self, session: Session | None = None) -> None:
        """Wait until there is room for inputs of a session. One that has nothing waiting isn't held up by others'."""
        if self._has_room(session):
            return
        held: asyncio.Future[None] = self._loop.create_future()
        self._held[held] = session
        try:
            await held
        finally:
            self._held.pop(held, None)

    def press(self, reason: str) -> None:
        """Hold publishers back, for a reason; or, without one, let them go on."""
        if bool(reason) != self._unpressed.is_set():
            return
        if reason:
            self._unpressed.clear()
            log.warning("publishers are held back: %s", reason)
        else:
            self._unpressed.set()
            log.warning("publishers go on")
        self._put(None, Pressure(reason))

    def measure(self, measured: Measured) -> None:
        """Tell the broker what it uses of its resources."""
        self._put(None, measured)

    def reroute(self, config: BrokerConfig) -> None:
        """Let the broker route as a configuration says, which differs from its own in nothing else."""
        self._config = config
        self._put(None, Reroute.to(config))

    @property
    def is_pressed(self) -> bool:
        """Whether publishers are held back."""
        return not self._unpressed.is_set()

    async def unpressed(self) -> None:
        """Wait until publishers aren't held back."""
        await self._unpressed.wait()

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
        self._deliver_more(inf)
        for session in list(self._sessions.values()):
            session.open = False
            session.outlet.close("the broker stops", GOING_AWAY)
            session.forget("the broker stops")
        self._sessions.clear()
        # Inputs that nobody has answered are as if they had not come.
        self._inputs.clear()
        self._unpressed.set()
        self._journal.give_up()
        for timer in (self._timer, self._working):
            if timer is not None:
                timer.cancel()
        if not self.stopped.done():
            await self._idle.wait()
            self.stopped.set_result(None)
        await asyncio.to_thread(self._journal.close)

    # Turns

    def _put(self, session: Session | None, input: Input, *, passes: bool = False) -> None:
        if self._stopping or self.stopped.done():
            if session is not None and not session.open:
                session.outlet.close("the broker stops", GOING_AWAY)
            return
        if isinstance(input, PeerDown) and session is not None:
            self._inputs.put_last(session, input)
        else:
            self._inputs.put(session, input, passes=passes)
        if not self._scheduled:
            self._scheduled = True
            self._loop.call_soon(self._turn)

    def _turn_after(self, rounds: int) -> None:
        """The next turn, after so many rounds in which sockets are read."""
        if rounds:
            self._loop.call_soon(self._turn_after, rounds - 1)
        else:
            self._turn()

    def _turn(self) -> None:
        self._scheduled = False
        if self.stopped.done() or self._restarting:
            return
        self._began = time.perf_counter()
        try:
            self._take_some()
            self._ship()
        except Exception as error:
            self._restart(error)
            return
        self._set_timer()
        self._set_room()
        self._go_on()

    def _go_on(self) -> None:
        if self._inputs and not self._scheduled:
            self._scheduled = True
            self._loop.call_soon(self._turn_after, READING_ROUNDS)
        behind = self.broker.behind
        if behind > self._behind:
            self._grew_at = self._loop.time()
            if not self._behind:
                self._behind_since = self._grew_at
        self._behind = behind
        if self._working is None and behind:
            self._work_in(WORK_EVERY_SECONDS if self._is_busy() else 0.0)

    def _is_busy(self) -> bool:
        """Whether requests come first, and what they put off after them."""
        now = self._loop.time()
        return bool(self._inputs) or (now < self._grew_at + REST_SECONDS and now < self._behind_since + LONGEST_REST)

    def _take_some(self) -> None:
        started = time.perf_counter()
        end = started + TURN_SECONDS
        self.counts.turns += 1
        while self._inputs:
            session, input = self._inputs.take()
            if session is not None and not self._admits(session, input):
                continue
            self.counts.inputs += 1
            if session is not None and isinstance(input, FromClient) and isinstance(input.message, Publish):
                self._publish(session, input, started)
                # Their deliveries go before anything else is taken up.
                return
            is_much = len(self._inputs) >= MANY_INPUTS or _is_much(input)
            steps = 0 if is_much else self._request_steps
            if session is not None and isinstance(input, FromClient) and isinstance(input.message, Subscribe):
                self._subscribe(session, input, steps)
            else:
                self._handle(session, input, steps)
            now = time.perf_counter()
            self._charge(session, now - started)
            if not is_much:
                self._follow(now - started)
            if now > end:
                return
            started = now

    def _follow(self, seconds: float) -> None:
        """Steps that requests may take at once follow from what those took that needed all of them."""
        steps = self._request_steps
        if seconds > REQUEST_SECONDS and self.broker.steps_taken >= LEAST_STEPS:
            self._request_steps = max(steps // 2, LEAST_STEPS)
        elif self.broker.steps_taken >= steps:
            self._request_steps = min(2 * steps, self._config.limits.request_steps)

    def _work_in(self, seconds: float) -> None:
        self._working = self._loop.call_later(seconds, self._work)

    def _work(self) -> None:
        """Let the broker get on with what requests have put off. Then as much time is left to all else: what came
        meanwhile is read, what waits is sent, and who shares the processor gets some of it."""
        self._working = None
        if self.stopped.done() or self._restarting:
            return
        started = time.perf_counter()
        try:
            self._handle(None, Work(self._work_steps))
            self._ship()
        except Exception as error:
            self._restart(error)
            return
        took = time.perf_counter() - started
        wanted = int(self._work_steps * min(2.0, WORK_SECONDS / max(took, 1e-6)))
        self._work_steps = min(max(wanted, LEAST_STEPS), WORK_STEPS)
        self._behind = self.broker.behind
        if self._behind:
            self._work_in(max(took, WORK_EVERY_SECONDS) if self._is_busy() else took)
        self._set_timer()
        self._go_on()

    def _subscribe(self, session: Session, first: FromClient, steps: int | None) -> None:
        """A subscription and those that are next in its session's queue, as one input."""
        assert isinstance(first.message, Subscribe)
        each = session.subscription_seconds
        most = SUBSCRIPTIONS_TOGETHER if not each else int(SUBSCRIPTIONS_SECONDS / each)
        most = min(max(most, LEAST_SUBSCRIPTIONS), SUBSCRIPTIONS_TOGETHER)
        messages = [first.message, *self._inputs.take_subscriptions(session, most - 1)]
        began = time.thread_time()
        if len(messages) == 1:
            self._handle(session, first, steps)
        else:
            self.counts.inputs += len(messages) - 1
            try:
                self._handle(None, Subscriptions(session.name, messages, session.number), steps)
            except BrokenError as error:
                if not isinstance(error.__cause__, DefectError):
                    raise
                for message in messages:
                    if session.open:
                        self._handle(session, FromClient(session.name, message, session.number), steps)
        session.subscription_seconds = _remembered(each, (time.thread_time() - began) / len(messages))

    def _publish(self, session: Session, first: FromClient, started: float) -> None:
        """A publication and those that are next in other sessions' queues, as one input; part of one that is large."""
        assert isinstance(first.message, Publish)
        most = max(1, int(EVENTS_SECONDS / self._event_seconds(session, first.message)))
        if len(first.message.events) > most or self._begun.get(session) is first.message:
            self._publish_part(session, first, most, started)
            return
        run = [(session, first)]
        events = {session: len(first.message.events)}
        for other, input in self._inputs.take_publications(session, first.message, EVENTS_SECONDS, self._weigh):
            if self._admits(other, input):
                assert isinstance(input.message, Publish)
                self.counts.inputs += 1
                run.append((other, input))
                events[other] = events.get(other, 0) + len(input.message.events)
        began = time.thread_time()
        try:
            self._handle(session if len(run) == 1 else None, Publications.of([input for _, input in run]))
        except BrokenError as error:
            if len(run) == 1 or not isinstance(error.__cause__, DefectError):
                raise
            for sender, input in run:
                if sender.open:
                    self._handle(sender, Publications.of([input]))
        # A publication without events costs about as much as one with some.
        weights = {other: (count + 1) * self._event_seconds(other, first.message) for other, count in events.items()}
        whole = sum(weights.values())
        scale = (time.thread_time() - began) / whole
        took = time.perf_counter() - started
        for other, count in events.items():
            if count:
                other.event_seconds = _remembered(other.event_seconds, scale * weights[other] / count)
            # Whoever's events go to few doesn't pay for one whose events go to all.
            self._charge(other, took * weights[other] / whole)

    def _event_seconds(self, session: Session, publish: Publish) -> float:
        """What an event of a session's publication will take, about: as much as those before it did."""
        cost = session.event_seconds or EVENT_SECONDS + DELIVERY_SECONDS * len(self._sessions)
        events = publish.events
        if events.begin_durable if isinstance(events, PackedPublications) else events and events[0].durable:
            cost = max(cost, DURABLE_SECONDS)
        return max(cost, EVENTS_SECONDS / TOGETHER)

    def _weigh(self, session: Session, publish: Publish) -> float:
        return len(publish.events) * self._event_seconds(session, publish)

    def _publish_part(self, session: Session, whole: FromClient, most: int, started: float) -> None:
        """The first events of a large publication; the rest of it is the next that its sender says."""
        assert isinstance(whole.message, Publish)
        publish = whole.message
        before = self._begun.pop(session, None)
        began = time.thread_time()
        self._handle(session, Publications.part_of(whole, most, is_first=before is not publish))
        taken = min(most, len(publish.events))
        session.event_seconds = _remembered(session.event_seconds, (time.thread_time() - began) / max(taken, 1))
        said = [*self._prompt.get(session, ()), *self._mail.get(session, ())]
        is_refused = any(isinstance(one, Refused) and one.request == publish.request for one in said)
        if len(publish.events) > most and session.open and not is_refused:
            rest = self._begun[session] = Publish(publish.request, publish.events[most:], publish.trace)
            self._inputs.put_back(session, FromClient(session.name, rest, session.number))
        self._charge(session, time.perf_counter() - started)

    def _handle(self, session: Session | None, input: Input, steps: int | None = None) -> None:
        """Let the broker take an input of a session; None where nobody sent it. Raises BrokenError."""
        self._taking = input
        began = time.thread_time()
        try:
            if self._spans is None:
                outputs = self.broker.handle(input, self.clock(), steps)
            else:
                outputs = self._spans.handle(self.broker, input, self.clock(), steps)
        except DefectError as defect:
            self._collect(defect.outputs)
            if session is None or isinstance(input, ClientDown | PeerDown):
                raise BrokenError(defect) from defect
            self._blame(session, defect)
        else:
            self._collect(outputs, input)
        finally:
            self.pauses.observe(time.thread_time() - began)

    def _blame(self, session: Session, defect: DefectError) -> None:
        """End the session whose input couldn't be taken; the broker is as it was before."""
        self.counts.defects += 1
        log.error(
            "what %s sent was taken back: %s: %s", session.name, defect, described(self._taking),
            exc_info=defect.__cause__,
        )  # fmt: skip
        self._shut(session)
        self._mail.setdefault(session, []).append(Closing(str(defect), INTERNAL))
        if session.is_peer:
            link = self.broker.links.get(session.name)
            if link is not None and link.up:
                self._handle(None, PeerDown(session.name, link.session))
        else:
            client = self.broker.clients.get(session.name)
            if client is not None and client.up:
                self._handle(None, ClientDown(session.name, client.connection))

    def _restart(self, error: Exception) -> None:
        """Restore the broker from its journal, once all that waits is committed; tell every session."""
        now = time.monotonic()
        self.counts.defects += 1
        log.error("%s: %s", error, described(self._taking), exc_info=error)
        with contextlib.suppress(OSError):
            self._journal.set_aside(self._taking, error)
        if len(self._restarted_at) == RESTARTS and now < self._restarted_at[0] + RESTARTS_SECONDS:
            self._fail(error)
            return
        self._restarted_at.append(now)
        self.counts.restarts += 1
        self._restarting = True
        for session in list(self._sessions.values()):
            self._shut(session)
            self._mail.setdefault(session, []).append(Closing("the broker restarts; connect again", RESTARTING))
        self._ship()
        if not self._in_flight:
            self._restore()

    def _restore(self) -> None:
        pressure = self.broker.pressure
        try:
            self.broker, outputs = Broker.restore(self._config, self._journal.rows(), self.clock())
            self._collect(outputs)
        except Exception as error:
            log.exception("the broker can't be restored from its journal and stops")
            self._fail(error)
            return
        self._restarting = False
        log.warning("the broker was restored from its journal")
        self._ship()
        self._set_timer()
        if pressure:
            self._put(None, Pressure(pressure))
        self._go_on()

    def _charge(self, session: Session | None, seconds: float) -> None:
        self._inputs.charge(session, seconds)
        if session is not None:
            self.accounts.spend(session.owner, seconds)

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
        self._begun.pop(session, None)
        self._sessions.pop(session.number, None)
        key = (session.is_peer, session.name)
        if self._present.get(key) is session:
            del self._present[key]
        if self._latest.get(session.name) is session:
            del self._latest[session.name]

    def _collect(self, outputs: Outputs, input: Input | None = None) -> None:
        for flaw in outputs.defects:
            self.counts.defects += 1
            log.error("%s: %s", flaw.what, flaw.error, exc_info=flaw.error)
        sends = outputs.sends
        if outputs.records and not self._records and not self._in_flight:
            # What this turn said before hangs on no row.
            self._prompt, self._mail = self._mail, {}
        self._records += outputs.records
        if self._records or self._in_flight:
            at_once, sends = self._under_way.divide(input, outputs)
            self._address(at_once, self._prompt)
            self._in_order += self._under_way.hold(outputs.records, sends)
        self._address(sends, self._mail)

    def _address(self, sends: list[Output], mail: Mail) -> None:
        """Put outputs into the mail."""
        number, messages = -1, None
        for output in sends:
            if output.session != number:
                # Outputs come in runs for one session.
                number = output.session
                session = self._sessions.get(number)
                messages = None if session is None else mail.setdefault(session, [])
            if messages is None:
                continue
            if isinstance(output, Deliveries):
                messages += output.messages if isinstance(output.messages, list) else (output.messages,)
            elif isinstance(output, _CARRIERS):
                if isinstance(output.message, Held) and output.message.reason:
                    # It hangs on no row, and it may be the commit that publishers wait for.
                    self._sessions[number].outlet.send([output.message])
                else:
                    messages.append(output.message)
            else:
                self._shut(self._sessions[number])
                messages.append(Closing(output.reason))
                messages = None

    def _ship(self) -> None:
        """Let the messages of this turn go once its rows are committed, and plain events at once."""
        records, mail, prompt, in_order = self._records, self._mail, self._prompt, self._in_order
        self._records, self._mail, self._prompt, self._in_order = [], {}, {}, []
        if prompt:
            self._deliver(prompt)
            self.answers.observe(time.perf_counter() - self._began)
        if records:
            self._in_flight.append(Flight(len(records), mail, in_order, self._began))
            self._records_waiting += len(records)
            self._idle.clear()
            self._journal.submit(records, self._reported)
        elif self._in_flight:
            before = self._in_flight[-1]
            before.in_order += in_order
            for session, messages in mail.items():
                before.mail.setdefault(session, []).extend(messages)
        elif mail or not prompt:
            self._deliver(mail)
            self.answers.observe(time.perf_counter() - self._began)

    def _reported(self, error: Exception | None) -> None:
        if threading.get_ident() == self._thread:
            self._committed(error)
        elif not self._loop.is_closed():
            self._loop.call_soon_threadsafe(self._committed, error)

    def _committed(self, error: Exception | None) -> None:
        flight = self._in_flight.popleft()
        self._under_way.release(flight.in_order)
        self._records_waiting -= flight.records
        if error is not None:
            self._fail(error)
        else:
            self.counts.commits += 1
            self.counts.records += flight.records
            self._deliver(flight.mail)
            self.answers.observe(time.perf_counter() - flight.began)
        if not self._in_flight:
            self._idle.set()
            if self._restarting and not self._stopping:
                self._restore()
        self._set_room()

    def _deliver(self, mail: Mail) -> None:
        """Hand messages to sessions: who gets little first, and what takes longer than a moment in parts."""
        end = time.perf_counter() + DELIVER_SECONDS
        was_behind = bool(self._undelivered)
        for session in mail if len(mail) == 1 else sorted(mail, key=lambda session: _bytes_in(mail[session])):
            if session in self._undelivered:
                self._undelivered[session] += mail[session]
            elif time.perf_counter() < end:
                self._give(session, mail[session])
            else:
                self._undelivered[session] = mail[session]
        if self._undelivered and not was_behind:
            self._loop.call_soon(self._deliver_more, DELIVER_SECONDS)

    def _deliver_more(self, seconds: float) -> None:
        end = time.perf_counter() + seconds
        while self._undelivered and time.perf_counter() < end:
            session = next(iter(self._undelivered))
            self._give(session, self._undelivered.pop(session))
        if self._undelivered:
            self._loop.call_soon(self._deliver_more, DELIVER_SECONDS)

    def _give(self, session: Session, messages: list[Any]) -> None:
        self.counts.sent += sum([len(one) if isinstance(one, PackedDeliveries) else 1 for one in messages])
        try:
            session.take(messages)
        except Exception:
            # What can't be sent to one must not keep others from what is theirs.
            self.counts.defects += 1
            log.exception("answers for %s can't be sent: %s", session.name, described(messages))
            session.outlet.close("the broker has a defect: an answer can't be sent", INTERNAL)
            session.forget("an answer can't be sent")
            self.end(session)

    def _has_room(self, session: Session | None) -> bool:
        if self.stopped.done():
            return True
        if self._records_waiting >= self.limits.waiting_records:
            return False
        return len(self._inputs) < self.limits.waiting_inputs or session is None or not self._inputs.of(session)

    def _set_room(self) -> None:
        for held, session in list(self._held.items()):
            if self._has_room(session) and not held.done():
                held.set_result(None)

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
        self._set_room()
        self._idle.set()


def _remembered(before: float, last: float) -> float:
    """What is expected after a cost; 0 where there was none before."""
    return before + (ALARM if last > before else FORGETTING) * (last - before) if before else last


def _is_much(input: Input) -> bool:
    """Whether an input tells of many entries, or of long filters."""
    message = input.message if isinstance(input, FromPeer | FromClient) else None
    if isinstance(message, Delta):
        characters = sum([len(entry.filter) for entry in message.added])
        return len(message.added) >= MANY_ENTRIES or characters >= MANY_CHARACTERS
    return isinstance(message, Subscribe) and len(message.filter) >= MANY_CHARACTERS


def _bytes_in(messages: list[Any]) -> int:
    """About how much messages are: events have sizes, all else is small."""
    return sum([getattr(message, "bytes", 0) for message in messages])
