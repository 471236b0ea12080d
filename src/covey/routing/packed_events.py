"""Events as bytes: publications that are matched and delivered as they came, without a Python object for each.

A frame's publications are read by a kernel (`kernels/publications.py`) into columns of numbers that say where each
event lies. What isn't plain is read as ever, and so is what comes in small frames, for which arrays cost more than
objects. An event becomes a dict where somebody asks for one: a permission, an entry that waits for the index, whatever
goes over a link or into a queue. A dict is made once, and holds nothing of the frame: bytes are held no longer than
until they are taken up.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass
from itertools import pairwise
from typing import TYPE_CHECKING, Any, Final, overload

import msgspec

from covey.kernels import on_demand
from covey.routing.messages import Deliver, Publication
from covey.routing.plain_events import EVENT_BYTES
from covey.routing.ranges import LARGEST

if TYPE_CHECKING:
    import numpy as np
    from numpy.typing import NDArray

_kernels = on_demand("publications")
_encode = msgspec.msgpack.Encoder().encode
_decode_event: Any = msgspec.msgpack.Decoder(dict[str, Any]).decode
_decode_delivery = msgspec.msgpack.Decoder(Deliver).decode

RESERVED: Final = "covey"
"""As `meta_events` has it, which knows more than clients of brokers should wait for."""
PACKED_FROM: Final = 32
"""Deliveries that are packed together: for fewer objects cost less than arrays do."""
LEAST_PUBLICATION: Final = 14
"""Bytes of a publication at least."""
_NAME: Final = _encode(Publication.__name__)
_RESERVED: Final = RESERVED.encode()
_BEGINS: Final = b"\x9b" + _encode(Deliver.__name__) + b"\0"


class _Block:
    """Where the events of some bytes lie, and what is said of them. Those that were asked for are dicts."""

    __slots__ = ("data", "durable", "ends", "is_plain", "made", "numbers", "starts")

    def __init__(
        self, data: bytes, starts: NDArray[np.int64], ends: NDArray[np.int64], durable: NDArray[np.uint8],
        numbers: NDArray[np.int64],
    ) -> None:  # fmt: skip
        self.data, self.starts, self.ends, self.durable, self.numbers = data, starts, ends, durable, numbers
        self.is_plain = not durable.any()
        """Whether none is durable, as nearly always."""
        self.made: dict[int, dict[str, Any]] = {}

    def event(self, at: int) -> dict[str, Any]:
        found = self.made.get(at)
        if found is None:
            found = self.made[at] = _decode_event(self.data[int(self.starts[at]) : int(self.ends[at])])
        return found


class PackedEvents(Sequence[dict[str, Any]]):
    """What events in a row say."""

    __slots__ = ("block", "first", "last")

    def __init__(self, block: _Block, first: int, last: int) -> None:
        self.block, self.first, self.last = block, first, last

    def __len__(self) -> int:
        return self.last - self.first

    @overload
    def __getitem__(self, at: int) -> dict[str, Any]: ...
    @overload
    def __getitem__(self, at: slice) -> PackedEvents: ...
    def __getitem__(self, at: int | slice) -> dict[str, Any] | PackedEvents:
        if isinstance(at, slice):
            first, last, _ = at.indices(len(self))
            return PackedEvents(self.block, self.first + first, self.first + max(first, last))
        if not -len(self) <= at < len(self):
            raise IndexError(at)
        return self.block.event((self.first if at >= 0 else self.last) + at)

    def __iter__(self) -> Iterator[dict[str, Any]]:
        return map(self.block.event, range(self.first, self.last))

    def __eq__(self, other: object) -> bool:
        return isinstance(other, Sequence) and list(self) == list(other)

    __hash__ = None  # type: ignore[assignment]

    def __repr__(self) -> str:
        return repr(list(self))

    @property
    def data(self) -> bytes:
        """Where they lie, and others."""
        return self.block.data

    @property
    def bounds(self) -> tuple[NDArray[np.int64], NDArray[np.int64]]:
        """Where each begins and ends."""
        return self.block.starts[self.first : self.last], self.block.ends[self.first : self.last]

    @property
    def durable(self) -> list[bool]:
        """Which of them are."""
        found: list[bool] = self.block.durable[self.first : self.last].astype(bool).tolist()
        return found

    @property
    def numbers(self) -> list[int]:
        """As their publishers count them."""
        found: list[int] = self.block.numbers[self.first : self.last].tolist()
        return found

    def sizes(self, places: Sequence[int]) -> list[int]:
        """What some of them count where limits are in bytes."""
        starts, ends = self.bounds
        found: list[int] = (ends - starts + EVENT_BYTES)[places].tolist()
        return found

    def size(self, places: NDArray[np.int64]) -> int:
        """What some of them count together."""
        starts, ends = self.bounds
        return int((ends[places] - starts[places]).sum()) + EVENT_BYTES * len(places)

    def goes_on(self, other: PackedEvents) -> bool:
        """Whether others lie right behind these."""
        return self.block is other.block and self.last == other.first

    def with_next(self, other: PackedEvents) -> PackedEvents:
        """These, and others that lie right behind them."""
        return PackedEvents(self.block, self.first, other.last)


class PackedPublications(Sequence[Publication]):
    """Events as publishers gave them, none with an id."""

    __slots__ = ("events",)

    def __init__(self, events: PackedEvents) -> None:
        self.events = events

    def __len__(self) -> int:
        return len(self.events)

    @overload
    def __getitem__(self, at: int) -> Publication: ...
    @overload
    def __getitem__(self, at: slice) -> PackedPublications: ...
    def __getitem__(self, at: int | slice) -> Publication | PackedPublications:
        if isinstance(at, slice):
            return PackedPublications(self.events[at])
        block, place = self.events.block, (self.events.first if at >= 0 else self.events.last) + at
        return Publication(self.events[at], bool(block.durable[place]), int(block.numbers[place]))

    def __iter__(self) -> Iterator[Publication]:
        return map(self.__getitem__, range(len(self)))

    def __eq__(self, other: object) -> bool:
        return isinstance(other, Sequence) and list(self) == list(other)

    __hash__ = None  # type: ignore[assignment]

    def __repr__(self) -> str:
        return repr(list(self))

    def joined(self, others: Sequence[PackedPublications]) -> PackedEvents:
        """What these events say and what others say, as one row."""
        return _joined([self.events, *(other.events for other in others)])

    @property
    def is_plain(self) -> bool:
        """Whether none of them is durable."""
        events = self.events
        return events.block.is_plain or not events.block.durable[events.first : events.last].any()

    @property
    def begin_durable(self) -> bool:
        """Whether the first of them is durable."""
        events = self.events
        return not events.block.is_plain and events.last > events.first and bool(events.block.durable[events.first])


def read_publications(lists: Sequence[bytes | msgspec.Raw]) -> list[PackedPublications] | None:
    """Lists of publications, each in bytes of its own; None where some event isn't plain, or isn't one at all."""
    import numpy as np  # which clients of brokers shall not wait for

    data = b"".join(lists)
    bounds = np.cumsum([0, *(len(memoryview(one)) for one in lists)], dtype=np.int64)
    room = len(data) // LEAST_PUBLICATION + 1
    firsts = np.empty(len(bounds), np.int64)
    starts, ends, numbers = np.empty((3, room), np.int64)
    durable = np.empty(room, np.uint8)
    found: int = _kernels.read_publications(
        np.frombuffer(data, np.uint8),
        bounds,
        np.frombuffer(_NAME, np.uint8),
        np.frombuffer(_RESERVED, np.uint8),
        LARGEST,
        firsts,
        starts,
        ends,
        durable,
        numbers,
    )
    if found < 0:
        return None
    block = _Block(data, starts[:found], ends[:found], durable[:found], numbers[:found])
    at = firsts.tolist()
    return [PackedPublications(PackedEvents(block, first, last)) for first, last in pairwise(at)]


def _joined(parts: Sequence[PackedEvents]) -> PackedEvents:
    """Events in rows, as one row."""
    import numpy as np  # which clients of brokers shall not wait for

    rows = [parts[0]]
    for part in parts[1:]:
        if rows[-1].goes_on(part):
            rows[-1] = rows[-1].with_next(part)
        else:
            rows.append(part)
    if len(rows) == 1:
        return rows[0]
    shifts = np.cumsum([0, *(len(row.data) for row in rows)])[:-1]
    within = [slice(row.first, row.last) for row in rows]
    block = _Block(
        b"".join([row.data for row in rows]),
        np.concatenate([row.block.starts[some] + shift for row, some, shift in zip(rows, within, shifts, strict=True)]),
        np.concatenate([row.block.ends[some] + shift for row, some, shift in zip(rows, within, shifts, strict=True)]),
        np.concatenate([row.block.durable[some] for row, some in zip(rows, within, strict=True)]),
        np.concatenate([row.block.numbers[some] for row, some in zip(rows, within, strict=True)]),
    )
    return PackedEvents(block, 0, len(block.starts))


class PackedDeliveries(Sequence[Deliver]):
    """Deliveries without a number, as a client gets them, one after the other in MessagePack."""

    __slots__ = ("bytes", "data", "ends")

    def __init__(self, data: bytes, ends: NDArray[np.int64], size: int) -> None:
        self.data = data
        self.ends = ends
        """Where each of them does."""
        self.bytes = size
        """What all of them take of the credit."""

    def __len__(self) -> int:
        return len(self.ends)

    @overload
    def __getitem__(self, at: int) -> Deliver: ...
    @overload
    def __getitem__(self, at: slice) -> list[Deliver]: ...
    def __getitem__(self, at: int | slice) -> Deliver | list[Deliver]:
        return list(self)[at]

    def __iter__(self) -> Iterator[Deliver]:
        first = 0
        for end in self.ends.tolist():
            yield _decode_delivery(self.data[first:end])
            first = end

    def __eq__(self, other: object) -> bool:
        return isinstance(other, Sequence) and list(self) == list(other)

    __hash__ = None  # type: ignore[assignment]

    def __repr__(self) -> str:
        return repr(list(self))

    def frames(self, most_messages: int, most_bytes: int) -> Iterator[bytes]:
        """All of them, in frames with so many messages and bytes at most, but that one delivery may be larger."""
        first = begin = 0
        while first < len(self.ends):
            last = min(first + most_messages, len(self.ends))
            last = min(last, int(self.ends.searchsorted(begin + most_bytes - 3, side="right")))
            last = max(last, first + 1)
            end = int(self.ends[last - 1])
            yield b"\xdc" + (last - first).to_bytes(2, "big") + self.data[begin:end]
            first, begin = last, end


def one_by_one(messages: Iterable[Any]) -> Iterator[Any]:
    """Messages for a client, without any that are packed together."""
    for message in messages:
        if isinstance(message, PackedDeliveries):
            yield from message
        else:
            yield message


@dataclass(frozen=True, slots=True)
class NamedPairs:
    """Which subscriptions events are for: of each pair the event's place, ascending, and where in `names` the
    subscription's name is, packed."""

    pairs: NDArray[np.int64]
    names: NDArray[np.uint8]
    starts: NDArray[np.int64]
    lengths: NDArray[np.int64]

    @classmethod
    def of(cls, places: Sequence[int], subscriptions: Sequence[Sequence[str]]) -> NamedPairs:
        """Of places and the subscriptions of each."""
        import numpy as np

        names = [_encode(name) for some in subscriptions for name in some]
        lengths = np.array(list(map(len, names)), np.int64)
        pairs = np.repeat(np.array(places, np.int64), [len(some) for some in subscriptions])
        return cls(pairs, np.frombuffer(b"".join(names), np.uint8), np.cumsum(lengths) - lengths, lengths)


