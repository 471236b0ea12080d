"""The state of a link, at one end: three small machines, and the signals that move them.

Each machine is a table from a state and a signal to the next state. `Link.take` is the only place that moves them; a
signal that a machine hears and that its present state doesn't know is a defect and raises, so the tables are all that
can happen. The diagrams in `docs/design.md` are drawn from them.

`Phase` is the session. A neighbour says Hello, we say Hello, and whichever comes first, deltas follow: the first whole
delta of a session says all that the neighbour wants, and from then on its entries decide which events it gets. Where
nothing was heard for t2 (`Timing.failed`) the link *fails*: nothing waits for it to settle any more, until the next
Hello. A delta comes only from a neighbour that has had our Hello, so it answers as well as a Hello does.

`Joined` says which ends have the link in their spanning trees. Ours decides what we export and send, theirs what they
do; while the trees of two brokers differ, so do the two.

`Knowledge` says whether the neighbour may have let events pass for want of an entry. It *lapses* when a link fails
(clients have then had confirmations that the neighbour knows nothing of), joins the tree, or has something to recall,
and is current again when the neighbour has acknowledged everything, recalls included.

`Joined` (theirs), `Knowledge` and whether the link has failed survive a restart; sessions don't.
"""

from __future__ import annotations

from collections.abc import Mapping
from enum import Enum
from typing import Final, TypeAlias, TypeVar


class Signal(Enum):
    """What happens to a link. The values are sentences for the page."""

    OPENED = "a session is open, and we say Hello"
    CLOSED = "the session is over"
    HELLO = "the neighbour's first Hello of the session"
    ANSWER = "the neighbour has had our Hello: it says so, or sends a delta"
    SYNCED = "the neighbour's first whole delta is applied, or a later one"
    FAILED = "nothing was heard for too long, or the link is taken away"

    JOINED = "our tree has the link from now on"
    RESUMED = "our tree had the link before a restart, and still has it"
    LEFT = "our tree hasn't the link any more"
    PEER_JOINED = "the neighbour says that its tree has the link"
    PEER_LEFT = "the neighbour says that its tree hasn't, or is forgotten"

    RECALLING = "there is something to recall from the neighbour"
    RECALLED = "the neighbour has acknowledged all deltas, and all recalls with them"


class Phase(Enum):
    """The session: what it means, and whether it is there, open for all messages, and failed."""

    FAILED = ("no session, and nothing waits for the neighbour", False, False, True)
    CLOSED = ("no session; what is for the neighbour waits", False, False, False)
    REOPENING = ("a session with a neighbour that had failed and hasn't said Hello", True, False, True)
    OPENING = ("a session with a neighbour that hasn't said Hello", True, False, False)
    GREETED = ("the neighbour has said Hello: deltas and streams go there", True, True, False)
    ANSWERED = ("it has had our Hello too, which needn't be said again", True, True, False)
    SYNCED = ("it has told all that it wants: its entries decide what it gets", True, True, False)

    def __init__(self, meaning: str, up: bool, open: bool, failed: bool) -> None:
        self.meaning = meaning
        self.up = up
        self.open = open
        self.failed = failed


class Joined(Enum):
    """Which ends have the link in their spanning trees."""

    NEITHER = ("what the neighbour told is held and not used; it is exported nothing", False, False)
    OURS = ("it is exported to; it gets every event until it joins too", True, False)
    THEIRS = ("it exports to us, and we hold what it says and don't use it", False, True)
    BOTH = ("events and entries go both ways", True, True)

    def __init__(self, meaning: str, ours: bool, theirs: bool) -> None:
        self.meaning = meaning
        self.ours = ours
        self.theirs = theirs


class Knowledge(Enum):
    """Whether the neighbour may have let events pass for want of an entry."""

    CURRENT = "it knows all that it must"
    LAPSED = "it may have let events pass"


State = TypeVar("State", bound=Enum)
Transitions: TypeAlias = Mapping[State, Mapping[Signal, State]]

PHASES: Final[Transitions[Phase]] = {
    Phase.FAILED: {
        Signal.OPENED: Phase.REOPENING,
        Signal.FAILED: Phase.FAILED,
    },
    Phase.CLOSED: {
        Signal.OPENED: Phase.OPENING,
        Signal.FAILED: Phase.FAILED,
    },
    Phase.REOPENING: {
        Signal.HELLO: Phase.GREETED,
        Signal.CLOSED: Phase.FAILED,
    },
    Phase.OPENING: {
        Signal.HELLO: Phase.GREETED,
        Signal.CLOSED: Phase.CLOSED,
    },
    Phase.GREETED: {
        Signal.ANSWER: Phase.ANSWERED,
        Signal.CLOSED: Phase.CLOSED,
    },
    Phase.ANSWERED: {
        Signal.ANSWER: Phase.ANSWERED,
        Signal.SYNCED: Phase.SYNCED,
        Signal.CLOSED: Phase.CLOSED,
    },
    Phase.SYNCED: {
        Signal.ANSWER: Phase.SYNCED,
        Signal.SYNCED: Phase.SYNCED,
        Signal.CLOSED: Phase.CLOSED,
    },
}

JOINED: Final[Transitions[Joined]] = {
    Joined.NEITHER: {
        Signal.JOINED: Joined.OURS,
        Signal.RESUMED: Joined.OURS,
        Signal.PEER_JOINED: Joined.THEIRS,
        Signal.PEER_LEFT: Joined.NEITHER,
    },
    Joined.OURS: {
        Signal.LEFT: Joined.NEITHER,
        Signal.PEER_JOINED: Joined.BOTH,
        Signal.PEER_LEFT: Joined.OURS,
    },
    Joined.THEIRS: {
        Signal.JOINED: Joined.BOTH,
        Signal.RESUMED: Joined.BOTH,
        Signal.PEER_JOINED: Joined.THEIRS,
        Signal.PEER_LEFT: Joined.NEITHER,
    },
    Joined.BOTH: {
        Signal.LEFT: Joined.THEIRS,
        Signal.PEER_JOINED: Joined.BOTH,
        Signal.PEER_LEFT: Joined.OURS,
    },
}

KNOWLEDGE: Final[Transitions[Knowledge]] = {
    Knowledge.CURRENT: {
        Signal.FAILED: Knowledge.LAPSED,
        Signal.JOINED: Knowledge.LAPSED,
        Signal.RECALLING: Knowledge.LAPSED,
        Signal.RECALLED: Knowledge.CURRENT,
    },
    Knowledge.LAPSED: {
        Signal.FAILED: Knowledge.LAPSED,
        Signal.JOINED: Knowledge.LAPSED,
        Signal.RECALLING: Knowledge.LAPSED,
        Signal.RECALLED: Knowledge.CURRENT,
    },
}


def after(transitions: Transitions[State], state: State, signal: Signal) -> State:
    """The state after a signal; the same for a signal that the machine doesn't hear."""
    known = transitions[state]
    if signal in known:
        return known[signal]
    assert not any(signal in others for others in transitions.values()), f"{signal.name} of a link that is {state.name}"
    return state
