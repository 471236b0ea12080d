"""Frames: how messages travel over a WebSocket.

A frame is an array of messages, msgpack in binary frames and JSON in text frames; the answers are in msgpack unless a
client asks for the subprotocol `covey.v1.json`. Batches are the ordinary case: one frame carries all that is ready. A
message is an array that starts with its name, as `covey.routing.messages` has it:
`["Subscribe", 1, "cheap", "price < 10"]`.

This is the door: nothing of a frame counts unless all of it can be read and is within its ranges
(`covey.routing.ranges`), and whoever sends something else loses the connection. Messages whose names aren't known are
skipped where brokers are heard, so that a later version can say more; from clients they are a mistake. An event is
taken apart no deeper than `nesting`, and its names must be text, since filters can't ask for others. Clients' events
are looked at once more by the broker, which refuses what can't be matched; those of neighbours were taken by a broker
before, and must be right.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator
from dataclasses import dataclass
from typing import Any, Final, Generic, Protocol, TypeAlias, TypeVar, get_args

import msgspec

from covey.network.errors import FrameError
from covey.network.limits import NetworkLimits
from covey.network.survey_messages import Ask, Told
from covey.routing.messages import (
    Acknowledge,
    Advertise,
    ClientAnswer,
    ClientMessage,
    Credit,
    Envelope,
    Events,
    PeerMessage,
    Publish,
    Renew,
    Stream,
    Subscribe,
    Unadvertise,
    Unsubscribe,
)
from covey.routing.meta_events import first_forged
from covey.routing.packed_events import PackedDeliveries, PackedPublications, read_publications
from covey.routing.plain_events import is_plain, wrong_event
from covey.routing.ranges import Request, Trace

FRAME_MESSAGES: Final = 512
"""Messages that are put into one frame: enough that a frame costs little a message."""
PACKED_BYTES: Final = 4_000
"""A frame of clients from which on events stay as they came: some dozens of them."""
FRAME_BYTES: Final = 1 << 20
"""A frame of several messages is divided above this."""
PACKED: Final = "covey.v1.msgpack"
WRITTEN: Final = "covey.v1.json"
"""The subprotocols that a client can ask for."""

BAD_DATA: Final = 1007
POLICY: Final = 1008
TOO_LARGE: Final = 1009
GOING_AWAY: Final = 1001
INTERNAL: Final = 1011
RESTARTING: Final = 1012
TRY_LATER: Final = 1013
TAKEN: Final = 4409
"""Another session has this client's name."""

PeerFrame: TypeAlias = PeerMessage | Ask | Told
"""What travels over a link: the broker's messages, and surveys."""
Message = TypeVar("Message")
Read = TypeVar("Read", covariant=True)


@dataclass(frozen=True, slots=True)
class Codec(Generic[Message]):
    """One way to write frames."""

    binary: bool
    encode: Callable[[list[Message]], bytes]


_pack = msgspec.msgpack.Encoder().encode
_write = msgspec.json.Encoder().encode
ANSWERS_PACKED: Final[Codec[ClientAnswer]] = Codec(True, _pack)
ANSWERS_WRITTEN: Final[Codec[ClientAnswer]] = Codec(False, _write)
PEER_FRAMES: Final[Codec[PeerFrame]] = Codec(True, _pack)


class _RawPublish(msgspec.Struct, tag=Publish.__name__, array_like=True, frozen=True, gc=False):
    """`Publish` with its events as they came."""

    request: Request
    events: msgspec.Raw
    trace: Trace = ""


_LazyMessage: TypeAlias = (
    Subscribe | Unsubscribe | Advertise | Unadvertise | _RawPublish | Acknowledge | Credit | Renew
)  # fmt: skip
_unpack_lazily = msgspec.msgpack.Decoder(list[_LazyMessage])
_unpack_client = msgspec.msgpack.Decoder(list[ClientMessage])
_read_client = msgspec.json.Decoder(list[ClientMessage])
_unpack_answers = msgspec.msgpack.Decoder(list[ClientAnswer])
_unpack_peer = msgspec.msgpack.Decoder(list[PeerFrame])
_unpack_raw = msgspec.msgpack.Decoder(list[msgspec.Raw])
_unpack_parts = msgspec.msgpack.Decoder(list[Any])
ANSWER_NAMES: Final = frozenset(kind.__name__ for kind in get_args(ClientAnswer))
PEER_NAMES: Final = frozenset(kind.__name__ for kind in get_args(PeerFrame))


