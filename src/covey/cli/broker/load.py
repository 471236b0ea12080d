"""`covey load`: what batch jobs made, into a broker that runs."""

from __future__ import annotations

import json
from dataclasses import asdict
from datetime import UTC, datetime
from typing import TYPE_CHECKING, Any

from covey.cli.broker.arguments import FiguresOptions, LoadDropOptions, LoadProfileOptions, LoadSubscriptionsOptions
from covey.cli.broker.connection import context, needs_network, token
from covey.cli.subscriptions import index_of
from covey.cli.terminal import aligned, complain, watched
from covey.file_names import is_index

if TYPE_CHECKING:
    from covey.network.load_client import Loaded


def subscriptions(options: LoadSubscriptionsOptions) -> int:
    """Load subscriptions, and what stands for them."""
    needs_network()
    from covey.network.load_client import load_subscriptions

    assert options.name is not None
    # Whatever is wrong with rows is said of all of them here, before the broker is asked; an index it reads itself.
    given: Any = options.subscriptions
    if not is_index(given):
        index, unused = index_of(options, shown=watched())
        given = index.rows()
        if unused.count:
            complain(f"left out {unused}")
    found = load_subscriptions(
        options.broker, options.name, options.client or options.name, given,
        compacted=options.compacted, token=token(options), tls=context(options),
    )  # fmt: skip
    print(json.dumps(asdict(found)) if options.json else _line(found))
    return 0


def profile(options: LoadProfileOptions) -> int:
    """Load a profile."""
    needs_network()
    from covey.network.load_client import load_profile

    load_profile(options.broker, options.file, token=token(options), tls=context(options))
    print(f"{options.file} is in use")
    return 0


def show(options: FiguresOptions) -> int:
    """List loads."""
    needs_network()
    from covey.network.load_client import loads

    found = loads(options.broker, token=token(options), tls=context(options))
    if options.json:
        print(json.dumps([asdict(load) for load in found]))
    elif found:
        print(aligned([("load", "client", "version", "since", "subscriptions", "told"), *map(_row, found)]))
    return 0


def drop(options: LoadDropOptions) -> int:
    """End a load."""
    needs_network()
    from covey.network.load_client import drop_load

    assert options.name is not None
    drop_load(options.broker, options.name, token=token(options), tls=context(options))
    return 0


def _line(found: Loaded) -> str:
    return (
        f"{found.name}, version {found.version}: {found.subscriptions:,} subscriptions of {found.client}, "
        f"{found.made:,} new or changed, {found.ended:,} ended; neighbours hear {found.told:,} filters of them"
    )


def _row(found: Loaded) -> tuple[str, ...]:
    since = datetime.fromtimestamp(found.loaded_at, UTC).strftime("%Y-%m-%d %H:%M:%S")
    return found.name, found.client, str(found.version), since, f"{found.subscriptions:,}", f"{found.told:,}"
