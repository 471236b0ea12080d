"""Play a scenario: first clients and faults, then a healed network that must settle, then events that all must get.

Safety is checked all along (`ledger.py`), tables when they should have settled (`fixpoint.py`), liveness at the end.
"""

from __future__ import annotations

import random
from collections.abc import Callable
from dataclasses import dataclass, replace
from math import inf
from typing import cast

from covey.events.schema import Schema
from covey.relations.merging import MergingPolicy
from covey.relations.subsumption import Nominal, Number, Space
from covey.routing.broker import Broker
from covey.routing.config import (
    AdaptiveFiltering,
    BrokerConfig,
    BrokerLimits,
    MergingOptions,
    PruningOptions,
    Strategy,
    SubsumptionOptions,
    Timing,
)
from covey.routing.journal import Outputs
from covey.routing.messages import (
    AddPeer,
    ClientAnswer,
    ClientUp,
    Envelope,
    Events,
    Input,
    Permissions,
    Permit,
    Pressure,
    RemovePeer,
    Reroute,
)
from covey.simulation.actors import Actor
from covey.simulation.fixpoint import check_fixpoint
from covey.simulation.ledger import Ledger
from covey.simulation.permissions import Rights
from covey.simulation.scenarios import FAULTS, KINDS, Action, Scenario, random_event
from covey.simulation.uniform_chances import UniformChances
from covey.simulation.world import Clock, Node, Wire

TIMING = Timing(retry=0.5, failed=2.0)
SETTLING = 7.0
"""Simulated seconds that a healed network has to settle."""
STEADY = 2.0
"""Simulated seconds in which the last events must reach everybody."""
SMALL_DELTA = 12
"""Characters: a delta comes in parts of one entry."""
SMALL_WINDOW = 1_000
"""Bytes: a few events may be on the way."""
SMALL_BUFFER = 2_000
"""Bytes on the way over a connection before it is cut: a window, and the event that passes it."""
LINK_BUFFER = 3_000
"""The same over a link, where there are two windows."""
HEAVIEST = 800
"""Bytes that an event may have beside what all have."""
FORGED = 5
"""Events that a liar makes up at a time."""
TYPES = Schema({"p": "int"}, type_attribute="k", subtypes={"b": "a", "c": "b"})
"""Who asks for a gets b and c, too."""
SPACE = Space([Nominal("k", list(KINDS)), Number("p")])


@dataclass(frozen=True, slots=True)
class Report:
    """What came of a run."""

    scenario: Scenario
    failures: tuple[str, ...]
    trace: int
    """The same for the same scenario."""
    steps: int
    deliveries: int
    seconds: float
    """Simulated ones."""


def broker_config(scenario: Scenario, name: str) -> BrokerConfig:
    """The configuration of one broker of a scenario."""
    peers = tuple(sorted({b if a == name else a for a, b in scenario.links if name in (a, b)}))
    return BrokerConfig(
        name,
        peers,
        scenario.strategy,
        scenario.advertisements,
        merging=MergingOptions(scenario.imt, MergingPolicy(at_arrivals=3)),
        subsumption=SubsumptionOptions(SPACE, approximate=scenario.seed % 2 == 0),
        pruning=PruningOptions(share=0.5) if scenario.pruning else None,
        chances=UniformChances() if scenario.pruning or scenario.imt else None,
        adaptive=AdaptiveFiltering(0.6, 0.3, 4) if scenario.adaptive else None,
        meta_events=scenario.meta,
        schema=TYPES if scenario.typed else None,
        timing=TIMING,
        limits=_limits(scenario),
    )


def _limits(scenario: Scenario) -> BrokerLimits:
    limits = BrokerLimits(delta_bytes=SMALL_DELTA) if scenario.seed % 3 == 0 else BrokerLimits()
    if scenario.seed % 4 == 1:
        limits = replace(limits, delta_entries=1, deltas_flying=1, request_entries=1)
    if not scenario.heavy:
        return limits
    return replace(
        limits, credit_bytes=SMALL_WINDOW, stream_flying_bytes=SMALL_WINDOW, events_flying_bytes=SMALL_WINDOW
    )


Make = Callable[..., tuple[Broker, Outputs]]


