"""One event as a dict for one segment: what the kernel needs to read it, code it and give ids in a single call.

The kernel takes what is usual (`kernels/single_dict.py` says what) and leaves the rest to Python: all events of a
segment where patterns are evaluated beforehand, and where texts have defaults.
"""

from __future__ import annotations

import threading
from typing import Any

import numpy as np
from numpy.typing import NDArray

from covey.kernels import on_demand
from covey.matching.coding import CodeSpaces
from covey.matching.encoding import Encoder
from covey.matching.one_event import Call, EncodedEvent
from covey.matching.text_index import changed_by_lower_case

_segments = on_demand("segments")
_single_dict = on_demand("single_dict")


def dict_reader(names: list[str], spaces: CodeSpaces, encoder: Encoder, segment: int) -> DictReader | None:
    """How events are read for a segment, whose addresses lie at `segment`; None where Python must read them all."""
    if encoder.patterns.has_dense or encoder.has_default_texts:
        return None
    return DictReader(names, spaces, encoder, segment)


class DictReader:
    """Reads events for one segment; its threads have room of their own."""

    def __init__(self, names: list[str], spaces: CodeSpaces, encoder: Encoder, segment: int) -> None:
        self._encoder, self._segment = encoder, segment
        self._objects = (encoder.number_of_name, float, int, str, bool, type(None))
        self._names = names
        self._arrays = _single_dict.DictReader(
            _ids(names), _ids(self._objects), *encoder.text_tables, np.array(spaces.ordered_texts, dtype=np.uint8),
            np.array(encoder.slot_of, dtype=np.int32), np.array(encoder.patterns.ignores_case, dtype=np.uint8),
            changed_by_lower_case() if encoder.patterns.slots else np.zeros(1, np.uint8),
        )  # fmt: skip
        self._addresses: NDArray[np.int64] = _segments.addresses(self._arrays)
        self._local = threading.local()

    def match(self, event: dict[Any, Any], deleted: NDArray[np.uint8], ids: list[Any], found: list[Any]) -> int:
        """Add what an event matches to what was found, of the `ids` by ordinal; gives how many they are, or what the
        kernel says instead."""
        call: Call | None = getattr(self._local, "call", None)
        if call is None:
            call = self._new_call()
        if call.event.deleted is not deleted:
            call.event.take_deleted(deleted)
        return call.kernel(id(event), id(ids), id(found), call.at)

    def _new_call(self) -> Call:
        event: EncodedEvent = self._encoder.buffers()
        address = int(self._addresses.ctypes.data)
        call = self._local.call = Call(_single_dict.match_dict, event, self._segment, address)
        return call


def _ids(objects: Any) -> NDArray[np.int64]:
    return np.array([id(one) for one in objects], dtype=np.int64)
