"""The diagrams of a link's states in docs/design.md, drawn from the tables of transitions."""

from __future__ import annotations

from collections.abc import Iterator
from enum import Enum
from typing import Final

from covey.routing.phases import JOINED, KNOWLEDGE, PHASES, Signal, Transitions
from tools.docs import ROOT

PAGE: Final = ROOT / "docs" / "design.md"
_START: Final = "<!-- drawn from routing/phases.py -->\n"
_END: Final = "<!-- drawn until here -->\n"
_MACHINES: Final[dict[str, Transitions]] = {"the session": PHASES, "the tree": JOINED, "what is known": KNOWLEDGE}


def page() -> str:
    """The page with the diagrams as they should be."""
    before, start, rest = PAGE.read_text(encoding="utf-8").partition(_START)
    _, end, after = rest.partition(_END)
    assert start, "docs/design.md has lost the place for a link's states"
    assert end, "docs/design.md has lost the end of a link's states"
    return "".join((before, start, "```text\n", *_diagrams(), "```\n", end, after))


def _diagrams() -> Iterator[str]:
    for title, transitions in _MACHINES.items():
        yield f"{title}\n"
        yield from _diagram(transitions)
        yield "\n"
    width = max(len(signal.name) for signal in Signal)
    for signal in Signal:
        yield f"{signal.name:{width}}  {signal.value}\n"


def _diagram(transitions: Transitions) -> Iterator[str]:
    """A line for each state, and below it the arrows that lead away from it; what leads back to itself isn't drawn."""
    for state, known in transitions.items():
        yield f"  {state.name:10} {_meaning(state)}\n"
        targets: dict[Enum, list[str]] = {}
        for signal, target in known.items():
            if target is not state:
                targets.setdefault(target, []).append(signal.name)
        for target, signals in targets.items():
            yield f"      ──{', '.join(signals)}──▶ {target.name}\n"


def _meaning(state: Enum) -> str:
    return str(getattr(state, "meaning", state.value))
