"""Why an event matches a subscription, or why it doesn't: the filter's tree with the truth of each part."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from html import escape
from typing import Any

from covey.filters import And, Constant, Filter, Is, Not, Or, Predicate, Semantics
from covey.filters.kinds import mismatch
from covey.filters.semantics import Defaults, attribute_value, truth
from covey.filters.terms import is_path
from covey.filters.values import Scalar, Value

_MARKS = {True: "✓", False: "✗", None: "?"}


@dataclass(frozen=True, slots=True)
class Step:
    """One part of a filter and its truth: True, False, or None for unknown."""

    depth: int
    text: str
    truth: bool | None
    note: str


@dataclass(frozen=True, slots=True)
class Explanation:
    """The outcome for one event and one subscription, with every part's truth. `str()` is for people."""

    subscription: str | None
    semantics: Semantics
    matched: bool
    reason: str
    steps: tuple[Step, ...]

    def __str__(self) -> str:
        who = f"subscription {self.subscription!r}" if self.subscription is not None else "the filter"
        verdict = "matches" if self.matched else "does not match"
        lines = [f"{who} {verdict}: {self.reason}  (semantics: {self.semantics})"]
        for step in self.steps:
            mark = _MARKS[step.truth]
            note = f"   — {step.note}" if step.note else ""
            lines.append(f"  {'  ' * step.depth}{mark} {step.text}{note}")
        return "\n".join(lines)

    def _repr_html_(self) -> str:
        """For notebooks: met parts in green, others in red, unknown ones in grey."""
        first, *_ = str(self).splitlines()
        colours = {True: "#2a7a2a", False: "#b03030", None: "#777"}
        rows = "".join(
            f"<div style='margin-left:{step.depth}em;color:{colours[step.truth]}'>"
            f"{_MARKS[step.truth]} <code>{escape(step.text)}</code> {escape(step.note)}</div>"
            for step in self.steps
        )
        return f"<div><b>{escape(first)}</b>{rows}</div>"

    def to_dict(self) -> dict[str, Any]:
        """For JSON."""
        return {
            "subscription": self.subscription,
            "semantics": self.semantics,
            "matched": self.matched,
            "reason": self.reason,
            "steps": [
                {"depth": step.depth, "text": step.text, "truth": step.truth, "note": step.note} for step in self.steps
            ],
        }


def explain(
    condition: Filter,
    event: Mapping[str, Any],
    *,
    subscription: str | None = None,
    semantics: Semantics = "sql",
    defaults: Defaults | None = None,
) -> Explanation:
    """Explain a filter on an event under the given semantics."""
    taken: dict[str, Scalar] = {}

    def lookup(name: str) -> Value | None:
        value = attribute_value(event, name)
        if value is None and semantics == "default" and defaults is not None and name in defaults:
            taken[name] = defaults[name]
            return defaults[name]
        return value

    three_valued = semantics == "sql"
    steps = tuple(_steps(condition, lookup, taken, three_valued, 0))
    undefined = sorted(name for name in condition.attributes() if lookup(name) is None)
    if semantics == "strict" and undefined:
        names = ", ".join(undefined)
        return Explanation(subscription, semantics, False, f"the event does not define {names}", steps)
    outcome = truth(condition, lookup, three_valued=three_valued)
    return Explanation(subscription, semantics, outcome is True, _reason(condition, outcome, steps), steps)


def _steps(node: Filter, lookup: Any, taken: Mapping[str, Scalar], three_valued: bool, depth: int) -> Iterator[Step]:
    result = truth(node, lookup, three_valued=three_valued)
    match node:
        case And() | Or() | Is():
            title = {And: "all of", Or: "any of"}.get(type(node))
            if title is None:
                title = f"is {'unknown' if node.truth is None else str(node.truth).lower()}"  # type: ignore[union-attr]
            yield Step(depth, title, result, "")
        case Not(part) if not isinstance(part, Predicate):
            yield Step(depth, "not", result, "")
        case Not(Predicate() as part):
            yield Step(depth, str(node), result, _note(part, lookup, taken))
            return
        case Constant():
            yield Step(depth, str(node), result, "")
        case Predicate():
            yield Step(depth, str(node), result, _note(node, lookup, taken))
    for child in node.children():
        yield from _steps(child, lookup, taken, three_valued, depth + 1)


def _note(predicate: Predicate, lookup: Any, taken: Mapping[str, Scalar]) -> str:
    name, term = predicate.attribute, predicate.term
    value = term.value(lookup)
    if is_path(name):
        if value is None:
            return f"{name} is missing"
        wrong = mismatch(predicate, value)
        return f"{name} is {_shown(value)}" + (" by default" if name in taken else "") + (f": {wrong}" if wrong else "")
    # Of a term people know the attributes; that two of them are compared by a term they needn't.
    values = {name: lookup(name) for name in term.attributes()}
    missing = [f"{name} is missing" for name, one in values.items() if one is None]
    made_of = ", ".join(f"{name} is {_shown(one)}" for name, one in values.items() if one is not None)
    if value is None:
        return ", ".join(missing) or f"{term.sql} has no value: {made_of}"
    if term.sql.startswith("compare("):
        return made_of
    return f"{term.sql} is {_shown(value)}" + (f": {made_of}" if made_of else "")


def _shown(value: Value) -> str:
    shown = repr(list(value)) if isinstance(value, tuple) else repr(value)
    return shown if len(shown) <= 80 else shown[:77] + "…"


def _reason(condition: Filter, outcome: bool | None, steps: tuple[Step, ...]) -> str:
    if outcome is True:
        return "it is true"
    wanted = False if outcome is False else None
    culprits = [step.text for step in steps if step.truth is wanted and (step.depth <= 1) and step.text not in _TITLES]
    if outcome is None:
        return "it is unknown" + (f", because of {culprits[0]}" if culprits else "")
    if isinstance(condition, And) and culprits:
        return f"{culprits[0]} is false"
    return "it is false"


_TITLES = frozenset({"all of", "any of", "not", "is true", "is false", "is unknown"})