def decode_client(data: bytes | str, limits: NetworkLimits) -> list[ClientMessage]:
    """The messages of a client's frame, all of them within the limits; raises FrameError."""
    messages = _packed(data) if isinstance(data, bytes) and len(data) >= PACKED_BYTES else None
    if messages is None:
        messages = _decoded(_read_client if isinstance(data, str) else _unpack_client, data)
    if len(messages) > limits.messages:
        raise FrameError(
            f"{len(messages):,} messages in one frame; the limit messages is {limits.messages:,}, send smaller frames",
            POLICY,
        )
    for message in messages:
        if isinstance(message, Publish):
            if isinstance(message.events, PackedPublications):
                continue
            for at, publication in enumerate(message.events, 1):
                if is_plain(publication.attributes):
                    continue
                wrong = wrong_shape(publication.attributes, limits)
                if wrong is not None:
                    raise FrameError(f"event {at}: {wrong}", POLICY)
        elif isinstance(message, Subscribe | Advertise | Unsubscribe | Unadvertise):
            _check_name(message.id, limits)
        elif isinstance(message, Renew):
            for id in message.ids:
                _check_name(id, limits)
    return messages


def _packed(data: bytes) -> list[ClientMessage] | None:
    """A frame's messages with events that aren't decoded; None where some aren't plain, or something else is wrong,
    which is then found as ever."""
    try:
        messages = _unpack_lazily.decode(data)
    except (msgspec.DecodeError, UnicodeDecodeError, RecursionError, OverflowError, ValueError):
        return None
    lists = [message.events for message in messages if isinstance(message, _RawPublish)]
    found = read_publications(lists) if lists else []
    if found is None:
        return None
    events = iter(found)
    return [
        Publish(message.request, next(events), message.trace) if isinstance(message, _RawPublish) else message
        for message in messages
    ]


def _check_name(name: str, limits: NetworkLimits) -> None:
    if len(name) > limits.name_length:
        raise FrameError(f"a name of {len(name):,} characters; name_length is {limits.name_length}", POLICY)


def decode_answers(data: bytes) -> list[ClientAnswer]:
    """The messages of a broker's frame to a client, but those that only a later version knows."""
    return _known(_unpack_answers, ANSWER_NAMES, data)[0]


def decode_peer(data: bytes, limits: NetworkLimits) -> tuple[list[PeerFrame], int]:
    """The messages of a neighbour's frame, with events that can be matched, and how many others there were, which only
    a later version knows; raises FrameError."""
    messages, unknown = _known(_unpack_peer, PEER_NAMES, data)
    for message in messages:
        if isinstance(message, Events):
            _check_envelopes(message.envelopes, limits)
        elif isinstance(message, Stream):
            _check_envelopes(message.items, limits)
        elif isinstance(message, Ask) and message.event is not None:
            _check_event(message.event, limits)
    return messages, unknown


def _check_envelopes(envelopes: list[Envelope], limits: NetworkLimits) -> None:
    for envelope in envelopes:
        _check_event(envelope.attributes, limits)
    forged = first_forged(envelopes)
    if forged is not None:
        raise FrameError(f"the event {forged[0].key}: {forged[1]}", POLICY)


def _check_event(attributes: dict[str, Any], limits: NetworkLimits) -> None:
    if is_plain(attributes):
        return
    wrong = wrong_shape(attributes, limits)
    if wrong is None:
        found = wrong_event([attributes])
        wrong = None if found is None else found[1]
    if wrong is not None:
        raise FrameError(f"an event: {wrong}", POLICY)


def _known(decoder: _Decoder[list[Message]], names: frozenset[str], data: bytes) -> tuple[list[Message], int]:
    try:
        return decoder.decode(data), 0
    except (msgspec.DecodeError, UnicodeDecodeError, RecursionError, OverflowError, ValueError):
        pass
    # Something is wrong, or new. What is new is told by its name; all else must be right, as if it had come alone.
    known: list[Message] = []
    raw = _decoded(_unpack_raw, data)
    for one in raw:
        if _name_of(one) in names:
            # An array of one.
            known += _decoded(decoder, b"\x91" + bytes(one))
    return known, len(raw) - len(known)


