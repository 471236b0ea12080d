"""Simulated time, brokers with disks, and the wires between them. Everything random comes from one generator.

A broker's outputs are committed after a while, in order, and what came with them is sent after that, plain events
before it; a crash loses what isn't committed, and what was being committed is there as a whole or not at all. A wire
carries sessions: first in, first out but for plain events, which may pass by other messages, unless it is lossy. A wire
can be cut so that both ends notice, or silently.
"""

from __future__ import annotations

import heapq
import random
from collections.abc import Callable
from itertools import count
from math import inf
from typing import Any, Protocol, TypeAlias
from zlib import crc32

from covey.routing.broker import Broker
from covey.routing.config import BrokerConfig
from covey.routing.defects import BrokenError, DefectError
from covey.routing.journal import Outputs, Put, Record, replay
from covey.routing.messages import (
    ClientAnswer,
    ClientDown,
    ClientUp,
    CloseClient,
    ClosePeer,
    Deliveries,
    Events,
    FromClient,
    FromPeer,
    Hello,
    Input,
    Output,
    PeerDown,
    PeerMessage,
    PeerUp,
    Stream,
    Subscribe,
    Subscriptions,
    Tick,
    ToClient,
    ToPeer,
    Work,
)
from covey.routing.overtaking import Receiver, UnderWay
from covey.routing.plain_events import size_of
from covey.simulation.defects import State, Trap, differences, state_of

REQUEST_STEPS = (0, 0, 30, 300, None)
"""Steps that a hurried broker gives a request."""
WORK_STEPS = (1, 100, 4_000)
"""Steps that there is time for at once."""
Waiting: TypeAlias = tuple[list[Record], list[Output], list[Receiver]]
"""Rows to commit, what is sent then, and who must hear nothing before that."""
RECONNECT = 0.3
"""Seconds between attempts to open a session."""


class Clock:
    """What happens when."""

    def __init__(self, seed: int) -> None:
        self.now = 0.0
        self.rng = random.Random(f"world {seed}")
        self.trace = 0
        self.steps = 0
        self._heap: list[tuple[float, int, Callable[..., None], tuple[Any, ...]]] = []
        self._order = count()

    def later(self, seconds: float, action: Callable[..., None], *arguments: Any) -> None:
        """Do something after a while."""
        heapq.heappush(self._heap, (self.now + seconds, next(self._order), action, arguments))

    def at(self, time: float, action: Callable[..., None], *arguments: Any) -> None:
        """Do something at a time."""
        heapq.heappush(self._heap, (max(time, self.now), next(self._order), action, arguments))

    def run_until(self, time: float) -> None:
        """Let time pass."""
        heap = self._heap
        while heap and heap[0][0] <= time:
            self.now, _, action, arguments = heapq.heappop(heap)
            self.steps += 1
            action(*arguments)
        self.now = time

    def note(self, text: str) -> None:
        """Put something into the trace."""
        self.trace = crc32(f"{self.now:.6f} {text}".encode(), self.trace)


class Listener(Protocol):
    """Who hears what a broker tells its clients."""

    def hear(self, client: str, message: ClientAnswer, session: int) -> None:
        """A message for a client."""

    def closed(self, client: str, session: int) -> None:
        """A client's session was closed by the broker."""

    def took(self, input: Input) -> None:
        """A broker has taken something in."""

    def crashed(self, broker: str) -> None:
        """All sessions of a broker are over."""

    def failed(self, failure: str) -> None:
        """Something is not as it must be."""


