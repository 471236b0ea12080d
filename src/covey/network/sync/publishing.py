"""Publishing without waiting for each confirmation, for programs without asyncio."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from types import TracebackType
from typing import Any, Self

from covey.network.asyncio import publishing as asynchronous
from covey.network.sync.subscription import Loop


class Publishing:
    """Publications under way; made by `Client.publishing`, and over when its block ends: then all are confirmed."""

    def __init__(self, inner: asynchronous.Publishing, loop: Loop) -> None:
        self._inner = inner
        self._loop = loop

    @property
    def sent(self) -> int:
        """Events that were given."""
        return self._inner.sent

    @property
    def confirmed(self) -> int:
        """Events that the broker has confirmed, with all before them."""
        return self._inner.confirmed

    def publish(
        self, events: Mapping[str, Any] | Sequence[Mapping[str, Any]], *, id: str | Sequence[str] | None = None
    ) -> None:
        """Publish events; returns when there is room for more. Raises what became of earlier ones, if they failed."""
        self._loop.run(self._inner.publish(events, id=id))

    def __enter__(self) -> Self:
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        self._loop.run(self._inner.__aexit__(kind, error, trace))
