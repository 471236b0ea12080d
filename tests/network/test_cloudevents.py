from __future__ import annotations

import gzip
import json
import zlib
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from covey.network.cloudevents import BATCH, STRUCTURED, decompressed, read_events, to_cloudevent
from covey.network.errors import FrameError
from covey.network.limits import NetworkLimits

LIMITS = NetworkLimits()
CONTEXT = {"specversion": "1.0", "id": "1", "source": "/stock", "type": "quote"}
DATA = {"company": "IBM", "price": 120}


def read(kind: str | None, body: Any, headers: dict[str, str] | None = None) -> list[dict[str, Any]]:
    data = body if isinstance(body, bytes) else json.dumps(body).encode()
    return read_events({**({} if kind is None else {"Content-Type": kind}), **(headers or {})}, data, LIMITS)


def test_a_structured_event_gives_its_data_as_attributes_and_its_context_as_a_record() -> None:
    assert read(f"{STRUCTURED}; charset=utf-8", {**CONTEXT, "data": DATA}) == [{**DATA, "ce": CONTEXT}]


def test_a_batch_gives_its_events_in_order() -> None:
    second = {**CONTEXT, "id": "2"}
    assert read(BATCH, [{**CONTEXT, "data": DATA}, second]) == [{**DATA, "ce": CONTEXT}, {"ce": second}]


def test_a_binary_event_has_its_context_in_headers() -> None:
    headers = {f"ce-{name}": value for name, value in CONTEXT.items()}
    assert read("application/json", DATA, headers) == [{**DATA, "ce": CONTEXT}]


def test_headers_of_a_binary_event_are_percent_decoded() -> None:
    headers = {f"CE-{name.title()}": value for name, value in {**CONTEXT, "source": "caf%C3%A9"}.items()}
    assert read("application/json", DATA, headers)[0]["ce"]["source"] == "café"


def test_data_that_is_no_object_becomes_the_attribute_data() -> None:
    assert read(STRUCTURED, {**CONTEXT, "data": "plain"})[0]["data"] == "plain"
    headers = {f"ce-{name}": value for name, value in CONTEXT.items()}
    assert read("text/plain", b"plain", headers)[0]["data"] == "plain"


def test_plain_json_and_json_lines_are_events_without_a_context() -> None:
    assert read("application/json", DATA) == [DATA]
    assert read(None, [DATA, {"x": 1}]) == [DATA, {"x": 1}]
    assert read("application/x-ndjson", b'{"x": 1}\n\n{"x": 2}\n') == [{"x": 1}, {"x": 2}]


@pytest.mark.parametrize("kind", ["application/xml", "text/xml; charset=utf-8", "application/quote+xml"])
def test_a_simple_xml_document_is_one_event(kind: str) -> None:
    body = b"<quote><company>IBM</company><price>120</price><at><venue>X</venue><tick>0.5</tick></at></quote>"
    assert read(kind, body) == [{"company": "IBM", "price": 120, "at": {"venue": "X", "tick": 0.5}}]


def test_xml_may_be_a_cloudevents_data() -> None:
    headers = {f"ce-{name}": value for name, value in CONTEXT.items()}
    body = b"<q><company>IBM</company><price>120</price></q>"
    assert read("application/xml", body, headers) == [{**DATA, "ce": CONTEXT}]


OUTSIDE = b'<!DOCTYPE q [<!ENTITY x SYSTEM "file:///etc/hostname">]><q><a>&x;</a></q>'
LAUGHS = b'<!DOCTYPE q [<!ENTITY a "ha"><!ENTITY b "&a;&a;&a;">]><q><a>&b;</a></q>'


