"""How commands end: interrupted, with nobody reading, or at a live pipe that has no more for now."""

from __future__ import annotations

import io
import json
import os
import subprocess
import sys
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pyarrow.parquet as pq
import pytest

import covey as library
from tests.cli.conftest import EVENTS, MATCHES, Outcome, lines

Run = Callable[..., Outcome]


@pytest.fixture
def interrupted(monkeypatch: pytest.MonkeyPatch) -> None:
    """Ctrl-C comes with the third batch."""
    real, calls = library.Index.match_batch, []

    def match_batch(self: library.Index, events: Any, **options: Any) -> library.Matches:
        calls.append(1)
        if len(calls) == 3:
            raise KeyboardInterrupt
        return real(self, events, **options)

    monkeypatch.setattr(library.Index, "match_batch", match_batch)


@pytest.mark.usefixtures("interrupted")
def test_an_interrupt_keeps_what_is_done_and_says_how_far_it_got(covey: Run, subscriptions: Path, events: Path) -> None:
    done = covey("match", subscriptions, events, "--batch-size", 1, "--threads", 1)
    assert done.code == 130
    assert done.rows == MATCHES[:1]
    assert done.err.startswith("covey: interrupted after 2 events (1 of 2 events matched, 2 matches)")


@pytest.mark.usefixtures("interrupted")
def test_an_interrupt_leaves_a_whole_parquet_file(
    covey: Run, subscriptions: Path, events: Path, tmp_path: Path
) -> None:
    out = tmp_path / "out.parquet"
    assert covey("match", subscriptions, events, "--batch-size", 1, "--threads", 1, "-o", out).code == 130
    assert pq.read_table(out).to_pylist() == MATCHES[:1]


def test_a_reader_that_goes_away_is_no_error(subscriptions: Path, tmp_path: Path) -> None:
    events = lines(tmp_path / "many.jsonl", EVENTS * 20_000)
    command = [sys.executable, "-m", "covey.cli", "match", str(subscriptions), str(events), "--batch-size", "100"]
    with subprocess.Popen(command, stdout=subprocess.PIPE, stderr=subprocess.PIPE) as process:
        assert process.stdout is not None
        assert process.stderr is not None
        assert json.loads(process.stdout.readline()) == MATCHES[0]
        process.stdout.close()
        assert process.stderr.read() == b""
    assert process.returncode == 0


def test_a_slow_pipe_gets_its_answers_at_once(subscriptions: Path) -> None:
    command = [sys.executable, "-m", "covey.cli", "match", str(subscriptions), "-"]
    with subprocess.Popen(command, stdin=subprocess.PIPE, stdout=subprocess.PIPE) as process:
        assert process.stdin is not None
        assert process.stdout is not None
        for number in range(3):
            process.stdin.write(b'{"price": 1}\n{"price"')
            process.stdin.flush()
            assert json.loads(process.stdout.readline()) == {"event": 2 * number, "subscriptions": ["cheap"]}
            process.stdin.write(b": 2}\n")
            process.stdin.flush()
            assert json.loads(process.stdout.readline()) == {"event": 2 * number + 1, "subscriptions": ["cheap"]}
        process.stdin.write(b'{"price": 3}')
        process.stdin.close()
        assert json.loads(process.stdout.read()) == {"event": 6, "subscriptions": ["cheap"]}
    assert process.returncode == 0


@pytest.mark.parametrize("chunk", [1, 2, 7, 1 << 18])
@pytest.mark.parametrize("most", [1, 2, 100])
def test_blocks_of_a_pipe_and_of_a_file_are_its_lines(chunk: int, most: int, monkeypatch: pytest.MonkeyPatch) -> None:
    from covey.cli.lines import Blocks

    monkeypatch.setattr("covey.cli.lines._CHUNK", chunk)
    monkeypatch.setattr("covey.cli.lines._BLOCK", chunk)
    content = b"one\n\nthree and more\n" + b"long" * 100 + b"\n\nlast"
    reading, writing = os.pipe()
    os.write(writing, content)
    os.close(writing)
    with open(reading, "rb") as pipe:
        for file in (io.BytesIO(content), pipe):
            found: list[bytes] = []
            for block in Blocks(file, most, 14):
                assert block.first_line == len(found) + 1
                held = block.content.splitlines(keepends=True)
                assert len(held) <= most
                found += held
            cut = found.pop(3)
            assert found == [b"one\n", b"\n", b"three and more\n", b"\n", b"last"]
            assert cut.startswith(b"long" * 4)
            assert 14 + 2 < len(cut) <= 14 + 2 + 1 + chunk
