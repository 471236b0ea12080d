"""The playground: what a filter means, whether it matches an event and why, how it relates to others, and the way an
event would take. Nothing is subscribed or published.

    POST /v1/console/playground    {"filter": "price < 10", "event": "{\\"price\\": 5}", "other": "price < 20"}
    POST /v1/console/route         {"event": "{\\"price\\": 5}"}

A part that can't be read is answered by its problem, in its place: the other parts are answered all the same.
"""

from __future__ import annotations

import time
from collections.abc import Mapping
from datetime import datetime
from typing import Any, Final

import msgspec
from aiohttp import web

from covey.console.answers import answer, body
from covey.console.filter_questions import FilterQuestions, Owners
from covey.errors import CoveyError, EventError, FilterSyntaxError
from covey.events import parse_json
from covey.filters.algebra import Filter
from covey.matching import explain
from covey.network.errors import FrameError
from covey.network.extensions import ServerParts
from covey.network.frames import wrong_shape
from covey.network.limits import NetworkLimits
from covey.relations.relate import Relation, relate
from covey.routing.known_filters import KnownFilters

MOST_RELATED: Final = 100
"""Subscriptions shown that a filter covers, and that cover it."""
DEADLINE_SECONDS: Final = 1.5
"""Until then a filter is compared with subscriptions."""


class Question(msgspec.Struct, frozen=True):
    """What is typed into the playground; an empty text isn't asked about."""

    filter: str = ""
    dialect: str = "sql"
    event: str = ""
    other: str = ""


class Playground:
    """Answers what is typed."""

    def __init__(self, server: ServerParts, questions: FilterQuestions) -> None:
        self._server = server
        self._questions = questions

    async def play(self, request: web.Request) -> web.Response:
        """A filter, an event, another filter."""
        self._server.identity.check_right(request, "monitor")
        question = await body(request, Question)
        listed, left_out = self._questions.filters()
        known, limits = self._questions.known, self._server.engine.limits
        found = await self._questions.ask(_answered, known, question, listed, limits)
        return answer({**found, "left_out": left_out})

    async def route(self, request: web.Request) -> web.Response:
        """The way of an event through the overlay, from here."""
        self._server.identity.check_right(request, "monitor")
        question = await body(request, Question)
        try:
            event = _event(question.event, self._server.engine.limits)
            schema = self._server.config.broker.schema
            event = event if schema is None else schema.decode(event)
        except EventError as error:
            raise FrameError(str(error)) from None
        told, silent = await self._server.surveys.follow(event)
        return answer(
            {"broker": self._server.config.broker.broker, "passages": told, "silent": sorted(silent)},
        )


class UnreadableError(CoveyError):
    """A filter that can't be read; what is wrong with it, and where."""

    def __init__(self, message: str, position: int | None = None) -> None:
        super().__init__(message)
        self.problem = {"message": message, "position": position}


def _answered(
    known: KnownFilters, question: Question, listed: Mapping[str, Owners], limits: NetworkLimits
) -> dict[str, Any]:
    found: dict[str, Any] = {"semantics": known.meaning.semantics}
    event: dict[str, Any] | None = None
    if question.event.strip():
        try:
            event = _event(question.event, limits)
            event = event if known.meaning.schema is None else known.meaning.schema.decode(event)
            found["event"] = {}
        except EventError as error:
            found["event"] = {"problem": {"message": str(error)}}
    if not question.filter.strip():
        return found
    try:
        condition = _filter(known, question.filter, question.dialect)
    except UnreadableError as error:
        found["filter"] = {"problem": error.problem}
        return found
    found["filter"] = _parsed(known, condition)
    if event is not None:
        told = explain(condition, event, semantics=known.meaning.semantics, defaults=known.meaning.defaults)
        found["explanation"] = told.to_dict()
    found["others"] = _related(known, condition, listed)
    if question.other.strip():
        try:
            found["other"] = _relation(known, condition, _filter(known, question.other))
        except UnreadableError as error:
            found["other"] = {"problem": error.problem}
    return found


def _filter(known: KnownFilters, text: str, dialect: str = "sql") -> Filter:
    try:
        return known.parse(text if dialect == "sql" else known.sql(text, dialect))
    except FilterSyntaxError as error:
        raise UnreadableError(error.message, error.position) from None
    except CoveyError as error:
        raise UnreadableError(str(error).partition("\n")[0]) from None


def _event(text: str, limits: NetworkLimits) -> dict[str, Any]:
    event = parse_json(text)
    if event is None:
        raise EventError("the event is empty; write it as a JSON object")
    wrong = wrong_shape(event, limits)
    if wrong is not None:
        raise EventError(wrong)
    return event


def _parsed(known: KnownFilters, condition: Filter) -> dict[str, Any]:
    """A filter as it was understood: its text, its tree, and its shortest form where it is a conjunction."""
    parts = explain(condition, {}, semantics=known.meaning.semantics, defaults=known.meaning.defaults).steps
    _, normal = known.normal(condition)
    return {
        "text": str(condition),
        "normal": str(normal) if normal != condition else None,
        "attributes": sorted(condition.attributes()),
        "parts": [{"depth": part.depth, "text": part.text} for part in parts],
    }


def _related(known: KnownFilters, condition: Filter, listed: Mapping[str, Owners]) -> dict[str, Any]:
    """The broker's filters that this one covers, and those that cover it."""
    deadline = time.monotonic() + DEADLINE_SECONDS
    covers: list[dict[str, Any]] = []
    covered_by: list[dict[str, Any]] = []
    counts = {"covers": 0, "covered_by": 0}
    compared = 0
    for text, owners in listed.items():
        if time.monotonic() > deadline:
            break
        compared += 1
        try:
            other = known.parse(text)
        except CoveyError:
            continue
        for name, rows, holds in (
            ("covers", covers, known.covers(condition, other)),
            ("covered_by", covered_by, known.covers(other, condition)),
        ):
            if holds:
                counts[name] += 1
                if len(rows) < MOST_RELATED:
                    rows.append({"filter": text, "owners": owners.names, "owned": owners.count})
    return {
        "covers": covers,
        "covered_by": covered_by,
        "counts": counts,
        "compared": compared,
        "of": len(listed),
    }


def _relation(known: KnownFilters, condition: Filter, other: Filter) -> dict[str, Any]:
    found = relate(
        condition,
        other,
        semantics=known.meaning.semantics,
        defaults=known.meaning.defaults,
        schema=known.meaning.schema,
    )
    return {"sentence": found.sentence("the filter", "the other"), "text": str(other), **_examples(found)}


def _examples(found: Relation) -> dict[str, Any]:
    events = {"only_filter": found.only_f, "only_other": found.only_g, "both": found.both}
    return {
        "covers": found.covers,
        "covered": found.covered,
        "equivalent": found.equivalent,
        "overlaps": found.overlaps,
        **{name: _plain(event) for name, event in events.items() if event is not None},
    }


def _plain(value: Any) -> Any:
    """A value that JSON has."""
    if isinstance(value, dict):
        return {name: _plain(one) for name, one in value.items()}
    if isinstance(value, tuple | list):
        return [_plain(one) for one in value]
    return value.isoformat() if isinstance(value, datetime) else value
