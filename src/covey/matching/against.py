"""Subscriptions that can't fire on the events that there are: they name what no event has, or ask for another kind.

What was seen of the events is, for each thing that subscriptions test, the kinds of its values. A test that no such
value meets is unknown (false, in the two-valued semantics) of every event; a subscription is reported where it can't be
true with all such tests so. That is said of the events that were looked at, all of them, and of no others.
"""

from __future__ import annotations

from collections.abc import Collection, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from difflib import get_close_matches
from itertools import islice
from typing import Any, Final, Literal, TypeAlias

import pyarrow as pa

from covey.events import Schema
from covey.events.byte_batches import ByteBatch
from covey.events.columns import Source, columns
from covey.events.records import dots, flatten
from covey.filters import TRUE, And, Constant, Filter, Is, Not, Or, Predicate, Semantics
from covey.filters.algebra import leaves
from covey.filters.kinds import HELD, asked_kind, met_by, remedy
from covey.filters.predicates import Compare, IsNull
from covey.filters.terms import is_path, term_of
from covey.filters.values import Kind

SAMPLE: Final = 1_000
"""Events whose attributes' names are learned, to say what a misspelled one may have meant."""
ANY: Final = "any"
"""The type of a column that may hold values of any kind."""
Why: TypeAlias = Literal["attribute", "kind", "contradiction"]
Truths: TypeAlias = "frozenset[bool | None]"

_KINDS: Final = {
    "int": Kind.NUMBER, "double": Kind.NUMBER, "bigint": Kind.NUMBER, "string": Kind.STRING, "boolean": Kind.BOOLEAN,
    "timestamp": Kind.TIMESTAMP, "list": Kind.LIST,
}  # fmt: skip
_ANY: Final[Truths] = frozenset((True, False, None))


@dataclass(frozen=True, slots=True)
class Finding:
    """A subscription that can't fire on the events that were looked at."""

    id: Any
    why: Why
    message: str
    meant: str | None = None
    """The attribute that was probably meant, where one has nearly the same name."""

    def __str__(self) -> str:
        return f"subscription {self.id!r} can't fire: {self.message}"


