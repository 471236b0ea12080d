"""Make a failing scenario shorter: fewer actions, fewer clients, that still fail.

Delta debugging: try to leave out halves, then quarters, and so on down to single actions. A shorter scenario is kept if
it fails at all; which check fails may change on the way, and a shorter script is what helps.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import replace

from covey.simulation.scenarios import Action, Scenario

MOST_RUNS = 400
"""Runs that shrinking may take."""


def shrink(scenario: Scenario, fails: Callable[[Scenario], bool], *, runs: int = MOST_RUNS) -> Scenario:
    """The shortest scenario found that still fails."""
    actions = list(scenario.actions)
    size = max(1, len(actions) // 2)
    while runs > 0:
        shorter, runs = _without_some(scenario, actions, size, fails, runs)
        if len(shorter) == len(actions) and size == 1:
            break
        size = max(1, min(size, len(shorter)) // (2 if len(shorter) == len(actions) else 1))
        actions = shorter
    used = {action.who for action in actions}
    return replace(
        scenario.with_actions(actions),
        clients=tuple(client for client in scenario.clients if client[0] in used) or scenario.clients[:1],
    )


def _without_some(
    scenario: Scenario, actions: list[Action], size: int, fails: Callable[[Scenario], bool], runs: int
) -> tuple[list[Action], int]:
    at = 0
    while at < len(actions) and runs > 0:
        candidate = actions[:at] + actions[at + size :]
        runs -= 1
        if fails(scenario.with_actions(candidate)):
            actions = candidate
        else:
            at += size
    return actions, runs
