"""Rows that can't be read: a broker starts from those that are whole, and sets the others aside.

A row is whole where its value has the shape that its space has, and the event that it refers to is there. What isn't is
moved to the space `damaged`, so that it is said once and can still be looked at. Where a place of an outbox is lost the
rest gets new numbers, and an epoch with the neighbour's next Hello.
"""

from __future__ import annotations

from typing import Any, Final

import msgspec

from covey.history.files import is_whole as is_whole_profile
from covey.routing.client import ClaimRow, ClientRow, QueueRow, RunRow, queue_key
from covey.routing.context import Context
from covey.routing.journal import read
from covey.routing.kept_events import EventRow, KeptRow, WindowRow
from covey.routing.links import LinkRow
from covey.routing.load_parts import LOADING, PARTS, LoadingRow, LoadRow, PartRow
from covey.routing.loaded_entries import SPACE as STANDING
from covey.routing.loaded_entries import LoadedEntryRow
from covey.routing.messages import Entry, Envelope, LinkState
from covey.routing.profiles import kept_profile
from covey.routing.published_ids import SPACE as PUBLISHED
from covey.routing.published_ids import PublishedRow
from covey.routing.streams import OutboxRow

Spaces = dict[str, dict[str, bytes]]
SHAPES: Final[dict[str, Any]] = {
    "event": EventRow,
    "window": WindowRow,
    "queue": QueueRow,
    "run": RunRow,
    "outbox": OutboxRow,
    "link": LinkRow,
    "entry": Entry,
    "topology": LinkState,
    "client": ClientRow,
    "subscription": ClaimRow,
    "advertisement": ClaimRow,
    "load": LoadRow,
    LOADING: LoadingRow,
    PARTS: PartRow,
    STANDING: LoadedEntryRow,
    PUBLISHED: PublishedRow,
}
OWN_SHAPES: Final[dict[str, Any]] = {"numbers": int, "peers": tuple[list[str], list[str]], "urls": dict[str, str]}
"""Of rows of the space `broker`: without its numbers they start behind all that can have been, as where the disk is
lost, and without its peers and their addresses it has those of its configuration."""
DAMAGED: Final = "damaged"
PROFILE: Final = ("profile", "profile_part")
_WRONG: Final = (msgspec.DecodeError, ValueError, TypeError, RecursionError)


def set_aside(spaces: Spaces, context: Context) -> list[str]:
    """Take rows that aren't whole out of `spaces`; gives what they are, as `space/key`."""
    found: list[str] = []
    for space, shape in SHAPES.items():
        for key, value in list(spaces.get(space, {}).items()):
            if not _is_whole(space, key, value, shape, spaces, context):
                found.append(f"{space}/{key}")
                _move(spaces, space, key, context)
    for name in found:
        space, _, key = name.partition("/")
        if space == "client":
            # Numbers that the client has seen must not come again for other events.
            row = ClientRow(int(context.turn.now * 1_000) + 1, 0, context.turn.now)
            spaces[space][key] = msgspec.msgpack.encode(row)
            context.turn.out.put(space, key, row)
        elif space == "load":
            _load_again(spaces, key, context)
    found += _lost_deliveries(spaces, context)
    own = spaces.get("broker", {})
    for key, shape in OWN_SHAPES.items():
        if key in own and not _can_be(own[key], shape):
            found.append(f"broker/{key}")
            _move(spaces, "broker", key, context)
    if not _has_whole_profile(spaces):
        # A part of a profile says nothing: all of it goes, and the one of the configuration counts.
        for space in PROFILE:
            for key in list(spaces.get(space, {})):
                found.append(f"{space}/{key}")
                _move(spaces, space, key, context)
    for peer in {name.split("/")[1] for name in found if name.startswith(("outbox/", "link/"))}:
        _number_anew(spaces, peer, context)
    return found


