"""Traces through real servers, and OpenTelemetry's spans of them."""

from __future__ import annotations

import json
import subprocess
import sys
from collections.abc import Iterator
from typing import Any

import aiohttp
import pytest

from covey.errors import EventError
from covey.network import Server, connect, spans
from tests.network.running import broker, http, in_loop, linked, until

TRACE = "00-4bf92f3577b34da6a3ce929d0e0e4736-00f067aa0ba902b7-01"


async def line(a: Server, b: Server) -> None:
    await until(lambda: linked(a, b))


@pytest.fixture
def finished(monkeypatch: pytest.MonkeyPatch) -> Iterator[Any]:
    """Where spans go when they have ended; OpenTelemetry is in use only for such a test."""
    before = set(sys.modules)
    pytest.importorskip("opentelemetry.sdk")
    from opentelemetry import trace
    from opentelemetry.sdk.trace import TracerProvider
    from opentelemetry.sdk.trace.export import SimpleSpanProcessor
    from opentelemetry.sdk.trace.export.in_memory_span_exporter import InMemorySpanExporter

    exporter, provider = InMemorySpanExporter(), TracerProvider()
    provider.add_span_processor(SimpleSpanProcessor(exporter))
    monkeypatch.setattr(trace, "get_tracer", provider.get_tracer)
    yield exporter
    for name in set(sys.modules) - before:
        if name.startswith("opentelemetry"):
            del sys.modules[name]


@in_loop
async def test_a_trace_comes_through_two_brokers_to_every_kind_of_subscriber() -> None:
    async with broker("a", {"b": ""}) as a, broker("b", {"a": a.url}) as b, aiohttp.ClientSession() as session:
        await line(a, b)
        async with connect(a.url) as pub, connect(b.url) as ann:
            inbox = await ann.subscribe("x >= 0")
            with pytest.raises(EventError, match="is not a traceparent"):
                await pub.publish({"x": 0}, trace="nonsense")
            await pub.publish([{"x": 1}, {"x": 2}], trace=TRACE)
            await pub.publish({"x": 3})
            streams = [
                await session.get(f"{http(b)}/v1/events", params={"filter": "x >= 0", **query})
                for query in ({}, {"format": "cloudevents"})
            ]
            for headers in ({"traceparent": TRACE}, {"traceparent": "nonsense"}, {}):
                async with session.post(f"{http(a)}/v1/events", json={"x": 4}, headers=headers) as answer:
                    assert answer.status == 202
            found = [await inbox.get() for _ in range(6)]
            assert [(one["x"], one.trace) for one in found] == [
                (1, TRACE), (2, TRACE), (3, ""), (4, TRACE), (4, ""), (4, "")
            ]  # fmt: skip
            for stream, name in zip(streams, ("trace", "traceparent"), strict=True):
                bodies: list[dict[str, Any]] = []
                while len(bodies) < 3:
                    text = await stream.content.readline()
                    if text.startswith(b"data: "):
                        bodies.append(json.loads(text.removeprefix(b"data: ")))
                assert [body.get(name) for body in bodies] == [TRACE, None, None]
                stream.close()


@in_loop
async def test_spans_say_where_an_event_went_and_each_goes_on_from_the_one_before(finished: Any) -> None:
    async with broker("a", {"b": ""}) as a, broker("b", {"a": a.url}) as b:
        await line(a, b)
        async with connect(a.url) as pub, connect(b.url, name="ann") as ann, connect(a.url, name="carl") as carl:
            far = await ann.subscribe("x >= 0")
            near = await carl.subscribe("x > 1")
            await pub.publish([{"x": 1}, {"x": 2}], trace=TRACE)
            deliveries = [await far.get(), await far.get(), await near.get()]
            async with aiohttp.ClientSession() as session, session.post(f"{http(a)}/v1/events", json={"x": 9}) as plain:
                assert plain.status == 202  # an event without a trace, of which there are no spans
            assert (await far.get()).trace == (await near.get()).trace == ""
    done = finished.get_finished_spans()
    names = {(span.name, span.attributes.get("covey.broker", "")): span for span in done}
    assert len(done) == 6
    assert names.keys() == {
        ("covey publish", ""), ("covey match", "a"), ("covey hop", "a"), ("covey deliver", "a"), ("covey match", "b"),
        ("covey deliver", "b"),
    }  # fmt: skip
    first = names["covey publish", ""]
    assert first.attributes["covey.events"] == 2
    parents = {place: span.parent.span_id for place, span in names.items()}
    assert {span.context.trace_id for span in done} == {int(TRACE.split("-")[1], 16)}
    assert first.parent.span_id == int(TRACE.split("-")[2], 16)
    for child, parent in (
        (("covey hop", "a"), ("covey match", "a")),
        (("covey deliver", "a"), ("covey match", "a")),
        (("covey match", "b"), ("covey hop", "a")),
        (("covey deliver", "b"), ("covey match", "b")),
    ):
        assert parents[child] == names[parent].context.span_id
    assert parents["covey match", "a"] == first.context.span_id
    assert names["covey hop", "a"].attributes["covey.peer"] == "b"
    assert names["covey hop", "a"].attributes["covey.events"] == 2
    ends = {f"{names['covey deliver', name].context.span_id:016x}" for name in "ab"}
    assert {one.trace.split("-")[2] for one in deliveries} == ends


@in_loop
async def test_a_publication_without_a_trace_is_a_child_of_what_its_program_is_about(finished: Any) -> None:
    from opentelemetry import trace

    async with broker() as server, connect(server.url) as client:
        inbox = await client.subscribe("x = 1")
        with trace.get_tracer("test").start_as_current_span("work") as work:
            await client.publish({"x": 1})
        delivery = await inbox.get()
    assert delivery.trace.split("-")[1] == f"{work.get_span_context().trace_id:032x}"
    publish = next(span for span in finished.get_finished_spans() if span.name == "covey publish")
    assert publish.parent.span_id == work.get_span_context().span_id


def test_traces_beyond_the_limit_go_on_as_they_came(finished: Any) -> None:
    from covey.routing.messages import Envelope, Events, FromPeer

    events = [
        Envelope("a", at, "p", 0, False, 9, {}, trace=f"00-{at:032x}-{at:016x}-01")
        for at in range(1, spans.MOST_SPANS + 20)
    ]
    assert len(spans._traces_in(FromPeer("b", Events(events)))) == spans.MOST_SPANS


def test_without_opentelemetry_nothing_of_it_is_imported() -> None:
    """In a process of its own, where nobody sets it up."""
    script = """
import asyncio, sys
import covey
from covey.network import Server, ServerConfig
from covey.routing.config import BrokerConfig

async def talk():
    async with Server(ServerConfig(BrokerConfig("a"), port=0)) as server, covey.connect(server.url) as client:
        inbox = await client.subscribe("x = 1")
        await client.publish({"x": 1}, trace="TRACE")
        assert (await inbox.get()).trace == "TRACE"
        assert server.engine._spans is None

asyncio.run(talk())
print([name for name in sys.modules if name.startswith("opentelemetry")])
""".replace("TRACE", TRACE)
    done = subprocess.run([sys.executable, "-c", script], capture_output=True, text=True, timeout=60, check=True)
    assert done.stdout == "[]\n"
