"""What there is to know about a set of rules: which never fire, which are the broadest, equal, covered by another,
contradictory, always true. For people who own the rules, as a table, as JSON, or as a page with bars.

Rules are held against each other without any event; with events, they are counted on these too.
"""

from __future__ import annotations

from collections.abc import Hashable, Iterable, Mapping
from dataclasses import dataclass, field
from html import escape
from typing import Any, Final

from covey.errors import OnError
from covey.events.meaning import Meaning
from covey.events.schema import AnySchema
from covey.events.tables import AnyTable, as_batch, without_nan
from covey.filters import Filter, Semantics
from covey.matching import Index
from covey.matching.against import Finding, Seen, findings
from covey.matching.matches import Tally
from covey.matching.progress import Progress, watched
from covey.relations.covering import CoveringTable
from covey.relations.examining import examine

SHOWN: Final = 10
"""Rules of one kind that a table names."""
_KINDS: Final = {
    "contradictory": "no event can meet them",
    "always": "every event meets them",
    "equal": "match the same events as another",
    "covered": "match nothing that another doesn't match too",
    "never_fired": "met by none of the events",
    "cannot_fire": "can't be met by such events",
    "broadest": "met by most events",
}


@dataclass(frozen=True, slots=True)
class RuleReport:
    """The findings; `str()` is a table for people, `to_dict()` is for JSON, `to_html()` a page."""

    rules: int
    events: int | None = None
    """How many the rules were counted on; None without any."""
    contradictory: list[Any] = field(default_factory=list)
    always: list[Any] = field(default_factory=list)
    equal: list[list[Any]] = field(default_factory=list)
    """Groups of rules that match the same events."""
    covered: dict[Any, Any] = field(default_factory=dict)
    """Rules, each with one that matches all that it matches, and more."""
    fired: dict[Any, int] = field(default_factory=dict)
    """How many events met each rule, most first; 0 for those that none did."""
    cannot_fire: list[Finding] = field(default_factory=list)
    undecided: int = 0
    """Rules that were too large to be held against all others."""

    @property
    def never_fired(self) -> list[Any]:
        """Rules that none of the events met."""
        return [id for id, count in self.fired.items() if not count]

    @property
    def broadest(self) -> list[tuple[Any, int]]:
        """The rules that most events met, with how many."""
        return [(id, count) for id, count in self.fired.items() if count][:SHOWN]

    def to_dict(self) -> dict[str, Any]:
        """For JSON."""
        return {
            "rules": self.rules,
            "events": self.events,
            "contradictory": self.contradictory,
            "always": self.always,
            "equal": self.equal,
            "covered": [{"rule": id, "by": by} for id, by in self.covered.items()],
            "fired": [{"rule": id, "events": count} for id, count in self.fired.items()],
            "cannot_fire": [{"rule": one.id, "why": one.why, "message": one.message} for one in self.cannot_fire],
            "undecided": self.undecided,
        }

    def _named(self) -> Mapping[str, list[str]]:
        """The findings of each kind, in words."""
        return {
            "contradictory": list(map(str, self.contradictory)),
            "always": list(map(str, self.always)),
            "equal": [" = ".join(map(str, group)) for group in self.equal],
            "covered": [f"{id} by {by}" for id, by in self.covered.items()],
            "cannot_fire": [f"{one.id}: {one.message}" for one in self.cannot_fire],
            "never_fired": list(map(str, self.never_fired)),
            "broadest": [f"{id}: {count:,}" for id, count in self.broadest],
        }

    def __str__(self) -> str:
        lines = [f"{self.rules:,} rules" + (f" on {self.events:,} events" if self.events is not None else "")]
        for kind, said in self._named().items():
            if said:
                more = f", and {len(said) - SHOWN:,} more" if len(said) > SHOWN else ""
                apart = kind == "cannot_fire"  # whose reasons are long
                shown = "".join(f"\n    {one}" for one in said[:SHOWN]) if apart else f" {', '.join(said[:SHOWN])}"
                lines.append(f"{len(said):>6,} {kind.replace('_', ' ')} ({_KINDS[kind]}):{shown}{more}")
        if self.undecided:
            lines.append(f"{self.undecided:>6,} too large to be held against all others")
        return "\n".join(lines)

    def to_html(self) -> str:
        """A page of its own, with bars."""
        return f"<!doctype html><meta charset='utf-8'><title>covey report</title>{_STYLE}{self._repr_html_()}"

    def _repr_html_(self) -> str:
        parts = [f"<h3>{escape(str(self).splitlines()[0])}</h3>"]
        for kind, said in self._named().items():
            if said and kind != "broadest":
                shown = "".join(f"<li>{escape(one)}</li>" for one in said[:SHOWN])
                more = f"<li>… {len(said) - SHOWN:,} more</li>" if len(said) > SHOWN else ""
                title = f"{len(said):,} {kind.replace('_', ' ')}"
                parts.append(f"<p><b>{title}</b>: {escape(_KINDS[kind])}</p><ul>{shown}{more}</ul>")
        if self.broadest:
            parts.append(f"<p><b>broadest</b>: {_KINDS['broadest']}</p>{bars(self.broadest)}")
        return "".join(parts)