class Node:
    """A broker with its disk and its process."""

    def __init__(self, clock: Clock, config: BrokerConfig, make: Callable[..., tuple[Broker, Outputs]]) -> None:
        self.clock = clock
        self.config = config
        self.name = config.broker
        self._make = make
        self.broker: Broker | None = None
        self.rows: dict[tuple[str, str], bytes] = {}
        self.wires: dict[str, Wire] = {}
        self.listener: Listener | None = None
        self.sends_before_commit = False
        self.budgets: random.Random | None = None
        """What requests may take at once, and when there is time for the rest, is drawn from this; None for enough."""
        self._work_planned = False
        self._life = 0
        self._writing: list[Record] = []
        self._is_writing = False
        """Also where there is nothing to write: what waits behind it must not be overtaken."""
        self._waiting: list[Waiting] = []
        self._under_way = UnderWay()
        self._paused = False
        self._down_for: float | None = None
        self._calm = False
        self._kept_back: list[Input] = []
        self._gathered: list[FromClient] = []
        """Subscriptions of one session that came one after the other and are taken as one input."""
        self._tick_at = inf
        self._defect_after: int | None = None
        self._skew = clock.rng.uniform(-0.002, 0.002)
        self._ahead = clock.rng.uniform(0.0, 1000.0)

    @property
    def now(self) -> float:
        """The broker's own clock, which runs a little fast or slow."""
        return self._ahead + self.clock.now * (1 + self._skew)

    @property
    def up(self) -> bool:
        """Whether the process runs."""
        return self.broker is not None

    def start(self) -> None:
        """Start the process on what the disk has."""
        if self.broker is not None:
            return
        self._life += 1
        self.clock.note(f"{self.name} starts")
        rows = [Put(space, key, value) for (space, key), value in self.rows.items()]
        self._work_planned = False
        self.broker, outputs = self._make(self.config, rows, self.now)
        self._perform(outputs)
        self._plan_work()
        for wire in self.wires.values():
            wire.try_soon()

    def crash_in_a_write(self, seconds: float) -> None:
        """Kill the process while it next writes, and start it again after a while."""
        self._down_for = seconds

    def crash_for(self, seconds: float) -> None:
        """Kill the process, and start it again after a while."""
        if self._calm:
            return
        self.crash()
        self.clock.later(seconds, self.start)

    def crash(self) -> None:
        """Kill the process: what isn't committed is lost; what is being committed may be or not."""
        if self.broker is None:
            return
        self.clock.note(f"{self.name} crashes")
        if self._writing and self.clock.rng.random() < 0.5:
            replay(self.rows, self._writing)
        self.broker, self._writing, self._waiting, self._kept_back = None, [], [], []
        self._under_way = UnderWay()
        self._gathered = []
        self._is_writing = False
        self._paused = False
        self._tick_at = inf
        for wire in self.wires.values():
            wire.end_died(self.name)
        if self.listener is not None:
            self.listener.crashed(self.name)

    def pause(self) -> None:
        """Stop the process for a while: what comes waits."""
        self._paused = True

    def resume(self) -> None:
        """Let the process go on."""
        self._paused = False
        self._take_gathered(self._life)
        waiting, self._kept_back = self._kept_back, []
        for input in waiting:
            self.take(input)

    def calm(self) -> None:
        """Nothing more is to happen to the process."""
        self._calm = True
        self._defect_after = None
        self._down_for = None
        self.resume()

    def take(self, input: Input) -> None:
        """Something happens to the broker."""
        if self.broker is None:
            return
        if self._paused:
            self._kept_back.append(input)
            return
        if not self._gathers(input):
            if self._gathered and getattr(input, "client", None) == self._gathered[0].client:
                self._take_gathered(self._life)
            self._take(input)

    def _gathers(self, input: Input) -> bool:
        """Whether a subscription waits for others of its session, as it does where a broker has much to do. What others
        say may overtake it, and nothing of its client."""
        if not isinstance(input, FromClient) or not isinstance(input.message, Subscribe) or self.budgets is None:
            return False
        if self._gathered:
            first = self._gathered[0]
            if (first.client, first.session) == (input.client, input.session):
                self._gathered.append(input)
                return True
        if self._calm or self.budgets.random() < 0.5:
            return False
        self._take_gathered(self._life)
        self._gathered.append(input)
        self.clock.later(self.budgets.uniform(0.0, 0.5), self._take_gathered, self._life)
        return True

    def _take_gathered(self, life: int) -> None:
        if life != self._life or not self._gathered or self._paused:
            return
        gathered, self._gathered = self._gathered, []
        first = gathered[0]
        messages = [input.message for input in gathered if isinstance(input.message, Subscribe)]
        self._take(first if len(messages) == 1 else Subscriptions(first.client, messages, first.session))

    def _take(self, input: Input) -> None:
        if self.broker is None:
            return
        kind = input.message if isinstance(input, FromPeer) else input
        self.clock.note(f"{self.name} {type(kind).__name__}")
        if self.listener is not None:
            self.listener.took(input)
        steps = None if self.budgets is None else self.budgets.choice(REQUEST_STEPS)
        if self._defect_after is None:
            self._perform(self.broker.handle(input, self.now, steps), input)
        else:
            self._take_trapped(input, steps, Trap(self._defect_after))
        self._plan_work()

    def break_after(self, steps: int) -> None:
        """Let the broker have a defect: the first turn with more steps than these raises behind them."""
        self._defect_after = steps

    def _take_trapped(self, input: Input, steps: int | None, trap: Trap) -> None:
        broker = self.broker
        assert broker is not None
        before = state_of(broker)
        broker.steps_of = lambda _: trap
        try:
            outputs = broker.handle(input, self.now, steps)
            broker.steps_of = lambda _: []
        except DefectError as defect:
            broker.steps_of = lambda _: []
            self._defect_after = None
            self.clock.note(f"{self.name} has a defect")
            if not defect.outputs.records:
                self._compare(input, before, state_of(broker))
            self._perform(defect.outputs)
            self._charge(input)
        except BrokenError:
            self._defect_after = None
            self.clock.note(f"{self.name} is broken")
            self.crash()
            self.start()
        else:
            self._perform(outputs, input)

    def _compare(self, input: Input, before: State, after: State) -> None:
        for difference in differences(before, after)[:3]:
            if self.listener is not None:
                self.listener.failed(f"{self.name} after a {type(input).__name__} that raised: {difference}")

    def _charge(self, input: Input) -> None:
        """Whoever sent what couldn't be taken loses the connection; where nobody did, the broker is restored."""
        match input:
            case FromClient() | ClientUp():
                self.take(ClientDown(input.client, input.session))
                if self.listener is not None:
                    self.listener.closed(input.client, input.session)
            case Subscriptions():
                for message in input.messages:
                    self._take(FromClient(input.client, message, input.session))
            case FromPeer() | PeerUp():
                self.take(PeerDown(input.peer, input.session))
                self.wires[input.peer].close(input.session)
            case _:
                self.crash()
                self.start()

    def _perform(self, outputs: Outputs, input: Input | None = None) -> None:
        for flaw in outputs.defects:
            if self.listener is not None:
                self.listener.failed(f"{self.name}: {flaw.what}: {flaw.error}")
        if self.sends_before_commit:
            self._send(outputs.sends)
            outputs = Outputs(outputs.records)
        if outputs.records or outputs.sends:
            if not outputs.records and not self._is_writing and not self._waiting:
                self._send(outputs.sends)
            else:
                at_once, later = self._under_way.divide(input, outputs)
                self._send(at_once)
                if outputs.records or later:
                    in_order = self._under_way.hold(outputs.records, later)
                    self._waiting.append((outputs.records, later, in_order))
                self._write()
        self._plan_tick()

    def _write(self) -> None:
        if self._is_writing or not self._waiting:
            return
        batch, self._waiting = self._waiting, []
        self._writing = [record for records, _, _ in batch for record in records]
        self._is_writing = True
        rng = self.clock.rng
        seconds = rng.uniform(0.001, 0.01) if rng.random() < 0.98 else rng.uniform(0.1, 0.4)
        self.clock.later(seconds, self._written, self._life, batch)
        if self._down_for is not None:
            self.clock.later(seconds / 2, self.crash_for, self._down_for)
            self._down_for = None

    def _written(self, life: int, batch: list[Waiting]) -> None:
        if life != self._life or self.broker is None:
            return
        replay(self.rows, self._writing)
        self._writing, self._is_writing = [], False
        for _, sends, in_order in batch:
            self._under_way.release(in_order)
            self._send(sends)
        self._write()

    def _send(self, sends: list[Output]) -> None:
        for send in sends:
            match send:
                case ToPeer(peer, message, session):
                    self.wires[peer].send(self.name, message, session)
                case ToClient(client, answer, session):
                    if self.listener is not None:
                        self.listener.hear(client, answer, session)
                case Deliveries(client=client, session=session):
                    if self.listener is not None:
                        for delivery in send.messages:
                            self.listener.hear(client, delivery, session)
                case ClosePeer(peer, _, session):
                    if peer in self.wires:
                        self.wires[peer].close(session)
                case CloseClient(client, _, session):
                    if self.listener is not None:
                        self.listener.closed(client, session)

    def _plan_work(self) -> None:
        """Let the broker get on with what it has put off, after a while: soon where nothing more happens."""
        if self.broker is None or self._work_planned or not self.broker.behind:
            return
        self._work_planned = True
        seconds, steps = 0.02, WORK_STEPS[-1]
        if self.budgets is not None and not self._calm:
            seconds, steps = self.budgets.uniform(0.01, 0.5), self.budgets.choice(WORK_STEPS)
        self.clock.later(seconds, self._work, self._life, steps)

    def _work(self, life: int, steps: int) -> None:
        if life == self._life and self.broker is not None:
            self._work_planned = False
            self.take(Work(steps))

    def _plan_tick(self) -> None:
        assert self.broker is not None
        wake = (self.broker.wake_at - self._ahead) / (1 + self._skew)
        if wake < self._tick_at:
            self._tick_at = wake
            self.clock.at(wake + 1e-6, self._tick, self._life, wake)

    def _tick(self, life: int, wake: float) -> None:
        if life != self._life or wake != self._tick_at or self.broker is None:
            return
        self._tick_at = inf
        if self._paused:
            self.clock.later(0.05, self._tick_again, life)
            return
        self.take(Tick())

    def _tick_again(self, life: int) -> None:
        if life == self._life and self.broker is not None:
            if self._paused:
                self.clock.later(0.05, self._tick_again, life)
            else:
                self.take(Tick())


