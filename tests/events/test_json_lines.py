"""Lines of JSON are events; a line that isn't one is named by its number."""

from __future__ import annotations

import io
import json
import math
from pathlib import Path
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from covey.errors import EventError
from covey.events import BadLine, EventLimits, read_json_lines


def test_files_are_read_by_path_as_bytes_and_as_text(tmp_path: Path) -> None:
    path = tmp_path / "events.jsonl"
    path.write_bytes('\ufeff{"a": "é"}\r\n\n  \n{"a": {"b": [1, null]}}'.encode())
    wanted = [{"a": "é"}, {"a": {"b": [1, None]}}]
    assert list(read_json_lines(path)) == list(read_json_lines(str(path))) == wanted
    with path.open("rb") as binary:
        assert list(read_json_lines(binary)) == wanted
    with path.open(encoding="utf-8") as text:
        assert list(read_json_lines(text)) == wanted


def test_numbers_are_exact_and_nan_and_infinity_accepted() -> None:
    text = '{"big": 9007199254740993, "huge": 1' + "0" * 40 + ', "n": NaN, "i": Infinity, "m": -Infinity, "f": 1.0}'
    (event,) = read_json_lines(io.StringIO(text))
    assert event["big"] == 2**53 + 1
    assert event["huge"] == 10**40
    assert math.isnan(event["n"])
    assert (event["i"], event["m"]) == (math.inf, -math.inf)
    assert type(event["f"]) is float


@pytest.mark.parametrize(
    ("line", "message"),
    [
        (b'{"a": }', "not JSON: Expecting value at column 7"),
        (b"[1]", "a JSON array, not an object"),
        (b"null", "a JSON null"),
        (b'{"a": "\xff"}', "not UTF-8 at byte 7"),
        (b'{"a": "\\ud800"}', "surrogate"),
        (b'{"a": ' + b"[" * 100_000, "nested too deeply"),
        (b'{"a": ' + b"9" * 5_000 + b"}", "more digits"),
    ],
)
def test_a_bad_line_is_named_or_collected(line: bytes, message: str) -> None:
    content = b'{"n": 1}\n\n' + line + b'\n{"n": 2}\n'
    with pytest.raises(EventError) as caught:
        list(read_json_lines(io.BytesIO(content), name="events.jsonl"))
    assert str(caught.value).startswith("events.jsonl line 3: ")
    assert message in str(caught.value)
    bad: list[BadLine] = []
    assert list(read_json_lines(io.BytesIO(content), name="events.jsonl", bad=bad)) == [{"n": 1}, {"n": 2}]
    assert [one.line for one in bad] == [3]
    assert bad[0].message == str(caught.value)


def test_whole_surrogate_pairs_are_text() -> None:
    assert list(read_json_lines(io.StringIO('{"a": "\\ud83d\\ude00"}'))) == [{"a": "\U0001f600"}]


@pytest.mark.parametrize("make", [io.StringIO, lambda text: io.BytesIO(text.encode())])
@pytest.mark.parametrize("end", ["\n", "\r\n", ""])
def test_long_lines_are_skipped_without_being_held(make: Any, end: str) -> None:
    exact = '{"a": "' + "x" * 11 + '"}'
    limits = EventLimits(line_length=len(exact))
    bad: list[BadLine] = []
    text = "\n".join([exact, '{"a": "' + "y" * 1000 + '"}', '{"b": 1}', exact]) + end
    found = list(read_json_lines(make(text), bad=bad, limits=limits))
    assert [list(event) for event in found] == [["a"], ["b"], ["a"]]
    assert [one.line for one in bad] == [2]
    assert "longer than 20 characters" in bad[0].message


def test_errors_call_a_file_by_its_name(tmp_path: Path) -> None:
    path = tmp_path / "bad.jsonl"
    path.write_text("x")
    with pytest.raises(EventError, match=r"^bad.jsonl line 1: "):
        list(read_json_lines(path))


@given(st.lists(st.dictionaries(st.text(max_size=3), st.integers() | st.text(max_size=5) | st.floats(allow_nan=False))))
def test_what_json_writes_is_read_back(events: list[dict[str, Any]]) -> None:
    text = "\n".join(json.dumps(event, ensure_ascii=False) for event in events)
    try:
        encoded = text.encode()
    except UnicodeEncodeError:
        return
    assert list(read_json_lines(io.BytesIO(encoded))) == events
