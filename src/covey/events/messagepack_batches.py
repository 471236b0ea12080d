"""MessagePack maps as a batch that a kernel reads (`byte_batches`): messages of brokers and of other tools.

What the kernel leaves is decoded by msgspec, which the extra `broker` brings, and so are the answers defined: a message
is an event where msgspec decodes it to a dict whose keys are strings.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import numpy as np
from numpy.typing import NDArray

from covey.errors import CoveyError, EventError
from covey.events.byte_batches import ByteBatch, NameTree, Share, Spread, one_by_one
from covey.events.json_lines import BadLine
from covey.kernels import on_demand

_kernels = on_demand("messagepack")


class MessagePackMaps(ByteBatch):
    """Messages of MessagePack in one buffer, an event each; a message counts as a line, from 1."""

    @classmethod
    def of_messages(
        cls, messages: Sequence[bytes], *, bad: list[BadLine] | None = None, spread: Spread = one_by_one
    ) -> MessagePackMaps:
        """The events of messages, each in bytes of its own."""
        ends = np.cumsum([len(message) for message in messages], dtype=np.int64)
        starts = np.concatenate((np.zeros(min(1, len(ends)), np.int64), ends[:-1]))
        return cls(b"".join(messages), bad=bad, spread=spread, bounds=(starts, ends))

    def _read(
        self, starts: NDArray[np.int64], ends: NDArray[np.int64], share: Share, tree: NameTree, found: Any
    ) -> None:
        seen = np.zeros(tree.nodes, np.int64)
        _kernels.read_maps(self._data, starts, ends, *share, tree.arrays, found, seen)

    def _parse(self, text: bytes, *, first: bool) -> dict[str, Any]:  # noqa: ARG002 (as declared)
        return parse_messagepack(text)

    def _value(self, text: bytes) -> Any:
        return _decode(text)

    def _may_have(self, line: bytes, name: str) -> bool:
        return name.rpartition(".")[2].encode() in line


def parse_messagepack(message: bytes) -> dict[str, Any]:
    """The event of one message."""
    try:
        event = _decode(message)
    except RecursionError:
        raise EventError("nested too deeply") from None
    except (ValueError, TypeError) as error:
        raise EventError(f"not MessagePack: {error}") from None
    if not isinstance(event, dict):
        raise EventError(f"a MessagePack {type(event).__name__}, not a map of attributes")
    for key in event:
        if not isinstance(key, str):
            raise EventError(f"a map with the key {key!r}; attributes are named by strings")
    return event


def _decode(message: bytes) -> Any:
    try:
        from msgspec.msgpack import decode
    except ImportError:
        raise CoveyError("reading MessagePack needs msgspec; install covey[broker]") from None
    return decode(message)
