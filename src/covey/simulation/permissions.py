"""What principals may do in a run, and since when: the oracle for permissions that change while subscriptions stand.

A reload changes what a principal may do. Its clients' sessions are told at once, and whoever connects later comes with
what holds then. When a broker has taken that in is what counts; what it had sent before may still be on its way for
`WINDOW`, so a client may get whatever one of the permissions in force during that time has, and nothing else. The other
way round, an event must come that all permissions have which were in force since it was published.
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass, field
from math import inf
from typing import Any

from covey.events.schema import Schema
from covey.filters.algebra import Filter
from covey.language import parse
from covey.relations import covers
from covey.routing.messages import Permissions

WINDOW = 1.0
"""Seconds: longer than two commits and the way to a client take."""


@dataclass(slots=True)
class Rights:
    """By principal what it may do now, and by client what its broker has held it to."""

    schema: Schema | None = None
    """What filters are read by."""
    allowed: dict[str, Permissions] = field(default_factory=dict)
    _in_force: dict[str, list[tuple[float, Permissions]]] = field(default_factory=dict)

    def of(self, principal: str) -> Permissions:
        """What a principal may do now."""
        return self.allowed.get(principal, Permissions())

    def took(self, now: float, client: str, permissions: Permissions) -> None:
        """A broker holds a client to these from now on."""
        self._in_force.setdefault(client, []).append((now, permissions))

    def may_get(self, now: float, client: str, attributes: dict[str, Any]) -> bool:
        """Whether an event that a client gets now is one that it may have."""
        return any(self._has(one.subscribe, attributes) for one in self._since(client, now - WINDOW))

    def must_get(self, sent_at: float, client: str, attributes: dict[str, Any]) -> bool:
        """Whether a client may have had an event at all times since it was published."""
        return all(self._has(one.subscribe, attributes) for one in self._since(client, sent_at))

    def may_publish(self, now: float, client: str, attributes: dict[str, Any]) -> bool:
        """Whether what is confirmed now is what a client may publish."""
        return any(self._has(one.publish, attributes) for one in self._since(client, now - WINDOW))

    def may_refuse_event(self, asked_at: float, client: str, attributes: dict[str, Any]) -> bool:
        """Whether some permission since an event was sent doesn't have it."""
        return not all(self._has(one.publish, attributes) for one in self._since(client, asked_at))

    def may_refuse_subscription(self, asked_at: float, client: str, condition: Filter) -> bool:
        """Whether some permission since a subscription was asked for doesn't cover it."""
        return any(
            one.subscribe is not None and not covers(self._read(one.subscribe), condition)
            for one in self._since(client, asked_at)
        )

    def _since(self, client: str, start: float) -> Iterator[Permissions]:
        """All that were in force at some time from `start` on."""
        changes = self._in_force.get(client) or [(0.0, Permissions())]
        ends = [*(at for at, _ in changes[1:]), inf]
        return (one for (_, one), end in zip(changes, ends, strict=True) if end > start)

    def _has(self, permission: str | None, attributes: dict[str, Any]) -> bool:
        return permission is None or self._read(permission).matches(attributes)

    def _read(self, permission: str) -> Filter:
        return parse(permission) if self.schema is None else self.schema.check(parse(permission))