class Wire:
    """What connects two brokers."""

    def __init__(self, clock: Clock, one: Node, other: Node) -> None:
        self._clock = clock
        self._ends = {one.name: one, other.name: other}
        self._views = {one.name: 0, other.name: 0}
        self._last = {one.name: 0.0, other.name: 0.0}
        self._opened_at = {one.name: 0.0, other.name: 0.0}
        self._events_last = {one.name: 0.0, other.name: 0.0}
        """When what plain events must not pass by has arrived at an end: a Hello, and those before."""
        self._session = 0
        self._numbers = count(1)
        self._trying = False
        self.cuts = 0
        self.silent_cuts = 0
        self.lossy = False
        self.buffer_bytes = inf
        """Of events on the way in one direction before the session is cut."""
        self._on_the_way = {one.name: 0, other.name: 0}
        one.wires[other.name] = self
        other.wires[one.name] = self

    def try_soon(self) -> None:
        """Try to open a session after a while."""
        if not self._trying and not self._session:
            self._trying = True
            self._clock.later(self._clock.rng.uniform(0.5, 1.5) * RECONNECT, self._try)

    def _try(self) -> None:
        self._trying = False
        if self._session or not all(end.up for end in self._ends.values()):
            return
        if self.cuts or self.silent_cuts:
            self.try_soon()
            return
        self._session = next(self._numbers)
        for name in self._ends:
            when = self._clock.now + self._delay()
            self._last[name] = self._opened_at[name] = self._events_last[name] = when
            self._clock.at(when, self._opened, name, self._session)

    def _opened(self, name: str, session: int) -> None:
        if session == self._session and self._ends[name].up:
            self._views[name] = session
            self._ends[name].take(PeerUp(self._other(name), session))

    def _other(self, name: str) -> str:
        return next(other for other in self._ends if other != name)

    def _delay(self) -> float:
        return self._clock.rng.uniform(0.002, 0.04)

    def send(self, sender: str, message: PeerMessage, session: int) -> None:
        """Send a message over a session, if it still is."""
        if session != self._session or self.silent_cuts:
            return
        receiver = self._other(sender)
        rng = self._clock.rng
        if _size(message) + self._on_the_way[receiver] > self.buffer_bytes and _size(message):
            self._clock.note(f"{sender} is cut from {receiver}")
            self.reset()
            return
        if self.lossy:
            for _ in range(rng.choice((0, 1, 1, 1, 1, 1, 1, 1, 1, 2))):
                when = max(self._clock.now + self._delay() * rng.choice((1, 1, 1, 4)), self._opened_at[receiver])
                self._on_the_way[receiver] += _size(message)
                self._clock.at(when, self._arrive, receiver, session, message)
            return
        self._on_the_way[receiver] += _size(message)
        when = self._clock.now + self._delay()
        if isinstance(message, Events):
            when = max(self._events_last[receiver], when)
        if not isinstance(message, Events) or rng.random() < 0.5:
            when = self._last[receiver] = max(self._last[receiver], when)
        if isinstance(message, Events | Hello):
            self._events_last[receiver] = when
        self._clock.at(when, self._arrive, receiver, session, message)

    def say(self, sender: str, message: PeerMessage) -> None:
        """Send what no broker asked to be sent, over the present session."""
        if self._session:
            self.send(sender, message, self._session)

    def _arrive(self, receiver: str, session: int, message: PeerMessage) -> None:
        self._on_the_way[receiver] -= _size(message)
        if session == self._views[receiver] and not self.silent_cuts:
            self._ends[receiver].take(FromPeer(self._other(receiver), message, session))

    def reset(self) -> None:
        """End the session; both ends notice soon, and try again."""
        if self._session:
            for name in self._ends:
                self._clock.later(self._delay(), self._closed, name, self._session)
            self._session = 0
        self.try_soon()

    def _closed(self, name: str, session: int) -> None:
        if self._views[name] == session:
            self._views[name] = 0
            self._ends[name].take(PeerDown(self._other(name), session))

    def close(self, session: int) -> None:
        """End a session, if it is the present one."""
        if session == self._session:
            self.reset()

    def end_died(self, name: str) -> None:
        """A process at an end is gone."""
        self._views[name] = 0
        self.reset()

    def cut(self, *, silent: bool) -> None:
        """Let nothing through."""
        if silent:
            self.silent_cuts += 1
        else:
            self.cuts += 1
            self.reset()

    def mend(self, *, silent: bool) -> None:
        """Undo a cut."""
        if silent:
            self.silent_cuts -= 1
        else:
            self.cuts -= 1
        self.try_soon()


def _size(message: PeerMessage) -> int:
    """Bytes of the events in a message."""
    if isinstance(message, Stream):
        return sum(size_of(item.attributes) for item in message.items)
    return sum(size_of(item.attributes) for item in message.envelopes) if isinstance(message, Events) else 0
