"""Detection rules of SigmaHQ, and events that they must find."""

from __future__ import annotations

import json
from pathlib import Path

import covey
from covey.errors import FilterError
from tools.conformance import Outcome


def outcomes(directory: Path) -> list[Outcome]:
    """Of the rules, whether they load; and of those with events, whether they find them.

    A recording holds what happened around the incident too, so a rule has found it where it finds one of its events.
    """
    loaded = Outcome("SigmaHQ, rules that load", "rules")
    found = Outcome("SigmaHQ, rules that find their recorded events", "rules")
    rules: dict[str, covey.Filter] = {}
    for path in sorted((directory / "rules").glob("*.yml")):
        try:
            rules[path.name] = covey.parse(path.read_text(encoding="utf-8"), dialect="sigma")
            loaded.same += 1
        except FilterError as error:
            loaded.refuse(str(error).splitlines()[0])
    answers: dict[str, bool] = {}
    for line in (directory / "events.jsonl").read_text(encoding="utf-8").splitlines():
        given = json.loads(line)
        name = given["rule"]
        if name in rules:
            answers[name] = answers.get(name, False) or rules[name].matches(given["event"])
    for name, answer in answers.items():
        if answer:
            found.same += 1
        else:
            found.different.append(name)
    return [loaded, found]
