"""One event as JSON for one segment: what the kernel needs to read it, code it and match it in a single call.

The kernel takes what is usual and leaves the rest to Python (`kernels/json_lines.py` says what); segments with patterns
are left to Python too. Tables of a segment's strings are made when it is first matched in this way.
"""

from __future__ import annotations

import threading
from typing import Any

import numpy as np
from numpy.typing import NDArray

from covey.events.byte_batches import name_tree
from covey.kernels import on_demand
from covey.kernels.opcodes import KINDS, STRING
from covey.matching.coding import CodeSpaces
from covey.matching.encoding import EncodedEvent, Encoder

_segments = on_demand("segments")
_single = on_demand("single")
_json_lines = on_demand("json_lines")


class JsonReader:
    """Reads events for one segment; its threads have room of their own."""

    def __init__(self, names: list[str], spaces: CodeSpaces, encoder: Encoder) -> None:
        self._encoder = encoder
        self._tree = name_tree(tuple(names))
        self._texts = _text_tables(spaces, encoder, len(names))
        self._ordered = spaces.ordered_texts.astype(np.uint8)
        self._local = threading.local()

    def match(self, data: bytes, segment: int, deleted: NDArray[np.uint8]) -> tuple[EncodedEvent, int]:
        """The event's buffers and how many matches are in `out`, or less than 0 where Python must read it. `segment` is
        where its addresses lie."""
        event = self._encoder.buffers()
        if event.deleted is not deleted:
            event.take_deleted(deleted)
        room: _Room | None = getattr(self._local, "room", None)
        if room is None:
            room = self._local.room = _Room(self._tree, self._texts, self._ordered)
        found = _single.match_json(data, segment, event.address, room.address)
        while found < _single.LEFT:
            event.make_room(-found)
            found = _single.match_one(segment, event.address)
        return event, found


class _Room:
    """What one thread needs: where all arrays lie, and those that one event's attributes are noted in."""

    def __init__(self, tree: Any, texts: tuple[NDArray[Any], ...], ordered: NDArray[np.uint8]) -> None:
        count = len(tree.names)
        self._arrays = _single.Reader(
            *tree.arrays, *texts, ordered, np.zeros(1, np.uint8), np.zeros((count, 1), np.uint8),
            np.zeros((count, 1), np.int64), np.zeros((count, 1), np.int32), np.zeros(tree.nodes, np.int64),
            np.zeros(_json_lines.MOST_LEVELS, np.int64),
        )  # fmt: skip
        self._addresses = _segments.addresses(self._arrays)
        self.address = int(self._addresses.ctypes.data)


def _text_tables(spaces: CodeSpaces, encoder: Encoder, attributes: int) -> tuple[NDArray[Any], ...]:
    """For the strings of each attribute its slots; the slots; where texts start, and their bytes."""
    texts = spaces.texts
    offsets, content = texts.buffers()[1], texts.buffers()[2]
    starts = np.zeros(1, np.int64)
    if offsets is not None and len(texts):
        starts = np.frombuffer(offsets, np.int64)[texts.offset : texts.offset + len(texts) + 1]
    data = np.frombuffer(content, np.uint8) if content is not None and content.size else np.zeros(1, np.uint8)
    firsts = np.zeros(attributes + 1, np.int64)
    slots: list[NDArray[np.int32]] = [np.empty(0, np.int32)]
    for attribute in range(attributes):
        first, last = (int(ends[attribute * KINDS + STRING]) for ends in (encoder.firsts, encoder.lasts))
        size = 0 if first == last else 1 << (2 * (last - first)).bit_length()
        table = np.full(size, -1, np.int32)
        if size:
            _single.fill_texts(starts, data, first, last, table)
        slots.append(table)
        firsts[attribute + 1] = firsts[attribute] + size
    return firsts, np.concatenate(slots), starts, data
