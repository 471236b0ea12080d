"""Files of XML documents: a document a line, or one in the whole file; what isn't simple costs only itself."""

from __future__ import annotations

import io
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from covey.events.json_lines import BadLine
from covey.events.limits import EventLimits
from covey.events.xml_lines import read_xml_lines

SMALL = EventLimits(document_length=100)


def read(text: str | bytes, limits: EventLimits = SMALL) -> list[Any]:
    content = text.encode() if isinstance(text, str) else text
    found = read_xml_lines(io.BytesIO(content), limits=limits)
    return [(one.line, one.message.partition(": ")[2]) if isinstance(one, BadLine) else one for one in found]


def test_a_document_a_line_with_or_without_a_root() -> None:
    text = "\n<sale><price>5</price><by><name>Ann</name></by></sale>\n \n<price>6</price><size>L</size>"
    assert read(text) == [(2, {"price": 5, "by": {"name": "Ann"}}), (4, {"price": 6, "size": "L"})]


@pytest.mark.parametrize("text", ["<sale>\n<price>\n5</price>\n</sale>\n", '<?xml version="1.0"?>\n<price>5</price>\n'])
def test_one_document_over_many_lines(text: str) -> None:
    assert read(text) == [(1, {"price": 5})]


def test_what_is_not_simple_is_named_and_costs_only_itself() -> None:
    lines = [
        '<!DOCTYPE x [<!ENTITY e SYSTEM "file:///etc/passwd">]><price>&e;</price>',
        '<price unit="EUR">5</price>',
        "<price>5",
        "<price>&e;</price>",
        f"<price>{'9' * 500}</price>",
        "<price>6</price>",
    ]
    found = read("\n".join(lines))
    assert found[-1] == (6, {"price": 6})
    assert [line for line, _ in found] == [1, 2, 3, 4, 5, 6]
    for (_, problem), reason in zip(
        found, ("DOCTYPE", "attributes", "not XML", "undefined entity", "longer"), strict=False
    ):
        assert reason in problem


def test_a_line_without_an_end_is_read_no_further_than_a_document_may_be_long() -> None:
    class Endless(io.RawIOBase):
        given = 0

        def readline(self, size: int | None = -1) -> bytes:  # type: ignore[override]
            assert size is not None
            assert size > 0
            self.given += size
            return b"<" * size if self.given < 10_000 else b""

        def read(self, size: int = -1) -> bytes:
            assert size >= 0
            return b"<" * size

    (found,) = list(read_xml_lines(Endless(), limits=SMALL))  # type: ignore[arg-type]
    assert isinstance(found, BadLine)


@given(st.lists(st.binary(max_size=60) | st.just(b"<a>1</a>"), max_size=6))
def test_whatever_the_bytes_every_line_is_an_event_or_bad(lines: list[bytes]) -> None:
    for found in read_xml_lines(io.BytesIO(b"\n".join(lines)), limits=SMALL):
        assert isinstance(found, BadLine) or isinstance(found[1], dict)