def packed_deliveries(
    events: PackedEvents, named: NamedPairs, count: int, size: int, publishers: Sequence[str], origin: str, first: int
) -> PackedDeliveries:
    """Some of the events for a client: so many, that take so many bytes. `publishers` says of each event whose it is;
    its key is the origin and the number that its place has from `first` on."""
    import numpy as np  # which clients of brokers shall not wait for

    starts, ends = events.bounds
    distinct = list(dict.fromkeys(publishers))
    packed = [_encode(name) for name in distinct]
    if len(distinct) == 1:
        publisher_of = np.zeros(len(events), np.int64)
    else:
        numbered = {name: number for number, name in enumerate(distinct)}
        publisher_of = np.array([numbered[name] for name in publishers], np.int64)
    begun = np.frombuffer(origin.encode(), np.uint8)
    room = len(_BEGINS) + len(begun) + max(map(len, packed)) + _kernels.DELIVERY_BYTES
    out = np.empty(size + int(named.lengths.sum()) + room * count, np.uint8)
    out_ends = np.empty(count, np.int64)
    rows = slice(events.first, events.last)
    begins = np.frombuffer(_BEGINS, np.uint8)
    made, used = _kernels.write_deliveries(
        np.frombuffer(events.data, np.uint8), starts, ends, events.block.durable[rows], events.block.numbers[rows],
        named.pairs, named.names, named.starts, named.lengths, np.frombuffer(b"".join(packed), np.uint8),
        np.cumsum([0, *map(len, packed)], dtype=np.int64), publisher_of, begins, begun, first, EVENT_BYTES, out,
        out_ends,
    )  # fmt: skip
    assert made == count, "a delivery is of one event"
    return PackedDeliveries(out[:used].tobytes(), out_ends, size)
