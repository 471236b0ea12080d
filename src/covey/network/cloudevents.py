"""CloudEvents over HTTP, and plain JSON: a request's body becomes events.

Structured (`application/cloudevents+json`), batch (`application/cloudevents-batch+json`) and binary (`ce-...` headers)
requests are read as the CloudEvents HTTP binding 1.0 says. The members of `data` become the event's attributes, since
they are what filters ask for; the context is a record of its own, `ce`: `price < 10 AND ce.type = 'quote'`. Data that
isn't an object becomes the attribute `data`.

Without CloudEvents: an object is an event, an array is several, and `application/x-ndjson` has one a line. A simple
XML-style document (`application/xml`, `text/xml`, what ends in `+xml`) is one event, elements within elements its
records; with a DOCTYPE, entities of its own, XML attributes or text beside elements it is refused by name, and nothing
outside of it is ever read (`covey.events.xml`).
"""

from __future__ import annotations

import zlib
from collections.abc import Mapping
from typing import Any, Final
from urllib.parse import unquote

import msgspec

from covey.errors import EventError
from covey.events.xml import xml_event
from covey.network.errors import FrameError
from covey.network.frames import BAD_DATA, TOO_LARGE, wrong_shape
from covey.network.limits import NetworkLimits

STRUCTURED: Final = "application/cloudevents+json"
BATCH: Final = "application/cloudevents-batch+json"
LINES: Final = ("application/x-ndjson", "application/jsonl")
XML: Final = ("application/xml", "text/xml")
REQUIRED: Final = ("id", "source", "specversion", "type")
CONTEXT: Final = "ce"
"""The attribute that has a CloudEvent's context."""


def decompressed(body: bytes, encoding: str | None, limits: NetworkLimits) -> bytes:
    """A body as it was before its Content-Encoding; raises FrameError where that is too much."""
    if encoding is None or encoding.lower() == "identity":
        return body
    if encoding.lower() not in ("gzip", "deflate"):
        raise FrameError(f"Content-Encoding {encoding!r} is not understood; use gzip, deflate or none")
    reader = zlib.decompressobj(wbits=47)
    try:
        plain = reader.decompress(body, limits.decompressed_bytes)
    except zlib.error as error:
        raise FrameError(f"the body isn't {encoding}: {error}") from None
    if reader.unconsumed_tail:
        raise FrameError(
            f"the body is larger than {limits.decompressed_bytes:,} bytes, the limit decompressed_bytes", TOO_LARGE
        )
    if not reader.eof:
        raise FrameError(f"the body ends within its {encoding}")
    return plain


def read_events(headers: Mapping[str, str], body: bytes, limits: NetworkLimits) -> list[dict[str, Any]]:
    """The events of a request; raises FrameError."""
    kind = headers.get("Content-Type", "").partition(";")[0].strip().lower()
    if kind == STRUCTURED:
        events = [_structured(_json(body))]
    elif kind == BATCH:
        listed = _json(body)
        if not isinstance(listed, list):
            raise FrameError("a batch of CloudEvents is an array")
        events = [_structured(one) for one in listed]
    elif kind.startswith("application/cloudevents"):
        raise FrameError(f"{kind} is not understood; CloudEvents may be {STRUCTURED}, {BATCH} or binary")
    elif any(name.lower().startswith("ce-") for name in headers):
        events = [_binary(headers, kind, body)]
    elif kind in XML or kind.endswith("+xml"):
        events = [_xml(body)]
    elif kind in LINES:
        events = [_event(_json(line)) for line in body.splitlines() if line.strip()]
    else:
        given = _json(body)
        events = [_event(one) for one in given] if isinstance(given, list) else [_event(given)]
    for at, event in enumerate(events, 1):
        wrong = wrong_shape(event, limits)
        if wrong is not None:
            raise FrameError(f"event {at}: {wrong}", BAD_DATA)
    return events


def to_cloudevent(attributes: Mapping[str, Any], event: str, publisher: str) -> dict[str, Any]:
    """An event as a structured CloudEvent; one that came as a CloudEvent has the context that it came with."""
    context = attributes.get(CONTEXT)
    if isinstance(context, dict) and all(name in context for name in REQUIRED):
        data = {name: value for name, value in attributes.items() if name != CONTEXT}
        return {**context, "datacontenttype": "application/json", "data": data}
    named = {"specversion": "1.0", "id": event, "source": f"covey:{publisher}", "type": "covey.event"}
    return {**named, "datacontenttype": "application/json", "data": attributes}


def _event(given: Any) -> dict[str, Any]:
    if not isinstance(given, dict):
        raise FrameError("an event is a JSON object of attributes")
    return given


def _structured(given: Any) -> dict[str, Any]:
    if not isinstance(given, dict):
        raise FrameError("a CloudEvent is a JSON object")
    context = {name: value for name, value in given.items() if name not in ("data", "data_base64")}
    return _with_context(context, given["data"] if "data" in given else given.get("data_base64", {}))


def _binary(headers: Mapping[str, str], kind: str, body: bytes) -> dict[str, Any]:
    context: dict[str, Any] = {
        name.lower()[3:]: unquote(value) for name, value in headers.items() if name.lower().startswith("ce-")
    }
    if not body:
        return _with_context(context, {})
    if kind in XML or kind.endswith("+xml"):
        return _with_context(context, _xml(body))
    if kind == "application/json" or kind.endswith("+json") or not kind:
        return _with_context(context, _json(body))
    context["datacontenttype"] = kind
    try:
        return _with_context(context, body.decode())
    except UnicodeDecodeError:
        raise FrameError(
            f"data of {kind} isn't text; covey's events have text, numbers, truth values and times"
        ) from None


def _with_context(context: dict[str, Any], data: Any) -> dict[str, Any]:
    for name in REQUIRED:
        if not isinstance(context.get(name), str) or not context[name]:
            raise FrameError(f"a CloudEvent needs {name}, as text")
    if context["specversion"] != "1.0":
        raise FrameError(f"specversion {context['specversion']!r} is not understood; use 1.0")
    for name, value in context.items():
        if not isinstance(value, str | int | bool):
            raise FrameError(f"the context attribute {name} is neither text, an integer nor a truth value")
    if not isinstance(data, dict):
        data = {"data": data}
    elif CONTEXT in data:
        raise FrameError(f"data has a member {CONTEXT!r}, which is the context's name here; give it another")
    return {**data, CONTEXT: context}


def _xml(body: bytes) -> dict[str, Any]:
    """The event of a document, with a record for each element that has elements."""
    try:
        return xml_event(body)
    except EventError as error:
        raise FrameError(f"the body isn't a simple XML document: {error}") from None


def _json(body: bytes) -> Any:
    try:
        return msgspec.json.decode(body)
    except (msgspec.DecodeError, UnicodeDecodeError, RecursionError, ValueError) as error:
        raise FrameError(f"the body isn't JSON: {' '.join(str(error).split())}") from None