def _lost_deliveries(spaces: Spaces, context: Context) -> list[str]:
    """Take deliveries without their events out of what others came with; gives what they are."""
    found: list[str] = []
    events, clients, runs = spaces.get("event", {}), spaces.get("client", {}), spaces.get("run", {})
    out = context.turn.out
    for key, value in list(runs.items()):
        row = read(value, RunRow)
        freed = read(clients[row.client], ClientRow).freed if row.client in clients else 0
        lost = [one for one in row.deliveries if one[0] > freed and one[1] not in events]
        if not lost:
            continue
        for number, event, subscriptions in lost:
            found.append(f"queue/{queue_key(row.client, number)}")
            out.put(DAMAGED, found[-1], QueueRow(row.client, number, event, subscriptions))
        del runs[key]
        out.drop("run", key)
        left = [one for one in row.deliveries if one not in lost]
        if left:
            key, row = queue_key(row.client, left[0][0]), RunRow(row.client, left)
            runs[key] = msgspec.msgpack.encode(row)
            out.put("run", key, row)
    return found


def _can_be(value: bytes, shape: Any) -> bool:
    try:
        read(value, shape)
    except _WRONG:
        return False
    return True


def _has_whole_profile(spaces: Spaces) -> bool:
    """Whether there is a profile as it was written, or none."""
    if not any(spaces.get(space) for space in PROFILE):
        return True
    try:
        return is_whole_profile(kept_profile(spaces)[1])
    except (KeyError, *_WRONG):
        return False


def _load_again(spaces: Spaces, name: str, context: Context) -> None:
    """Make a load's row of the subscriptions that it gave, so that it can be replaced and dropped."""
    claims = [read(value, ClaimRow) for value in spaces.get("subscription", {}).values()]
    clients = [claim.client for claim in claims if claim.load == name]
    if clients:
        row = LoadRow(clients[0], 1, context.turn.now, len(clients), 0)
        spaces["load"][name] = msgspec.msgpack.encode(row)
        context.turn.out.put("load", name, row)


def _is_whole(space: str, key: str, value: bytes, shape: Any, spaces: Spaces, context: Context) -> bool:
    try:
        row = read(value, shape)
    except _WRONG:
        return False
    events = spaces.get("event", {})
    match row:
        case Envelope():
            return row.key == key
        case KeptRow():
            return row.envelope.key == key
        case WindowRow():
            return key in events
        case QueueRow():
            return row.event in events
        case RunRow():
            return bool(row.deliveries) and key == queue_key(row.client, row.deliveries[0][0])
        case OutboxRow():
            return row.event in events and len(key.split("/")) == 3
        case ClaimRow() | LoadedEntryRow():
            return context.parse(row.filter) is not None
    return space != "entry" or key.split("/", 2)[1:2] in (["0"], ["1"])


def _move(spaces: Spaces, space: str, key: str, context: Context) -> None:
    value = spaces[space].pop(key)
    out = context.turn.out
    out.drop(space, key)
    out.put(DAMAGED, f"{space}/{key}", value if isinstance(value, bytes) else str(value))


def _number_anew(spaces: Spaces, peer: str, context: Context) -> None:
    """Give what is left of an outbox numbers from 1 on; which epoch they are of is agreed on with the neighbour."""
    out, outbox, links = context.turn.out, spaces.get("outbox", {}), spaces.get("link", {})
    keys = sorted(key for key in outbox if key.partition("/")[0] == peer)
    link = read(links[peer], LinkRow) if peer in links else LinkRow(False, True, context.turn.now, 0, 0, 0, 0)
    items = [outbox.pop(key) for key in keys]
    for key in keys:
        out.drop("outbox", key)
    for number, item in enumerate(items, 1):
        key = f"{peer}/0/{number:012d}"
        outbox[key] = item
        out.put("outbox", key, read(item, OutboxRow))
    link = msgspec.structs.replace(link, out_epoch=0, out_acked=0)
    links[peer] = msgspec.msgpack.encode(link)
    spaces["link"] = links
    out.put("link", peer, link)
