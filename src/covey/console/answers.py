"""Answers in JSON: a page of rows, a search, and what is wrong with a question."""

from __future__ import annotations

from collections.abc import Callable, Iterable
from dataclasses import dataclass
from typing import Any, Final, TypeVar

import msgspec
from aiohttp import web

from covey.network.errors import FrameError

ROWS: Final = 50
"""Rows of one answer, unless it is asked for fewer or more."""
MOST_ROWS: Final = 500
MOST_SEARCHED: Final = 10_000
"""Rows that a search or a count looks at; the answer says where there are more."""
LONGEST_SEARCH: Final = 1_000

Row = TypeVar("Row")


@dataclass(frozen=True, slots=True)
class Wanted:
    """Which rows are asked for."""

    offset: int
    limit: int
    search: str
    """Lower case; empty for all."""

    def has(self, *texts: str) -> bool:
        """Whether one of the texts has what is searched."""
        return not self.search or any(self.search in text.lower() for text in texts)


def wanted(request: web.Request) -> Wanted:
    """What `offset`, `limit` and `q` ask for; raises FrameError."""
    search = request.query.get("q", "").strip().lower()
    if len(search) > LONGEST_SEARCH:
        raise FrameError(f"q has {len(search):,} characters; search for {LONGEST_SEARCH:,} at most")
    return Wanted(_number(request, "offset", 0), min(_number(request, "limit", ROWS), MOST_ROWS), search)


def _number(request: web.Request, name: str, otherwise: int) -> int:
    given = request.query.get(name)
    if given is None:
        return otherwise
    if not (given.isascii() and given.isdecimal() and len(given) < 10):
        raise FrameError(f"{name}={given[:40]} is not a number of rows")
    return int(given)


def page(rows: Iterable[Row], asked: Wanted, show: Callable[[Row], Any]) -> dict[str, Any]:
    """The rows asked for, and how many there are."""
    shown: list[Any] = []
    total = 0
    for row in rows:
        if asked.offset <= total < asked.offset + asked.limit:
            shown.append(show(row))
        total += 1
    return {"rows": shown, "total": total, "offset": asked.offset, "limit": asked.limit}


def answer(value: Any) -> web.Response:
    """A value as JSON that nobody keeps."""
    return web.Response(
        body=msgspec.json.encode(value), content_type="application/json", headers={"Cache-Control": "no-store"}
    )


async def body(request: web.Request, kind: type[Row]) -> Row:
    """A request's JSON; raises FrameError."""
    try:
        return msgspec.json.decode(await request.read(), type=kind)
    except (msgspec.DecodeError, RecursionError, ValueError) as error:
        raise FrameError(f"the question can't be read: {error}") from None