class Stage:
    """A scenario's world, while it is played."""

    def __init__(self, scenario: Scenario, make: Make = Broker.restore, *, sends_before_commit: bool = False) -> None:
        self.scenario = scenario
        self.clock = Clock(scenario.seed)
        schema = TYPES if scenario.typed else None
        self.ledger = Ledger(ordered=scenario.is_acyclic, rights=Rights(schema), schema=schema)
        self.nodes = {name: Node(self.clock, broker_config(scenario, name), make) for name in scenario.brokers}
        self.wires = {
            (one, other): Wire(self.clock, self.nodes[one], self.nodes[other]) for one, other in scenario.links
        }
        self.actors = {
            name: Actor(self.clock, name, self.nodes[broker], self.ledger, advertised=scenario.advertisements)
            for name, broker in scenario.clients
        }
        self._events = 0
        for node in self.nodes.values():
            node.listener = self
            if scenario.seed % 2:
                node.budgets = random.Random(f"budgets {scenario.seed} {node.name}")
            node.sends_before_commit = sends_before_commit
        for wire in self.wires.values():
            wire.lossy = scenario.lossy
        if scenario.heavy:
            for actor in self.actors.values():
                actor.buffer_bytes = SMALL_BUFFER
            for wire in self.wires.values():
                wire.buffer_bytes = inf if scenario.lossy else LINK_BUFFER

    # What brokers tell clients

    def hear(self, client: str, message: ClientAnswer, session: int) -> None:
        """A message for a client."""
        self.actors[client].hear(message, session)

    def closed(self, client: str, session: int) -> None:
        """A session was closed by its broker."""
        self.actors[client].closed(session)

    def crashed(self, broker: str) -> None:
        """All sessions of a broker are over."""
        for actor in self.actors.values():
            if actor.node.name == broker:
                actor.broker_died()

    def took(self, input: Input) -> None:
        """A broker has taken something in."""
        if isinstance(input, ClientUp | Permit):
            self.ledger.rights.took(self.clock.now, input.client, input.permissions)

    def failed(self, failure: str) -> None:
        """A broker isn't what it must be."""
        self.ledger.fail(f"{self.clock.now:.3f} {failure}")

    # What scenarios ask for

    def perform(self, action: Action) -> None:
        """Do what an action says."""
        self.clock.note(f"{action.kind} {action.who} {action.what}")
        getattr(self, f"_{action.kind}")(action)

    def _connect(self, action: Action) -> None:
        self.actors[action.who].connect()

    def _disconnect(self, action: Action) -> None:
        self.actors[action.who].disconnect(action.seconds)

    def _subscribe(self, action: Action) -> None:
        self.actors[action.who].subscribe(action.what, action.text, durable=action.durable, lease=action.seconds)

    def _unsubscribe(self, action: Action) -> None:
        self.actors[action.who].unsubscribe(action.what)

    def _advertise(self, action: Action) -> None:
        self.actors[action.who].advertise(action.what, action.text)

    def _publish(self, action: Action, *, steady: bool = False) -> None:
        self._events += 1
        kind, _, price = action.text.partition(":")
        uid = f"e{self._events}"
        weight = random.Random(f"weight {self.scenario.seed} {uid}").randrange(HEAVIEST) if self.scenario.heavy else 0
        self.actors[action.who].publish(uid, kind, price, durable=action.durable, steady=steady, weight=weight)

    def _allow(self, action: Action) -> None:
        """A file was read again: a principal may do something else, connected or not."""
        self.ledger.rights.allowed[action.who] = Permissions(action.what or None, action.text or None)
        for actor in self.actors.values():
            if actor.principal == action.who:
                actor.permit()

    def _crash(self, action: Action) -> None:
        node = self.nodes[action.who]
        if action.what == "writing":
            node.crash_in_a_write(action.seconds)
        else:
            node.crash_for(action.seconds)

    def _pause(self, action: Action) -> None:
        node = self.nodes[action.who]
        node.pause()
        self.clock.later(action.seconds, node.resume)

    def _press(self, action: Action) -> None:
        """A broker is above a mark for a while."""
        node = self.nodes[action.who]
        node.take(Pressure("above a mark"))
        self.clock.later(action.seconds, node.take, Pressure())

    def _reroute(self, action: Action) -> None:
        """A broker's file says another strategy, or other options: at once where it runs, else when it starts."""
        node = self.nodes[action.who]
        config = node.config
        node.config = replace(
            config,
            strategy=cast(Strategy, action.what),
            merging=MergingOptions(action.seconds if config.chances else 0.0, MergingPolicy(at_arrivals=3)),
            pruning=PruningOptions(share=0.5) if action.text and config.chances else None,
            adaptive=AdaptiveFiltering(0.6, 0.3, 4) if action.durable else None,
        )
        node.take(Reroute.to(node.config))

    def _defect(self, action: Action) -> None:
        self.nodes[action.who].break_after(int(action.what))

    def _lie(self, action: Action) -> None:
        """A broker tells its neighbours of durable events that another never published, under its next numbers."""
        liar, victim = self.nodes[action.who], self.nodes[action.what].broker
        if victim is None:
            return
        kind, _, price = action.text.partition(":")
        attributes = {"k": kind or "a", "p": int(price or 1), "forged": True}
        forged = [
            Envelope(action.what, number, "nobody", 0, True, 9, attributes)
            for number in range(victim.next_number, victim.next_number + FORGED)
        ]
        for wire in liar.wires.values():
            wire.say(action.who, Events(forged))

    def _cut(self, action: Action) -> None:
        one, _, other = action.who.partition("-")
        self._cut_for(self.wires[one, other], action)

    def _cut_for(self, wire: Wire, action: Action) -> None:
        silent = action.what == "silent"
        wire.cut(silent=silent)
        seconds = min(action.seconds, FAULTS - self.clock.now)
        self.clock.later(seconds, lambda: wire.mend(silent=silent))

    def _partition(self, action: Action) -> None:
        side = set(action.who.split(","))
        for (one, other), wire in self.wires.items():
            if (one in side) != (other in side):
                self._cut_for(wire, action)

    def _reset(self, action: Action) -> None:
        one, _, other = action.who.partition("-")
        self.wires[one, other].reset()

    def _unlink(self, action: Action) -> None:
        """Take a link away at both ends, and give it back after a while."""
        one, _, other = action.who.partition("-")
        if self.nodes[one].up and self.nodes[other].up:
            self.wires[one, other].cut(silent=False)
            self.nodes[one].take(RemovePeer(other))
            self.nodes[other].take(RemovePeer(one))
            self.clock.later(min(action.seconds, FAULTS - self.clock.now), self._link, one, other)

    def _link(self, one: str, other: str) -> None:
        self.nodes[one].take(AddPeer(other))
        self.nodes[other].take(AddPeer(one))
        self.wires[one, other].mend(silent=False)

    # Phases

    def play(self) -> Report:
        """All phases; the first violation of each kind of check ends the run."""
        for node in self.nodes.values():
            self.clock.later(self.clock.rng.uniform(0, 0.2), node.start)
        for action in self.scenario.actions:
            self.clock.at(action.at, self.perform, action)
        self.clock.run_until(FAULTS)
        self._heal()
        self.clock.run_until(FAULTS + SETTLING)
        if not self.ledger.failures:
            self._check_settled()
        if not self.ledger.failures:
            self._publish_everywhere()
            self.clock.run_until(FAULTS + SETTLING + STEADY)
            self.ledger.check_steady()
            self.ledger.check_durable()
        deliveries = sum(map(len, self.ledger.delivered.values()))
        return Report(
            self.scenario, tuple(self.ledger.failures), self.clock.trace, self.clock.steps, deliveries, self.clock.now
        )

    def _heal(self) -> None:
        for node in self.nodes.values():
            node.calm()
            node.start()
            node.take(Pressure())
        for (one, other), wire in self.wires.items():
            wire.lossy = False
            self.nodes[one].take(AddPeer(other))
            self.nodes[other].take(AddPeer(one))
        for actor in self.actors.values():
            actor.connect()

    def _check_settled(self) -> None:
        brokers = {name: node.broker for name, node in self.nodes.items() if node.broker is not None}
        for failure in check_fixpoint(brokers, self.scenario.links):
            self.ledger.fail(f"{self.clock.now:.3f} {failure}")
        for actor in self.actors.values():
            if actor.waits:
                self.ledger.fail(f"{self.clock.now:.3f} {actor.name} still waits for an answer")

    def _publish_everywhere(self) -> None:
        rng = random.Random(f"steady {self.scenario.seed}")
        for actor in self.actors.values():
            for durable in (False, True):
                action = Action(self.clock.now, "publish", actor.name, text=random_event(rng), durable=durable)
                self._publish(action, steady=True)
        if self.scenario.meta:
            free = [actor for actor in self.actors.values() if self.ledger.rights.of(actor.principal).subscribe is None]
            for actor in free[:1]:
                self.ledger.expect_news(self.clock.now, actor.node.name, actor.name, "late", "p = 1000")
                actor.subscribe("late", "p = 1000", durable=False, lease=0.0)


def run(scenario: Scenario, make: Make = Broker.restore, *, sends_before_commit: bool = False) -> Report:
    """Play a scenario, on brokers made by `make`."""
    return Stage(scenario, make, sends_before_commit=sends_before_commit).play()
