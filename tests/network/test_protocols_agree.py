"""However an event is published and however it is listened for, it is delivered where its filter matches, as it was.

Published: over WebSockets in MessagePack and JSON, and over HTTP as JSON, JSON lines and CloudEvents of all three
kinds. Listened for: over WebSockets in MessagePack and JSON, and as server-sent events, plain and as CloudEvents.
"""

from __future__ import annotations

import json
from collections.abc import Awaitable, Callable
from contextlib import AsyncExitStack
from typing import Any

import aiohttp
from hypothesis import Phase, given, settings
from hypothesis import strategies as st

from covey.filters import Filter
from covey.network import Server, connect
from covey.network.frames import WRITTEN
from tests.examples import examples
from tests.network.running import broker, http, in_loop
from tests.strategies import INTEGERS, STRINGS, filters

NAMES = ("i", "d", "s", "b", "l", "nested.x")
NUMBERS = (
    st.sampled_from([number for number in INTEGERS if -(2**63) <= number < 2**63])
    | st.integers(-10, 10)
    | st.floats(allow_nan=False, allow_infinity=False)
)
SCALARS = NUMBERS | st.sampled_from(STRINGS) | st.text(max_size=4) | st.booleans() | st.none()
EVENTS = st.dictionaries(
    st.sampled_from(("i", "d", "s", "b", "l", "other")), SCALARS | st.lists(SCALARS, max_size=3), max_size=5
).flatmap(lambda event: st.sampled_from([event, {**event, "nested": {"x": 1, "y": ["z"]}}]))
CONTEXT = {"specversion": "1.0", "id": "1", "source": "here", "type": "quote"}
END = "the end"
"""An event that every listener gets last."""

Publish = Callable[[list[dict[str, Any]]], Awaitable[None]]
Listen = Callable[[], Awaitable[dict[str, Any]]]


def shown(event: dict[str, Any]) -> str:
    """An event without a CloudEvent's context, so that all can be compared; 1 isn't 1.0."""
    return json.dumps({name: value for name, value in event.items() if name != "ce"}, sort_keys=True)


class Publishers:
    """The ways to publish, each from an open connection."""

    def __init__(self, server: Server, session: aiohttp.ClientSession, client: Any, socket: Any) -> None:
        self._url = f"{http(server)}/v1/events"
        self._session = session
        self._client = client
        self._socket = socket

    def ways(self) -> dict[str, Publish]:
        """By name."""
        return {
            "MessagePack": self._client.publish,
            "JSON over a WebSocket": self._written,
            "JSON": lambda events: self._post(events, "application/json"),
            "JSON lines": lambda events: self._post(events, "application/x-ndjson"),
            "a batch of CloudEvents": lambda events: self._post(
                [{**CONTEXT, "data": event} for event in events], "application/cloudevents-batch+json"
            ),
            "CloudEvents": self._structured,
            "binary CloudEvents": self._binary,
        }

    async def _written(self, events: list[dict[str, Any]]) -> None:
        await self._socket.send_str(json.dumps([["Publish", 7, [["Publication", event] for event in events]]]))
        while True:
            for answer in json.loads((await self._socket.receive()).data):
                if answer[:2] in (["Confirmed", 7], ["Refused", 7]):
                    assert answer[0] == "Confirmed", answer
                    return

    async def _post(self, body: Any, kind: str, headers: dict[str, str] | None = None) -> None:
        is_lines = kind == "application/x-ndjson"
        text = "".join(json.dumps(event) + "\n" for event in body) if is_lines else json.dumps(body)
        given = {**(headers or {}), "Content-Type": kind}
        async with self._session.post(self._url, data=text, headers=given) as answer:
            assert answer.status == 202, await answer.text()

    async def _structured(self, events: list[dict[str, Any]]) -> None:
        for event in events:
            await self._post({**CONTEXT, "data": event}, "application/cloudevents+json")

    async def _binary(self, events: list[dict[str, Any]]) -> None:
        headers = {f"ce-{name}": value for name, value in CONTEXT.items()}
        for event in events:
            await self._post(event, "application/json", headers)


async def listeners(
    stack: AsyncExitStack, server: Server, session: aiohttp.ClientSession, text: str
) -> dict[str, Listen]:
    """The ways to listen, each subscribed."""
    client = await stack.enter_async_context(connect(server.url))
    inbox = await client.subscribe(text)

    async def packed() -> dict[str, Any]:
        return (await inbox.get()).attributes

    socket = await stack.enter_async_context(session.ws_connect(f"{server.url}/v1/client", protocols=[WRITTEN]))
    await socket.send_str(json.dumps([["Subscribe", 1, "s", text]]))
    waiting: list[Any] = []

    async def heard(kind: str) -> list[Any]:
        while True:
            while waiting:
                answer: list[Any] = waiting.pop(0)
                assert answer[0] != "Refused", answer
                if answer[0] == kind:
                    return answer
            waiting.extend(json.loads((await socket.receive()).data))

    await heard("Confirmed")

    async def written() -> dict[str, Any]:
        attributes: dict[str, Any] = (await heard("Deliver"))[3]
        return attributes

    async def stream(form: str, member: str) -> Listen:
        query = {"filter": text, "format": form}
        response = await stack.enter_async_context(session.get(f"{http(server)}/v1/events", params=query))
        assert response.status == 200, await response.text()
        assert await response.content.readline() == b": subscribed\n"

        async def streamed() -> dict[str, Any]:
            while not (line := await response.content.readline()).startswith(b"data: "):
                assert line
            attributes: dict[str, Any] = json.loads(line.removeprefix(b"data: "))[member]
            return attributes

        return streamed

    return {
        "MessagePack": packed,
        "JSON over a WebSocket": written,
        "server-sent events": await stream("plain", "attributes"),
        "server-sent CloudEvents": await stream("cloudevents", "data"),
    }


# An example takes some tenths of a second, and what fails says which way it went.
@settings(max_examples=examples(8), phases=[Phase.explicit, Phase.generate])
@given(st.lists(filters(NAMES, max_leaves=4), min_size=1, max_size=2), st.lists(EVENTS, min_size=1, max_size=6))
def test_all_protocols_give_the_same_deliveries(wanted: list[Filter], events: list[dict[str, Any]]) -> None:
    @in_loop
    async def agree() -> None:
        async with AsyncExitStack() as stack:
            server = await stack.enter_async_context(broker())
            session = await stack.enter_async_context(aiohttp.ClientSession())
            client = await stack.enter_async_context(connect(server.url))
            socket = await stack.enter_async_context(session.ws_connect(f"{server.url}/v1/client", protocols=[WRITTEN]))
            listening = [
                (condition, await listeners(stack, server, session, f"({condition}) OR other = '{END}'"))
                for condition in wanted
            ]
            for way, publish in Publishers(server, session, client, socket).ways().items():
                await publish([*events, {"other": END}])
                for condition, listens in listening:
                    expected = [shown(event) for event in events if condition.matches(event)]
                    for name, listen in listens.items():
                        found: list[str] = []
                        while (event := await listen()).get("other") != END:
                            found.append(shown(event))
                        assert found == expected, f"published as {way}, heard as {name}: {condition}"

    agree()