class Seen:
    """What events have of what subscriptions test."""

    def __init__(self, tested: Iterable[str], schema: Schema | None = None, *, nan_is_missing: bool = False) -> None:
        self.events = 0
        self.names: set[str] = set()
        """Attributes of the first events."""
        self.kinds: dict[str, set[Kind]] = {name: set() for name in tested}
        self._open = list(self.kinds)
        self._schema = schema
        self._nan_is_missing = nan_is_missing

    @classmethod
    def of_types(cls, types: Mapping[str, str], tested: Sequence[str], *, mixed: bool = False) -> Seen:
        """What events of a table can have, by the types of its columns, `ANY` among them; of terms over these nothing
        is known. With `mixed` a column of text may also stand for values of several kinds, as Spark infers it from
        JSON."""
        seen = cls(tested)
        seen.names = set(types)
        tests = [term_of(name) for name in tested]
        for name in {name for term in tests for name in (term.name, *term.attributes()) if is_path(name)}:
            kind = types.get(name)
            seen.kinds[name] = set() if kind is None else {_KINDS[kind.partition("<")[0]]} if kind != ANY else set(Kind)
            if mixed and any(types.get(name[:end]) == "string" for end in (*dots(name), len(name))):
                seen.kinds[name] = set(Kind)
        for term in tests:
            if not is_path(term.name) and all(seen.kinds.get(part) for part in term.attributes()):
                seen.kinds[term.name] = set(Kind)
        return seen

    def look(self, batch: Source) -> None:
        """Look at more events."""
        if not self._open:
            return
        found = columns(batch, self._open, self._schema, nan_is_missing=self._nan_is_missing)
        for name, pieces in found.pieces.items():  # of terms also the attributes in them
            self.kinds.setdefault(name, set()).update(_KINDS[piece.type] for piece in pieces)
        if self.events < SAMPLE:
            self.names.update(_names(batch))
        self.events += found.length

    def narrow(self, conditions: Iterable[Filter]) -> None:
        """From now on look only at what still keeps one of these subscriptions from firing."""
        wrong = {
            leaf.attribute
            for condition in conditions
            for leaf in leaves(condition)
            if isinstance(leaf, Predicate) and self._wrong(leaf) is not None
        }
        self._open = [name for name in self._open if name in wrong]

    def cannot_fire(
        self, id: Any, condition: Filter, semantics: Semantics, *, contradictions: bool = True
    ) -> Finding | None:
        """Why a subscription can't fire on these events; None where it may. Looking for contradictions takes longest,
        and isn't needed where they are known."""
        if True not in self._truths(condition, None if semantics == "sql" else False):
            tests = [leaf for leaf in leaves(condition) if isinstance(leaf, Predicate)]
            why, message = next(filter(None, map(self._wrong, tests)), ("contradiction", "it contradicts itself"))
            return Finding(id, why, message, next(filter(None, map(self._meant, tests)), None))
        if contradictions and not condition.overlaps(TRUE, semantics=semantics):
            return Finding(id, "contradiction", "it contradicts itself")
        return None

    def _wrong(self, test: Predicate) -> tuple[Why, str] | None:
        name, wanted = test.attribute, met_by(test)
        held = frozenset(self.kinds.get(name, ()))
        if isinstance(test, IsNull) or (isinstance(test, Compare) and test.operator == "<=>"):
            return None  # which are true or false of what is missing
        if self._schema is not None and name in self._schema.defaults:
            return None
        if not held:
            return "attribute", self._lacking(test)
        if wanted and not wanted & held:
            asked, shown = HELD[asked_kind(wanted)], test.term.sql
            return "kind", f"{shown} holds {_listed(held)}, and {test} is of {asked}; {remedy(test, held, wanted)}"
        return None

    def _lacking(self, test: Predicate) -> str:
        """Why there is never a value to test, in words."""
        name = next((name for name in test.term.attributes() if not self.kinds.get(name)), None)
        if name is None:
            held = (f"{name} holds {_listed(self.kinds.get(name, ()))}" for name in test.term.attributes())
            return f"{test.term.sql} never has a value; {', '.join(held)}"
        meant = self._meant(test)
        if meant:
            return f"no event has {name}; did you mean {meant}?"
        # A comparison of two attributes, of which one is none, was meant as one with a text.
        bare = not is_path(test.attribute) and "." not in name
        return f"no event has {name}" + (f"; a text is written in quotes: '{name}'" if bare else "")

    def _meant(self, test: Predicate) -> str | None:
        for name in test.term.attributes():
            if not self.kinds.get(name):
                return next(iter(get_close_matches(name, sorted(self.names), 1)), None)
        return None

    def _truths(self, node: Filter, missing: bool | None) -> Truths:
        """The truths that a filter may have of these events."""
        match node:
            case Constant(value):
                return frozenset((value,))
            case Not(part):
                return frozenset(None if one is None else not one for one in self._truths(part, missing))
            case And() | Or():
                parts = [self._truths(part, missing) for part in node.children()]
                decisive = isinstance(node, Or)
                found: set[bool | None] = {decisive} if any(decisive in part for part in parts) else set()
                if all((not decisive) in part for part in parts):
                    found.add(not decisive)
                if any(None in part for part in parts):
                    found.add(None)
                return frozenset(found)
            case Is():
                return frozenset((True, False))
            case IsNull():
                return frozenset((True,)) if not self.kinds.get(node.attribute, ()) else frozenset((True, False))
            case Predicate():
                return frozenset((missing,)) if self._wrong(node) is not None else _ANY
        return _ANY


def _listed(kinds: Collection[Kind]) -> str:
    return " and ".join(HELD[kind] for kind in sorted(kinds, key=lambda kind: kind.value))


def _names(batch: Source) -> Iterator[str]:
    if isinstance(batch, (pa.Table, pa.RecordBatch)):
        yield from batch.schema.names
        return
    events = batch.whole_events() if isinstance(batch, ByteBatch) else batch
    for event in islice(events, SAMPLE):
        yield from flatten(event)[0]


def findings(
    rows: Sequence[tuple[Any, Filter]], seen: Seen, semantics: Semantics, *, contradictions: bool = True
) -> list[Finding]:
    """The subscriptions among these that can't fire."""
    found = (seen.cannot_fire(id, condition, semantics, contradictions=contradictions) for id, condition in rows)
    return [one for one in found if one is not None]
