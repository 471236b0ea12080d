"""A few events in MessagePack against a segment, one after the other in one call: attributes are found as `messagepack`
finds them, coded and matched as `single_json` does it for JSON.
"""

from __future__ import annotations

import numpy as np

from covey.kernels.jit import kernel
from covey.kernels.json_lines import EVENT, MOST_LEVELS
from covey.kernels.messagepack import SKIPPED_LEVELS, read_message
from covey.kernels.segments import addresses_at, event_at, segment_at
from covey.kernels.single import EVENT_FIELDS, SEGMENT_FIELDS, match_event, put_back
from covey.kernels.single_json import READER_FIELDS, begin, code_found, reader_at
from covey.kernels.types import FrozenBytes, Int32s, Int64, Int64s


@kernel
def match_maps(
    data: FrozenBytes, starts: Int64s, ends: Int64s, segment_address: Int64, event_address: Int64,
    reader_address: Int64, offsets: Int64s, ordinals: Int32s,
):  # fmt: skip
    """All subscriptions that events match, ascending and distinct, of a segment without patterns: event i has
    ordinals[offsets[i]:offsets[i + 1]]. Gives how many were matched: fewer than there are where the next is one that
    Python must read, or where there is no room for what it matches."""
    segment = segment_at(addresses_at(segment_address, SEGMENT_FIELDS))
    event = event_at(addresses_at(event_address, EVENT_FIELDS))
    reader = reader_at(addresses_at(reader_address, READER_FIELDS))
    nodes, due = np.zeros(MOST_LEVELS, np.int64), np.zeros(MOST_LEVELS, np.int64)
    left = np.zeros(SKIPPED_LEVELS + 1, np.int64)
    used = np.int64(0)
    offsets[0] = 0
    for message in range(len(starts)):
        names, found = begin(reader)
        what = read_message(data, starts[message], ends[message], 0, names, found, reader.seen, nodes, due, left)
        if what != EVENT or code_found(data, event, segment, reader) < 0:
            put_back(event, False)
            return message
        count = match_event(event, segment, False)
        if count < 0 or used + count > len(ordinals):
            put_back(event, False)
            return message
        for place in range(count):
            ordinals[used + place] = event.out[place]
        used += count
        offsets[message + 1] = used
    return len(starts)
