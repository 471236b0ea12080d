"""docs/conformance.md: what came of running cases that others wrote."""

from __future__ import annotations

from importlib.util import find_spec
from typing import Final

from tools.conformance import Outcome, cesql, own, sigma, suites
from tools.docs import ROOT

PAGE: Final = ROOT / "docs" / "conformance.md"
_HEAD: Final = """# Conformance

What covey answers beside what others say it should. *Same* is the answer that the case gives, *refused* is a filter
that covey doesn't read, with the reason, and *different* is another answer, which would be a defect. `make docs` makes
this page from a run (`tools/conformance/`); the suites themselves belong to their projects, under licences of their
own, and are not part of covey.

| suite | cases | same | refused | different |
|---|---:|---:|---:|---:|
"""
_NOTES: Final = """
## How to read it

- **CloudEvents SQL** has an expression give a value and, beside it, errors. As a filter an event passes where the value
  is TRUE and there is no error (section 1.2 of its specification), so a case whose result is `true` beside an error
  must not pass. An expression that must not pass for an error may be refused when it is read. Expressions that give a
  string or an integer are no filters: they are refused where that shows in the text, and never pass where only events
  tell.
- **Sigma** rules are read by pySigma, so what pySigma refuses is refused. The recordings hold what happened around an
  incident as well; a rule has found it where it finds one of its events.
- **JMS**, **AMQP** and **EventBridge** cases are covey's own, written from the standards' text and from what the named
  libraries do, and are in `tests/language/cases`.
"""


def page() -> str:
    """The page; where the suites or pySigma aren't there, as it is."""
    place = suites()
    if place is None or find_spec("sigma") is None or find_spec("sigma.rule") is None:
        return PAGE.read_text(encoding="utf-8")
    found = [*cesql.outcomes(place / "cesql"), *sigma.outcomes(place / "sigma"), *map(own.outcome, own.dialects())]
    return _HEAD + "".join(map(_row, found)) + _reasons(found) + _NOTES


def _row(one: Outcome) -> str:
    return f"| {one.suite} | {one.cases} | {one.same} | {sum(one.refused.values())} | {len(one.different)} |\n"


def _reasons(found: list[Outcome]) -> str:
    lines = [
        f"| {one.suite} | {reason.replace('|', '/')} | {count} |\n"
        for one in found
        for reason, count in sorted(one.refused.items())
    ]
    different = [f"- {one.suite}: `{name}`\n" for one in found for name in one.different]
    refused = ["\n## Why refused\n\n| suite | reason | cases |\n|---|---|---:|\n", *lines] if lines else []
    return "".join(refused + (["\n## Different\n\n", *different] if different else []))