@pytest.mark.parametrize(
    ("body", "problem"),
    [
        (OUTSIDE, "a DOCTYPE is not accepted"),
        (LAUGHS, "a DOCTYPE is not accepted"),
        (b"<q><a>&x;</a></q>", "not XML"),
        (b'<q a="1"><b>2</b></q>', "has XML attributes"),
        (b"<q>text <b>2</b></q>", "simple XML"),
        (b"<q><a>1</q>", "not XML"),
        (b"<a>" * 5_000 + b"1" + b"</a>" * 5_000, "nested"),
        (b"\xff\xfe", "not UTF-8"),
        (b'<?xml version="1.0" encoding="utf-16"?><q><a>1</a></q>', "encoding"),
    ],
)
def test_xml_that_is_not_simple_is_refused_by_name(body: bytes, problem: str) -> None:
    with pytest.raises(FrameError, match=problem):
        read("application/xml", body)


@pytest.mark.parametrize(
    ("kind", "body", "problem"),
    [
        (STRUCTURED, {**CONTEXT, "id": ""}, "needs id"),
        (STRUCTURED, {**CONTEXT, "specversion": "0.3"}, "use 1.0"),
        (STRUCTURED, {**CONTEXT, "extra": {"a": 1}}, "extra is neither"),
        (STRUCTURED, {**CONTEXT, "data": {"ce": 1}}, "member 'ce'"),
        (STRUCTURED, [1], "a CloudEvent is a JSON object"),
        (BATCH, {}, "is an array"),
        ("application/cloudevents+avro", b"", "not understood"),
        (None, b"{", "isn't JSON"),
        (None, b"\xff", "isn't JSON"),
        (None, b"3", "an event is a JSON object"),
        (None, b"[" * 100_000, "isn't JSON"),
        (None, b'{"x":' * 30 + b"1" + b"}" * 30, "nested more deeply"),
    ],
)
def test_a_body_that_is_no_event_is_refused_with_what_is_wrong(kind: str | None, body: Any, problem: str) -> None:
    with pytest.raises(FrameError, match=problem):
        read(kind, body)


@given(
    st.binary(max_size=40), st.sampled_from([STRUCTURED, BATCH, "application/json", "application/x-ndjson", "text/xml"])
)
def test_whatever_a_body_holds_it_is_events_or_a_frame_error(body: bytes, kind: str) -> None:
    try:
        events = read(kind, body)
    except FrameError:
        return
    assert all(isinstance(event, dict) for event in events)


@pytest.mark.parametrize("compress", [gzip.compress, zlib.compress])
def test_a_compressed_body_is_read(compress: Any) -> None:
    encoding = "gzip" if compress is gzip.compress else "deflate"
    assert decompressed(compress(b'{"x": 1}'), encoding, LIMITS) == b'{"x": 1}'


def test_a_body_that_grows_beyond_the_limit_is_refused_before_it_is_there() -> None:
    bomb = gzip.compress(bytes(50_000_000))
    assert len(bomb) < LIMITS.message_bytes
    with pytest.raises(FrameError, match="decompressed_bytes"):
        decompressed(bomb, "gzip", LIMITS)


CUT = gzip.compress(b"xyz", mtime=0)[:-9]


@pytest.mark.parametrize(("body", "encoding"), [(b"x", "gzip"), (CUT, "gzip"), (b"x", "br")])
def test_a_body_that_is_not_compressed_as_it_says_is_refused(body: bytes, encoding: str) -> None:
    with pytest.raises(FrameError):
        decompressed(body, encoding, LIMITS)


def test_what_came_as_a_cloudevent_goes_out_with_the_same_context() -> None:
    event = read(STRUCTURED, {**CONTEXT, "data": DATA})[0]
    assert to_cloudevent(event, "a/1", "ann") == {**CONTEXT, "datacontenttype": "application/json", "data": DATA}


def test_what_did_not_gets_a_context_of_its_own() -> None:
    sent = to_cloudevent(DATA, "a/1", "ann")
    assert read(STRUCTURED, sent) == [{**DATA, "ce": {name: value for name, value in sent.items() if name != "data"}}]
