"""Cases of covey's own for a dialect: what its standard says, one filter and one event at a time."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any, Final

import covey
from covey.errors import FilterError
from tools.conformance import OWN, Outcome

NAMES: Final = {
    "jms": "JMS 2.0 selectors",
    "amqp": "AMQP's SQL filter expressions, as RabbitMQ reads them",
    "eventbridge": "EventBridge patterns, as event-ruler reads them",
}


def cases(dialect: str) -> list[dict[str, Any]]:
    """The cases of a dialect: a filter, an event, and whether it matches; None where the filter must be refused."""
    loaded: list[dict[str, Any]] = json.loads((OWN / f"{dialect}.json").read_text(encoding="utf-8"))
    return loaded


def outcome(dialect: str) -> Outcome:
    """Of the cases of a dialect."""
    found = Outcome(f"{NAMES[dialect]}: covey's own cases", "cases")
    for case in cases(dialect):
        text = case["filter"] if isinstance(case["filter"], str) else json.dumps(case["filter"])
        try:
            got: bool | None = covey.parse(text, dialect=dialect).matches(case.get("event", {}))
        except FilterError:
            got = None
        if got == case["matches"]:
            found.same += 1
        else:
            found.different.append(text)
    return found


def dialects() -> list[str]:
    """Those that have cases."""
    return [name for name in NAMES if Path(OWN / f"{name}.json").is_file()]