SOON: Final = 1_000
"""Rules that are looked at too soon for a bar to be of use."""
_STYLE: Final = "<style>body{font:15px sans-serif;max-width:60em;margin:2em auto;color:#222}</style>"


def bars(counts: Iterable[tuple[Any, int]]) -> str:
    """Counts as horizontal bars, as HTML."""
    listed = list(counts)
    most = max((count for _, count in listed), default=0) or 1
    rows = "".join(
        f"<tr><td>{escape(str(name))}</td><td style='width:20em'><div style='background:#4a7ebb;height:.8em;"
        f"width:{100 * count / most:.1f}%'></div></td><td style='text-align:right'>{count:,}</td></tr>"
        for name, count in listed
    )
    return f"<table>{rows}</table>"


class Reporter:
    """Rules that are counted on events, batch by batch."""

    def __init__(self, index: Index) -> None:
        self._index = index
        self._seen = Seen(index.tested, index.schema, nan_is_missing=index.nan_is_missing)
        self._tally = Tally()
        self._events: int | None = None

    def count(self, events: AnyTable, progress: Progress = False) -> None:
        """Count more events."""
        batch, missing = as_batch(events)
        if missing and isinstance(batch, list):
            batch = list(map(without_nan, batch))
        found = self._index.match_batch(batch, progress=progress)
        self._tally.add(found)
        self._seen.look(batch)
        self._events = (self._events or 0) + found.events

    def report(self, progress: Progress = False) -> RuleReport:
        """What there is to know; `progress` is told how many rules have been held against the others."""
        index = self._index
        rules: dict[Hashable, Filter] = {id: index.filter(id) for id in index.ids()}
        meaning = Meaning(index.semantics, None, index.schema)
        with watched(progress, len(rules), "rules", SOON) as told:
            odd = examine(rules, meaning, told)
        settled = {*odd.never, *odd.always}
        same = {id: number for number, group in enumerate(odd.equal) for id in group}
        table = CoveringTable(semantics=index.semantics, schema=index.schema)
        table.insert_many((id, condition) for id, condition in rules.items() if id not in settled)
        covered: dict[Any, Any] = {}
        for id in rules:
            above = table.covered_by(id) if id not in settled else None
            while above is not None and same.get(above, above) == same.get(id, id):
                above = table.covered_by(above)
            if above is not None:
                covered[id] = above
        counts = self._tally.fired()
        fired = {} if self._events is None else {id: counts[id] for id in rules}
        quiet = [(id, rules[id]) for id, count in fired.items() if not count and id not in settled]
        return RuleReport(
            len(rules),
            self._events,
            list(odd.never),
            list(odd.always),
            [list(group) for group in odd.equal],
            covered,
            dict(sorted(fired.items(), key=lambda one: -one[1])),
            findings(quiet, self._seen, index.semantics),
            odd.undecided,
        )


def report(
    rules: Any,
    events: AnyTable | None = None,
    *,
    id: str = "id",
    filter: str = "filter",
    dialect: str = "sql",
    semantics: Semantics = "sql",
    schema: AnySchema | None = None,
    on_error: OnError = "raise",
    progress: Progress = None,
) -> RuleReport:
    """What there is to know about `rules`, an index or whatever `Index.add_many` takes; with `events`, whatever
    `Index.match_batch` takes, also which of them fire and how often. `id` and `filter` name columns of the rules,
    `dialect` is what they are written in, `semantics` and `schema` say what they mean, and with `on_error` "skip" bad
    ones are left out; an index has all of that already. `progress` is as in `Index.match_batch`, for the events and
    then for the rules."""
    index = rules
    if not isinstance(index, Index):
        index = Index(semantics=semantics, schema=schema, dialect=dialect)
        index.add_many(rules, id=id, filter=filter, on_error=on_error)
    reporter = Reporter(index)
    if events is not None:
        reporter.count(events, progress)
    return reporter.report(progress)
