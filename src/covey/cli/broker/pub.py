"""`covey pub`: publish events from the command line or from standard input."""

from __future__ import annotations

import json
import sys
import threading
from collections.abc import Iterator
from queue import Empty, Queue
from typing import Any, Final

from covey.cli.broker.arguments import PubOptions
from covey.cli.broker.connection import client
from covey.cli.terminal import complain
from covey.errors import CoveyError, EventError

BATCH: Final = 500
"""Lines published at a time where they come faster than they can be published one by one."""


def run(options: PubOptions) -> int:
    """Publish events."""
    count = 0
    try:
        with client(options) as publisher:
            for batch in _batches(options.listed):
                publisher.publish(batch, durable=options.durable)
                count += len(batch)
    except CoveyError as error:
        before = f"the first {count:,} events went out before" if count else "no event is known to have gone out"
        raise CoveyError(f"{error}; {before}") from None
    if options.verbose:
        complain(f"{count:,} published")
    return 0


def _batches(listed: list[str]) -> Iterator[list[dict[str, Any]]]:
    if listed and listed != ["-"]:
        yield [_event(text, f"event {at}") for at, text in enumerate(listed, 1)]
        return
    lines: Queue[tuple[int, str] | None] = Queue(2 * BATCH)

    def read() -> None:
        for number, line in enumerate(sys.stdin, 1):
            lines.put((number, line))
        lines.put(None)

    # Reading blocks until a line is there, and what was read before it mustn't wait for that.
    threading.Thread(target=read, daemon=True).start()
    more = True
    while more:
        batch, more = _batch(lines)
        events = [_event(line, f"line {number}") for number, line in batch if line.strip()]
        if events:
            yield events


def _batch(lines: Queue[tuple[int, str] | None]) -> tuple[list[tuple[int, str]], bool]:
    """What is there, at least one line; and whether more may come."""
    found: list[tuple[int, str]] = []
    one = lines.get()
    while one is not None:
        found.append(one)
        if len(found) >= BATCH:
            return found, True
        try:
            one = lines.get_nowait()
        except Empty:
            return found, True
    return found, False


def _event(text: str, where: str) -> dict[str, Any]:
    try:
        event = json.loads(text)
    except (json.JSONDecodeError, RecursionError) as error:
        raise EventError(f"{where} isn't JSON: {error}") from None
    if not isinstance(event, dict):
        raise EventError(f"{where} isn't a JSON object of attributes")
    return event
