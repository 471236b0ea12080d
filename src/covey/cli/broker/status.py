"""`covey status`, `covey routes` and `covey trace`: what operators ask a broker."""

from __future__ import annotations

import json
import sys
from collections.abc import Iterator
from typing import Any

from covey.cli.broker.arguments import ConnectionOptions, FiguresOptions, TraceOptions
from covey.cli.broker.connection import ask
from covey.errors import CoveyError, EventError


def status(options: FiguresOptions) -> int:
    """A broker in figures."""
    found = ask(options, "/v1/status")
    _print(found, options.json, _status_lines)
    return 0


def routes(options: FiguresOptions) -> int:
    """A broker's tables."""
    found = ask(options, "/v1/routes")
    _print(found, options.json, _routes_lines)
    return 0


def trace(options: TraceOptions) -> int:
    """Where an event would go, over all brokers whose address is known on the way."""
    text = sys.stdin.read() if options.event == "-" else options.event
    try:
        event = json.loads(text)
    except (json.JSONDecodeError, RecursionError) as error:
        raise EventError(f"the event isn't JSON: {error}") from None
    if not isinstance(event, dict):
        raise EventError("the event isn't a JSON object of attributes")
    found = ask(options, "/v1/trace", event)
    _follow(options, event, found, {found["broker"]})
    _print(found, options.json, _trace_lines)
    return 0


def _follow(options: ConnectionOptions, event: dict[str, Any], found: dict[str, Any], seen: set[str]) -> None:
    for link in found["links"]:
        if link["goes"] and link["peer"] not in seen:
            seen.add(link["peer"])
            if not link["url"]:
                link["problem"] = "its address isn't known here; ask it by --broker"
                continue
            try:
                link["next"] = ask(options, "/v1/trace", event, url=link["url"], query={"from": found["broker"]})
            except CoveyError as error:
                link["problem"] = str(error)
            else:
                _follow(options, event, link["next"], seen)


def _print(found: Any, as_json: bool, lines: Any) -> None:
    print(json.dumps(found, ensure_ascii=False) if as_json else "\n".join(lines(found)))


def _measured(pruning: dict[str, Any]) -> str:
    """Why a broker prunes as it does, where it chose that itself."""
    if not pruning["auto"]:
        return ""
    used = ", ".join(f"{name} {pruning[name]:.0%}" for name in ("memory", "bandwidth", "processing"))
    return f" ({'settled' if pruning['settled'] else 'trying'}; in use: {used})"


def _status_lines(found: dict[str, Any]) -> Iterator[str]:
    yield f"broker {found['broker']} ({found['strategy']})"
    yield f"  clients {found['clients']:,}, connected {found['connected']:,}"
    yield f"  subscriptions {found['subscriptions']:,}, advertisements {found['advertisements']:,}"
    yield f"  routing table {found['entries']:,} entries; {found['queued']:,} deliveries wait"
    yield f"  published here {found['published']:,}; messages sent {found['sent']:,}"
    if (pruning := found.get("pruning")) is not None:
        yield f"  pruned by {pruning['dimension']}, {pruning['share']:.0%} of all prunings{_measured(pruning)}"
    for link in found["links"]:
        state = "failed" if link["failed"] else "open" if link["open"] else "closed"
        tree = "in the tree" if link["in_tree"] else "not in the tree"
        yield (
            f"  link to {link['peer']}: {state}, {tree}; told {link['told']:,}, heard {link['heard']:,}, "
            f"{link['outbox']:,} wait"
        )


def _routes_lines(found: dict[str, Any]) -> Iterator[str]:
    yield f"broker {found['broker']}"
    for client in found["clients"]:
        state = "connected" if client["connected"] else f"away, {client['queued']:,} deliveries wait"
        yield f"  client {client['client']} ({state})"
        for kind in ("subscriptions", "advertisements"):
            for claim in client[kind]:
                yield f"    {kind[:-1]} {claim['id']}: {claim['filter']}{' (durable)' if claim['durable'] else ''}"
    for link in found["links"]:
        yield f"  link to {link['peer']}{'' if link['in_tree'] else ' (not in the tree)'}"
        for direction in ("heard", "told"):
            for kind in ("subscriptions", "advertisements"):
                for text in link[direction][kind]:
                    yield f"    {direction} {kind[:-1]}: {text}"


def _trace_lines(found: dict[str, Any], indent: str = "") -> Iterator[str]:
    yield f"{indent}broker {found['broker']}"
    for client in found["clients"]:
        for id, text in client["subscriptions"].items():
            yield f"{indent}  → client {client['client']}: subscription {id}, {text}"
    for link in found["links"]:
        yield f"{indent}  {'→' if link['goes'] else '×'} broker {link['peer']}: {link['why']}"
        for text in link["entries"].values():
            yield f"{indent}      {text}"
        if "next" in link:
            yield from _trace_lines(link["next"], indent + "    ")
        if "problem" in link:
            yield f"{indent}      {link['problem']}"
