"""Before a load: what is costly and can't change anything.

Parsing a load's filters and comparing its entries with its subscriptions need no broker, so they can run beside one, in
a thread of their own. What comes out, a `Load` or a `LoadProfile`, is a broker's input (`loads.py`).
"""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass

import msgspec

from covey.errors import CoveyError
from covey.filters.algebra import Filter
from covey.history.files import from_bytes
from covey.routing.config import BrokerConfig
from covey.routing.known_filters import KnownFilters
from covey.routing.messages import Load, LoadedSubscription, LoadProfile


class LoadError(CoveyError):
    """A load that can't be used."""


@dataclass(frozen=True, slots=True)
class TableEntry:
    """An entry of a compacted table."""

    id: str
    filter: str
    stands_for: tuple[str, ...]


@dataclass(frozen=True, slots=True)
class LoadView:
    """A load as operators see it."""

    name: str
    client: str
    version: int
    """Counts the loads of this name."""
    loaded_at: float
    made: int
    """Subscriptions that this version brought or changed."""
    ended: int
    """Subscriptions that it ended."""
    subscriptions: int
    told: int
    """What neighbours must know of it, before the broker's own strategy: entries, and subscriptions that none stands
    for."""
    entries: int
    """Entries of the compacted table that stand for subscriptions."""


def prepare(
    config: BrokerConfig,
    name: str,
    client: str,
    subscriptions: Iterable[tuple[str, str]],
    entries: Iterable[TableEntry] = (),
    allowed: str | None = None,
) -> Load:
    """Read a load's filters, and find out which entries stand for which subscriptions. Changes nothing, so it can run
    in a thread of its own. Raises LoadError for what can't be used, and for what asks for more than is `allowed`."""
    known = KnownFilters.under(config)
    within = None if allowed is None else _parsed(known, "what this principal may subscribe to", allowed)
    most = config.limits.loaded_subscriptions
    found: dict[str, LoadedSubscription] = {}
    for number, (id, text) in enumerate(subscriptions):
        if number >= most:
            raise LoadError(f"load {name!r} has more than {most:,} subscriptions; loaded_subscriptions is the limit")
        if not id:
            raise LoadError(f"load {name!r}: subscription {number + 1} has no id")
        if id in found:
            raise LoadError(f"load {name!r}: two subscriptions have the id {id!r}")
        condition = _parsed(known, f"load {name!r}: subscription {id!r}", text)
        if within is not None and not _stands_for(known, within, condition):
            raise LoadError(
                f"load {name!r}: the subscription {id!r} asks for more than is allowed, which is {allowed}; narrow it"
            )
        found[id] = LoadedSubscription(text, condition)
    read: dict[str, tuple[str, Filter]] = {}
    for entry in entries:
        if len(read) >= most:
            raise LoadError(f"load {name!r} has more than {most:,} entries; loaded_subscriptions is the limit")
        if not entry.id or entry.id in read:
            raise LoadError(f"load {name!r}: the compacted table has two entries {entry.id!r}, or one without an id")
        condition = _parsed(known, f"load {name!r}: entry {entry.id!r}", entry.filter)
        read[entry.id] = (entry.filter, condition)
        for id in entry.stands_for:
            asked = found.get(id)
            if asked is not None and not asked.under and _stands_for(known, condition, asked.condition):
                found[id] = msgspec.structs.replace(asked, under=entry.id)
    used = {asked.under for asked in found.values()}
    return Load(0, name, client, found, {id: entry for id, entry in read.items() if id in used}, allowed)


def prepare_profile(config: BrokerConfig, name: str, file: bytes) -> LoadProfile:
    """Read a profile's file. Raises LoadError for one that can't be used."""
    most = config.limits.profile_bytes
    if len(file) > most:
        raise LoadError(f"profile {name!r} has {len(file):,} bytes; profile_bytes is {most:,}")
    try:
        profile = from_bytes(file, name)
    except CoveyError:
        raise
    except Exception as error:
        raise LoadError(f"{name}: not a covey profile: {error}") from None
    if profile.events is None:
        raise LoadError(f"{name}: this profile has seen no events; profile some")
    return LoadProfile(0, name, profile, file)


def _parsed(known: KnownFilters, where: str, text: str) -> Filter:
    try:
        return known.parse(text)
    except CoveyError as error:
        raise LoadError(f"{where}: {str(error).splitlines()[0]}") from None


def _stands_for(known: KnownFilters, entry: Filter, condition: Filter) -> bool:
    return entry == condition or known.covers(entry, condition)
