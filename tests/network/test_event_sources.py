"""What programs publish, read into batches."""

from __future__ import annotations

import json
from typing import Any

import pyarrow as pa
import pytest
from hypothesis import given
from hypothesis import strategies as st

from covey.errors import EventError
from covey.network.event_sources import in_batches, read_line

VALUES = st.recursive(
    st.none() | st.booleans() | st.integers() | st.floats() | st.text(),
    lambda inner: st.lists(inner, max_size=3) | st.dictionaries(st.text(max_size=3), inner, max_size=3),
    max_leaves=6,
)
EVENTS = st.dictionaries(st.text(max_size=4), VALUES, max_size=4)


def plainly(text: str) -> Any:
    """What Python's own reader makes of a line; None for what is no event."""
    try:
        event = json.loads(text)
    except (json.JSONDecodeError, RecursionError):
        return None
    return event if isinstance(event, dict) else None


@given(EVENTS.map(json.dumps) | EVENTS.map(lambda event: json.dumps(event, ensure_ascii=False)) | st.text(), st.data())
def test_a_line_is_read_as_python_reads_it(text: str, data: st.DataObject) -> None:
    if text and data.draw(st.booleans()):
        at = data.draw(st.integers(0, len(text) - 1))
        text = text[:at] + data.draw(st.sampled_from(["", "1e400", "}", '"', ",", "NaN"])) + text[at + 1 :]
    try:
        line = text.encode()
    except UnicodeEncodeError:
        return
    expected = plainly(text)
    for given_as in (text, line):
        if expected is None:
            with pytest.raises(EventError, match="line 7"):
                read_line(given_as, "line 7")
        else:
            assert repr(read_line(given_as, "line 7")) == repr(expected)


def test_what_is_no_event_is_said_with_its_line() -> None:
    for line, problem in ((b"{", "isn't JSON"), (b"3", "isn't a JSON object"), (b'{"a": "\xff"}', "isn't UTF-8")):
        with pytest.raises(EventError, match=f"line 3 {problem}"):
            list(in_batches([b'{"x": 1}', b"", line], 2))


@given(
    st.lists(st.dictionaries(st.sampled_from("abc"), st.integers(-5, 5), min_size=1), max_size=12), st.integers(1, 5)
)
def test_all_ways_to_give_events_give_the_same(events: list[dict[str, int]], most: int) -> None:
    lines = [json.dumps(event).encode() for event in events]
    table = pa.Table.from_pylist(events, pa.schema({name: pa.int64() for name in "abc"}))
    for source in (events, iter(events), lines, [line.decode() for line in lines], b"\n\n".join(lines) + b"\n"):
        batches = list(in_batches(source, most))
        assert [event for batch in batches for event in batch] == events
        assert all(0 < len(batch) <= most for batch in batches)
    for source in (table, table.to_reader(), *table.combine_chunks().to_batches()):
        batches = list(in_batches(source, most))
        found = [event for batch in batches for event in batch]
        assert [{name: value for name, value in event.items() if value is not None} for event in found] == events
        assert all(0 < len(batch) <= most for batch in batches)
