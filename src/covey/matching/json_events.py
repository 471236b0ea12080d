"""One event as JSON for one segment: what the kernel needs to read it, code it and match it in a single call.

The kernel takes what is usual and leaves the rest to Python (`kernels/json_lines.py` says what): also an event with a
text whose lower case is asked for and changes more than ASCII letters, and one that has attributes which terms take
their values from. Segments are left to Python as a whole where patterns are evaluated beforehand, and where a term has
a value for events without its attributes. Tables of a segment's strings are made when it is first matched in this way.
"""

from __future__ import annotations

import threading
from typing import Any

import numpy as np
from numpy.typing import NDArray

from covey.events.byte_batches import name_tree
from covey.events.messagepack_batches import MessagePackMaps
from covey.filters.terms import EVENT_TEXT, is_path, is_presence, term_of
from covey.kernels import on_demand
from covey.matching.coding import CodeSpaces
from covey.matching.encoding import Encoder
from covey.matching.one_event import Call
from covey.matching.text_index import changed_by_lower_case

_segments = on_demand("segments")
_single_json = on_demand("single_json")
_single_maps = on_demand("single_maps")
_json_lines = on_demand("json_lines")
_event_texts = on_demand("event_texts")

_MATCHES = 16
"""Matches of an event on average that there is room for."""
_NO_KEY = "\0"
"""How the names of what is no attribute begin here; no key of JSON does that is read by the kernel."""


def json_reader(names: list[str], spaces: CodeSpaces, encoder: Encoder, segment: int) -> JsonReader | None:
    """How events are read for a segment, whose addresses lie at `segment`; None where Python must read them all."""
    if encoder.patterns.has_dense:
        return None
    inside: dict[str, None] = {}
    for name in names:
        if is_path(name) or name == EVENT_TEXT:
            continue
        term = term_of(name)
        if is_presence(name) or term.value(lambda _: None) is not None:
            return None
        inside.update(dict.fromkeys(term.attributes()))
    return JsonReader(names, list(inside), spaces, encoder, segment)


class JsonReader:
    """Reads events for one segment; its threads have room of their own. Where an attribute is there that is `inside` a
    term, an event is left."""

    def __init__(self, names: list[str], inside: list[str], spaces: CodeSpaces, encoder: Encoder, segment: int) -> None:
        self._encoder, self._segment = encoder, segment
        known = set(names)
        read = [name if is_path(name) else f"{_NO_KEY}{number}" for number, name in enumerate(names)]
        read += [name for name in inside if name not in known]
        self._tree = name_tree(tuple(read))
        self._texts = encoder.text_tables
        ordered = np.zeros(len(read), np.uint8)
        ordered[: len(names)] = spaces.ordered_texts
        slot_of = np.full(len(read), -1, np.int32)
        slot_of[: len(names)] = encoder.slot_of
        within = set(inside)
        self._facts = (
            slot_of, np.array(encoder.patterns.ignores_case, dtype=np.uint8),
            np.array([name in within for name in read], dtype=np.uint8),
            np.flatnonzero([name == EVENT_TEXT for name in names]).astype(np.int64),
        )  # fmt: skip
        self._ordered = ordered
        self._local = threading.local()

    def match(self, data: bytes, deleted: NDArray[np.uint8], ids: list[Any], found: list[Any]) -> int:
        """Add what an event matches to what was found, of the `ids` by ordinal; gives how many they are, or what the
        kernel says instead."""
        call: Call | None = getattr(self._local, "call", None)
        if call is None:
            call = self._new_call()
        if call.event.deleted is not deleted:
            call.event.take_deleted(deleted)
        told = call.kernel(id(data), id(ids), id(found), call.at)
        if told == _single_json.NO_ROOM:
            call.event.make_text_room(4 * len(data))
            told = call.kernel(id(data), id(ids), id(found), call.at)
        return told

    def match_maps(self, maps: MessagePackMaps, deleted: NDArray[np.uint8]) -> tuple[Any, Any] | None:
        """(offsets, ordinals) of MessagePack maps, one after the other, for a segment without patterns; None where
        Python must read one of them, or where they match very much."""
        event, room = self._encoder.buffers(), self._room()
        if event.deleted is not deleted:
            event.take_deleted(deleted)
        data, starts, ends = maps.spans
        offsets = np.empty(len(starts) + 1, np.int64)
        ordinals = np.empty(_MATCHES * len(starts), np.int32)
        done: int = _single_maps.match_maps(
            data, starts, ends, self._segment, event.address, room.address, offsets, ordinals
        )
        return (offsets, ordinals[: int(offsets[-1])]) if done == len(starts) else None

    def _new_call(self) -> Call:
        room = self._room()
        call = self._local.call = Call(_single_json.match_json, self._encoder.buffers(), self._segment, room.address)
        return call

    def _room(self) -> _Room:
        """This thread's."""
        room: _Room | None = getattr(self._local, "room", None)
        if room is None:
            room = self._local.room = _Room(self._tree, self._texts, self._ordered, self._facts)
        return room


class _Room:
    """What one thread needs: where all arrays lie, and those that one event's attributes are noted in."""

    def __init__(
        self, tree: Any, texts: tuple[NDArray[Any], ...], ordered: NDArray[np.uint8], facts: tuple[NDArray[Any], ...]
    ) -> None:
        count = len(tree.names)
        self._arrays = _single_json.Reader(
            *tree.arrays, *texts, ordered, np.zeros(1, np.uint8), np.zeros((count, 1), np.uint8),
            np.zeros((count, 1), np.int64), np.zeros((count, 1), np.int32), np.zeros(tree.nodes, np.int64),
            np.zeros(_json_lines.MOST_LEVELS, np.int64), *facts, np.zeros(_event_texts.MOST_KEYS, np.int64),
            np.zeros(_event_texts.TEXT_LEVELS, np.int64), np.zeros(_event_texts.TEXT_LEVELS, np.uint8),
            changed_by_lower_case(),
        )  # fmt: skip
        self._addresses = _segments.addresses(self._arrays)
        self.address = int(self._addresses.ctypes.data)
