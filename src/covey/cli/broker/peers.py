"""`covey peer`: a broker's neighbours, while it runs."""

from __future__ import annotations

import json
from urllib.parse import quote

from covey.cli.broker.arguments import FiguresOptions, PeerAddOptions, PeerOptions
from covey.cli.broker.connection import ask
from covey.cli.terminal import aligned


def show(options: FiguresOptions) -> int:
    """List neighbours."""
    found = ask(options, "/v1/peers")
    if options.json:
        print(json.dumps(found))
    elif found:
        rows = [(one["peer"], one["url"] or "-", "yes" if one["connected"] else "no") for one in found]
        print(aligned([("peer", "url", "connected"), *rows]))
    return 0


def add(options: PeerAddOptions) -> int:
    """A neighbour from now on."""
    ask(options, _path(options), {"url": options.url}, method="PUT")
    return 0


def remove(options: PeerOptions) -> int:
    """A neighbour no more."""
    ask(options, _path(options), method="DELETE")
    return 0


def _path(options: PeerOptions) -> str:
    return f"/v1/peers/{quote(options.peer, safe='')}"
