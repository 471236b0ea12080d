"""The conformance cases of CloudEvents SQL (its TCK), read as filters.

A filter passes where the expression is true and no error came up (section 1.2 of the specification), so that is what a
case with a Boolean result must give; what must not pass may also be refused when it is read, where an error is
expected. Cases with other results are expressions that aren't filters: they must be refused, or never pass.
"""

from __future__ import annotations

from pathlib import Path
from typing import Any, Final

import yaml

import covey
from covey.errors import FilterError
from tools.conformance import Outcome

EVENT: Final = {"specversion": "1.0", "id": "1", "source": "example.com", "type": "example"}
"""The attributes that every event has; a case that doesn't say otherwise takes any."""


def outcomes(directory: Path) -> list[Outcome]:
    """Of the Boolean cases, and of the others."""
    boolean = Outcome("CloudEvents SQL 1.0, cases with a Boolean result", "cases")
    others = Outcome("CloudEvents SQL 1.0, cases with another result, which no filter is", "cases")
    for path in sorted(directory.glob("*.yaml")):
        for case in yaml.safe_load(path.read_bytes())["tests"]:
            _run(f"{path.stem}: {case['name']}", case, boolean, others)
    return [boolean, others]


def _run(name: str, case: dict[str, Any], boolean: Outcome, others: Outcome) -> None:
    passes = _passes(case)
    result, fails = case.get("result"), "error" in case
    if not isinstance(result, bool):
        if passes:
            others.different.append(name)
        elif passes is None:
            others.refuse("it gives no Boolean" if case.get("error") != "parse" else "it can't be read, as it should")
        else:
            others.same += 1
        return
    wanted = result and not fails
    if passes is None and not fails:
        boolean.refuse("covey can't read it")
    elif bool(passes) != wanted:
        boolean.different.append(name)
    else:
        boolean.same += 1


def _passes(case: dict[str, Any]) -> bool | None:
    """Whether the event passes; None where the expression is refused."""
    expression = case["expression"]
    text = str(expression).upper() if isinstance(expression, bool) else str(expression)
    event = case["event"] if "event" in case else {**EVENT, **case.get("eventOverrides", {})}
    try:
        return covey.parse(text, dialect="cesql").matches(event)
    except FilterError:
        return None