def _name_of(message: msgspec.Raw) -> str:
    name = _decoded(_unpack_parts, message)
    if not name or not isinstance(name[0], str):
        raise FrameError("not a frame of messages: a message starts with its name")
    return name[0]


class _Decoder(Protocol[Read]):
    def decode(self, data: Any, /) -> Read: ...


def _decoded(decoder: _Decoder[Read], data: bytes | str | msgspec.Raw) -> Read:
    try:
        return decoder.decode(data)
    except (msgspec.DecodeError, UnicodeDecodeError, RecursionError, OverflowError, ValueError) as error:
        raise FrameError(f"not a frame of messages: {' '.join(str(error).split())}") from None


def wrong_shape(attributes: dict[str, Any], limits: NetworkLimits) -> str | None:
    """Why an event isn't flat enough, or isn't made of names and values; None where it is."""
    level: list[Any] = [value for value in attributes.values() if isinstance(value, dict | list)]
    depth = 1
    elements = 0
    while level:
        depth += 1
        if depth > limits.nesting:
            return f"nested more deeply than {limits.nesting} levels, the limit nesting"
        elements += sum(len(value) for value in level if isinstance(value, list))
        if elements > limits.elements:
            return f"its lists have more than {limits.elements:,} elements, the limit elements"
        inner: list[Any] = []
        for value in level:
            if isinstance(value, dict):
                if not all(isinstance(name, str) for name in value):
                    return "an attribute's name isn't text"
                value = list(value.values())
            inner.extend(one for one in value if isinstance(one, dict | list))
        level = inner
    return None


def frames(codec: Codec[Message], messages: list[Message], most_bytes: int) -> Iterator[bytes]:
    """Messages as frames; raises FrameError for a message above `most_bytes` that can't be divided."""
    for run in _runs(codec, messages):
        if isinstance(run, PackedDeliveries):
            for data in run.frames(FRAME_MESSAGES, min(FRAME_BYTES, most_bytes)):
                if len(data) > most_bytes:
                    raise FrameError(f"a message of {len(data):,} bytes, and {most_bytes:,} is the limit", TOO_LARGE)
                yield data
            continue
        for start in range(0, len(run), FRAME_MESSAGES):
            yield from _fitting(codec, run[start : start + FRAME_MESSAGES], most_bytes)


def _runs(codec: Codec[Message], messages: list[Message]) -> Iterator[list[Message] | PackedDeliveries]:
    """Messages, with deliveries that are packed already by themselves where they can go as they are."""
    run: list[Any] = []
    for message in messages:
        if not isinstance(message, PackedDeliveries):
            run.append(message)
        elif codec.binary:
            yield run
            yield message
            run = []
        else:
            run += message
    yield run


def _fitting(codec: Codec[Message], messages: list[Message], most_bytes: int) -> Iterable[bytes]:
    data = codec.encode(messages)
    if len(data) <= min(FRAME_BYTES, most_bytes):
        return (data,)
    if len(messages) == 1:
        parts = _halves(messages[0])
        if parts is None:
            if len(data) > most_bytes:
                raise FrameError(f"a message of {len(data):,} bytes, and {most_bytes:,} is the limit", TOO_LARGE)
            return (data,)
        messages = parts
    middle = len(messages) // 2
    return (*_fitting(codec, messages[:middle], most_bytes), *_fitting(codec, messages[middle:], most_bytes))


def _halves(message: Any) -> list[Any] | None:
    """Two messages that say the same as one; None where there aren't any."""
    if isinstance(message, Stream) and len(message.items) > 1:
        middle = len(message.items) // 2
        return [
            Stream(message.epoch, message.first, message.items[:middle]),
            Stream(message.epoch, message.first + middle, message.items[middle:]),
        ]
    if isinstance(message, Events) and len(message.envelopes) > 1:
        middle = len(message.envelopes) // 2
        return [Events(message.envelopes[:middle]), Events(message.envelopes[middle:])]
    return None
