"""Which events came by: ids with fingerprints, by the neighbour that they first came from.

A copy of an event is known by its id and by its content. Where the content differs under one id, somebody on the way
lies, and nobody here can tell who: both count as events, the second under an id with its fingerprint in it. So whoever
forges ids of events to come can't have the true ones taken for copies; what it forged is delivered beside them. Each
neighbour has room of its own, or one that makes up ids could have those of others forgotten.

Events that entered the network here needn't be remembered: what comes back under this broker's name and numbers is a
copy (`Router.arrive`). Only a broker that has lost its disk hears of its former life, whose numbers were all lower.
"""

from __future__ import annotations

from collections import OrderedDict
from collections.abc import Iterable
from hashlib import blake2b

import msgspec

from covey.routing.messages import Envelope
from covey.routing.undo import note

_encode = msgspec.msgpack.Encoder().encode


class SeenEvents:
    """The ids of events that came by, as long as there is room."""

    def __init__(self, room: int) -> None:
        self._room = room
        self._by_source: dict[str, OrderedDict[str, bytes]] = {}

    def restore(self, key: str, envelope: Envelope) -> None:
        """An event that is kept came by."""
        self._note_all("", {key: fingerprint(envelope)})

    def see(self, envelope: Envelope, source: str) -> tuple[Envelope, bool]:
        """An event from a neighbour as it is known here from now on, and whether it is new."""
        if envelope.variant:
            envelope = msgspec.structs.replace(envelope, variant="")
        key = envelope.key
        known = self._find(key)
        found = fingerprint(envelope)
        if known is not None and known != found:
            envelope = msgspec.structs.replace(envelope, variant=f"~{found.hex()}")
            key = envelope.key
            known = self._find(key)
        if known is not None:
            return envelope, False
        self._note_all(source, {key: found})
        return envelope, True

    def forget(self, source: str) -> None:
        """A neighbour is gone for good; what it brought has been seen nevertheless, as long as there is room."""
        gone = self._by_source.get(source)
        if gone is not None:
            note(self._by_source.__setitem__, source, gone)
            del self._by_source[source]
            self._note_all("", gone)

    def _find(self, key: str) -> bytes | None:
        for keys in self._by_source.values():
            known = keys.get(key)
            if known is not None:
                return known
        return None

    def _note_all(self, source: str, found: dict[str, bytes]) -> None:
        keys = self._by_source.get(source)
        if keys is None:
            note(self._by_source.pop, source, None)
            keys = self._by_source[source] = OrderedDict()
        # What is restored twice would be forgotten, and nothing is restored within a turn.
        note(_forget, keys, found)
        keys.update(found)
        while len(keys) > self._room:
            oldest = next(iter(keys))
            note(_put_back, keys, oldest, keys[oldest])
            del keys[oldest]


def _forget(keys: OrderedDict[str, bytes], new: Iterable[str]) -> None:
    for key in new:
        keys.pop(key, None)


def _put_back(keys: OrderedDict[str, bytes], oldest: str, known: bytes) -> None:
    keys[oldest] = known
    keys.move_to_end(oldest, last=False)


def fingerprint(envelope: Envelope) -> bytes:
    """What all copies of an event have in common, wherever they came along."""
    content = (envelope.publisher, envelope.publisher_number, envelope.durable, envelope.attributes)
    return blake2b(_encode(content), digest_size=16).digest()
