"""What the parts of a message may be: one range for each kind of number, and one length for each kind of name.

A message that comes over a connection is held against these where it is decoded, so what a broker gets to see can be
computed with, packed again and journalled. A range is declared here, once, and used by the types of `messages.py`; what
doesn't fit costs its sender the connection, with the field's place in the reason. How large a frame, an event or a
filter may be are limits that operators set (`NetworkLimits`, `BrokerLimits`); ranges are the same for everyone, or
brokers wouldn't understand each other.

Numbers end at 2**62, so that one more can always be packed. Where an answer must be above what somebody claims, the
claim is bounded further (`Tree`).
"""

from __future__ import annotations

from typing import Annotated, Final, TypeAlias

import msgspec

LARGEST: Final = 1 << 62
OWN_REQUESTS: Final = 1 << 40
"""From here on requests are the server's own, made in a client's name."""
NAME_CHARACTERS: Final = 1_000
"""A client's name may hold its principal's as well; `name_length` is what a client may choose."""
KEY_CHARACTERS: Final = 4_000
"""An entry's key holds a broker's name and two digests, or a filter's digest."""
LONGEST_ID: Final = 200
"""Characters of what a publisher calls an event: many are remembered."""
BROKERS: Final = 10_000
"""Brokers of one network."""

Number: TypeAlias = Annotated[int, msgspec.Meta(ge=0, le=LARGEST)]
"""Counts something, or names it by a count."""
Request: TypeAlias = Annotated[int, msgspec.Meta(ge=0, lt=OWN_REQUESTS)]
"""What a client calls a request."""
Seconds: TypeAlias = Annotated[float, msgspec.Meta(le=1e10)]
"""A duration; some three hundred years stand for ever."""
Name: TypeAlias = Annotated[str, msgspec.Meta(max_length=NAME_CHARACTERS)]
"""Of a client, a subscription or a publisher."""
PublicationId: TypeAlias = Annotated[str, msgspec.Meta(max_length=LONGEST_ID)]
"""What a publisher calls an event."""
Trace: TypeAlias = Annotated[str, msgspec.Meta(max_length=55)]
"""A W3C `traceparent`, or nothing; what it says is looked at where it enters the network (`traces.py`)."""
BrokerName: TypeAlias = Annotated[str, msgspec.Meta(min_length=1, max_length=NAME_CHARACTERS, pattern="^[^/]+$")]
"""Of a broker: no slash, since ids and rows are made of names with slashes between them."""
Key: TypeAlias = Annotated[str, msgspec.Meta(max_length=KEY_CHARACTERS)]
"""Of an entry in a table."""
Hops: TypeAlias = Annotated[int, msgspec.Meta(ge=0, le=1 << 16)]
"""Links that something may still cross."""
TableNumber: TypeAlias = Annotated[int, msgspec.Meta(ge=0, le=255)]
Bucket: TypeAlias = Annotated[int, msgspec.Meta(ge=0, le=255)]
Digest: TypeAlias = Annotated[int, msgspec.Meta(ge=0, lt=1 << 56)]
"""Seven bytes."""
Capabilities: TypeAlias = Annotated[list[Annotated[str, msgspec.Meta(max_length=100)]], msgspec.Meta(max_length=100)]
"""What the other side knows of, by names."""
