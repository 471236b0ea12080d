"""Spans of OpenTelemetry, where a process has set it up; elsewhere nothing of it is imported and nothing is done.

    publish    in the client, from the call until the broker has confirmed
    match      in each broker: the turn in which events with a trace are matched
    hop        what a broker sends a neighbour; the neighbour's match is its child
    deliver    what a broker sends a client; what the client makes of it can be its child (`Delivery.trace`)

Events with one trace that go together share a span, however many there are. Each span takes the place of the one that
it came from in the events' traces, so that whoever gets them goes on from there. Only what came with a trace has spans
in brokers: whether a trace is recorded is its beginner's choice.

Set up OpenTelemetry before the broker is started, as `opentelemetry-instrument covey broker ...` does.
"""

from __future__ import annotations

import sys
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from importlib import import_module
from typing import TYPE_CHECKING, Any, Final, TypeVar

from msgspec.structs import replace

from covey.routing.messages import (
    Deliver,
    Deliveries,
    Envelope,
    Events,
    FromPeer,
    Input,
    Publications,
    Stream,
    ToPeer,
)

if TYPE_CHECKING:
    from covey.routing.broker import Broker
    from covey.routing.journal import Outputs

MOST_SPANS: Final = 100
"""Traces of one message that get a span of their own; the others go on as they came."""

_API: Final = "opentelemetry.trace"
_FORM: Final = f"{_API}.propagation.tracecontext"
Traced = TypeVar("Traced", Envelope, Deliver)


class Spans:
    """Makes spans of what one broker takes and gives."""

    def __init__(self, api: Any, broker: str) -> None:
        self._tracer = _Tracer(api)
        self._broker = broker

    def handle(self, broker: Broker, input: Input, now: float, steps: int | None) -> Outputs:
        """Let the broker take an input, as `Broker.handle` does; what has a trace gets spans."""
        counts = _traces_in(input)
        if not counts:
            outputs = broker.handle(input, now, steps)
        else:
            spans = {
                trace: self._tracer.begin("match", "CONSUMER", trace, {"covey.broker": self._broker, "covey.events": n})
                for trace, n in counts.items()
            }
            try:
                outputs = broker.handle(_going_on(input, self._traces(spans)), now, steps)
            finally:
                for span in spans.values():
                    span.end()
        for at, output in enumerate(outputs.sends):
            if isinstance(output, Deliveries):
                self._deliver(output)
            elif isinstance(output, ToPeer) and isinstance(output.message, Events | Stream):
                outputs.sends[at] = self._hop(output)
        return outputs

    def _deliver(self, output: Deliveries) -> None:
        if not isinstance(output.messages, list):
            return  # what is packed has no traces
        later = self._leave("deliver", output.messages, {"covey.client": output.client})
        if later:
            output.messages[:] = _with(output.messages, later)

    def _hop(self, output: ToPeer) -> ToPeer:
        message = output.message
        assert isinstance(message, Events | Stream)
        envelopes = message.items if isinstance(message, Stream) else message.envelopes
        later = self._leave("hop", envelopes, {"covey.peer": output.peer})
        if not later:
            return output
        name = "items" if isinstance(message, Stream) else "envelopes"
        return replace(output, message=replace(message, **{name: _with(envelopes, later)}))

    def _leave(self, name: str, events: Sequence[Envelope | Deliver], attributes: dict[str, Any]) -> dict[str, str]:
        """Spans for what leaves: the traces to go on with, by those that there were."""
        spans = {}
        for trace, count in _counted(events).items():
            attributes = {"covey.broker": self._broker, "covey.events": count, **attributes}
            spans[trace] = self._tracer.begin(name, "PRODUCER", trace, attributes)
        for span in spans.values():
            span.end()
        return self._traces(spans)

    def _traces(self, spans: dict[str, Any]) -> dict[str, str]:
        return {trace: self._tracer.trace_of(span) or trace for trace, span in spans.items()}


class _Tracer:
    """What is used of OpenTelemetry's own: spans with a `traceparent` for a parent, and back."""

    def __init__(self, api: Any) -> None:
        self._api = api
        self._form = import_module(_FORM).TraceContextTextMapPropagator()
        self._tracer = api.get_tracer("covey")

    def begin(self, name: str, kind: str, trace: str, attributes: dict[str, Any]) -> Any:
        """A span; without a trace it is a child of what the program is about."""
        parent = self._form.extract({"traceparent": trace}) if trace else None
        attributes = {"messaging.system": "covey", "messaging.operation.name": name, **attributes}
        return self._tracer.start_span(f"covey {name}", parent, self._api.SpanKind[kind], attributes)

    def trace_of(self, span: Any) -> str:
        """Its `traceparent`; empty where it has none."""
        carrier: dict[str, str] = {}
        self._form.inject(carrier, self._api.set_span_in_context(span))
        return carrier.get("traceparent", "")


def spans_of(broker: str) -> Spans | None:
    """Spans for a broker; None where this process doesn't use OpenTelemetry."""
    api = sys.modules.get(_API)
    return None if api is None else Spans(api, broker)


def is_used() -> bool:
    """Whether this process uses OpenTelemetry."""
    return _API in sys.modules


@contextmanager
def publishing(trace: str, events: int) -> Iterator[str]:
    """A span for a publication, under a trace or else under what the program is about; gives its own trace."""
    tracer = _Tracer(sys.modules[_API])
    span = tracer.begin("publish", "PRODUCER", trace, {"covey.events": events})
    try:
        yield tracer.trace_of(span) or trace
    except BaseException as error:
        span.record_exception(error)
        raise
    finally:
        span.end()


def _traces_in(input: Input) -> dict[str, int]:
    """The traces that events came with, and how many events came with each."""
    if isinstance(input, Publications):
        counts: dict[str, int] = {}
        for request in input.requests:
            if request.trace and (request.trace in counts or len(counts) < MOST_SPANS):
                counts[request.trace] = counts.get(request.trace, 0) + request.end - request.start
        return counts
    if isinstance(input, FromPeer):
        if isinstance(input.message, Events):
            return _counted(input.message.envelopes)
        if isinstance(input.message, Stream):
            return _counted(input.message.items)
    return {}


def _going_on(input: Input, traces: dict[str, str]) -> Input:
    """An input whose events have other traces."""
    if isinstance(input, Publications):
        requests = [replace(request, trace=traces.get(request.trace, request.trace)) for request in input.requests]
        return replace(input, requests=requests)
    assert isinstance(input, FromPeer)
    message = input.message
    if isinstance(message, Stream):
        return replace(input, message=replace(message, items=_with(message.items, traces)))
    assert isinstance(message, Events)
    return replace(input, message=replace(message, envelopes=_with(message.envelopes, traces)))


def _counted(events: Sequence[Envelope | Deliver]) -> dict[str, int]:
    counts: dict[str, int] = {}
    for event in events:
        trace = event.trace
        if trace and (trace in counts or len(counts) < MOST_SPANS):
            counts[trace] = counts.get(trace, 0) + 1
    return counts


def _with(events: list[Traced], traces: dict[str, str]) -> list[Traced]:
    return [replace(event, trace=traces[event.trace]) if event.trace in traces else event for event in events]
