"""Saved indexes answer as before, damage is found, and a killed save leaves a whole file."""

from __future__ import annotations

import os
import random
import signal
import subprocess
import sys
import time
from pathlib import Path

import pytest
from tests.random_worlds import event_of, filter_of

import covey
from covey.matching.storage import MAGIC, content_hash


@pytest.fixture
def saved(tmp_path: Path) -> Path:
    rng = random.Random(11)
    index = covey.Index()
    index.add_many((f"s{number}", str(filter_of(rng))) for number in range(200))
    index.save(tmp_path / "rules.covey")
    return tmp_path / "rules.covey"


def test_a_files_hash_is_that_of_its_content(saved: Path, tmp_path: Path) -> None:
    index = covey.Index.open(saved)
    index.save(tmp_path / "again.covey")
    assert content_hash(tmp_path / "again.covey") == content_hash(saved)
    index.remove("s7")
    index.save(tmp_path / "again.covey")
    assert content_hash(tmp_path / "again.covey") != content_hash(saved)


def test_what_can_not_hold_an_index_has_no_hash(tmp_path: Path) -> None:
    (tmp_path / "short.covey").write_bytes(b"COVEY")
    with pytest.raises(covey.IndexFileError, match=r"not a covey index \(only 5 bytes\)"):
        content_hash(tmp_path / "short.covey")
    with pytest.raises(covey.IndexFileError, match="No such file"):
        content_hash(tmp_path / "missing.covey")


def test_rows_are_what_another_index_takes(saved: Path) -> None:
    index = covey.Index.open(saved)
    index.remove("s3")
    index.add("head", "x = 1")
    rows = list(index.rows())
    assert [id for id, _ in rows] == [f"s{n}" for n in range(200) if n != 3] + ["head"]
    assert all(text == index.text(id) for id, text in rows)


@pytest.mark.parametrize("semantics", ["sql", "simple", "strict", "default"])
def test_an_opened_index_answers_as_the_saved_one(tmp_path: Path, semantics: str) -> None:
    rng = random.Random(semantics)
    schema = covey.Schema({"j": covey.Attribute("double", default=2.0)}) if semantics == "default" else None
    index = covey.Index(semantics=semantics, schema=schema)  # type: ignore[arg-type]
    index.add_many(((f"s{n}", str(filter_of(rng))) for n in range(150)), on_error="collect")
    for number in range(150, 200):
        try:
            index.add(f"s{number}", filter_of(rng))
        except covey.FilterTypeError:
            assert schema is not None
    for gone in list(index.ids())[::7]:
        index.remove(gone)
    index.save(tmp_path / "a.covey")
    batch = [event_of(rng) for _ in range(60)]
    if schema is not None:
        batch = [event for event in batch if isinstance(event.get("j"), float)]
    for verify in (True, False):
        opened = covey.Index.open(tmp_path / "a.covey", verify=verify)
        assert len(opened) == len(index)
        assert opened.match_batch(batch).to_pylist() == index.match_batch(batch).to_pylist()
        assert [opened.match(event) for event in batch] == [index.match(event) for event in batch]
        assert [opened.text(id) for id in opened.ids()] == [index.text(id) for id in index.ids()]


def test_an_opened_index_can_be_changed_and_saved_over_itself(saved: Path) -> None:
    index = covey.Index.open(saved)
    index.remove("s3")
    index.replace("s4", "x = 'new'")
    index.add("fresh", "x = 'new'")
    index.save(saved)
    again = covey.Index.open(saved)
    assert len(again) == 200
    assert "s3" not in again
    assert again.match({"x": "new"})[-2:] == ["s4", "fresh"]
    again.compact()
    assert "s3" not in again
    assert len(again) == 200


def test_an_empty_index_can_be_saved(tmp_path: Path) -> None:
    covey.Index().save(tmp_path / "empty.covey")
    assert covey.Index.open(tmp_path / "empty.covey").match({"x": 1}) == []


def test_a_truncated_file_is_a_clear_error(saved: Path) -> None:
    whole = saved.read_bytes()
    for length in [0, 5, 20, 24, 100, len(whole) // 2, len(whole) - 1]:
        saved.write_bytes(whole[:length])
        for verify in (True, False):
            with pytest.raises(covey.IndexFileError, match=r"rules\.covey"):
                covey.Index.open(saved, verify=verify)


def test_any_damaged_byte_is_a_clear_error(saved: Path) -> None:
    whole = bytearray(saved.read_bytes())
    rng = random.Random(2)
    found = 0
    for position in [*range(24), *(rng.randrange(len(whole)) for _ in range(150))]:
        damaged = bytearray(whole)
        damaged[position] ^= 0x5A
        saved.write_bytes(damaged)
        try:
            covey.Index.open(saved)
        except covey.IndexFileError:
            found += 1
    # Bytes between the arrays are padding, and bytes 20 to 23 are reserved: those may be damaged without harm.
    assert found > 100


def test_what_is_not_an_index_is_a_clear_error(tmp_path: Path) -> None:
    (tmp_path / "x.covey").write_bytes(b'{"id": "a"}' * 10)
    with pytest.raises(covey.IndexFileError, match="not a covey index"):
        covey.Index.open(tmp_path / "x.covey")
    with pytest.raises(covey.IndexFileError, match="No such file"):
        covey.Index.open(tmp_path / "nothing.covey")
    (tmp_path / "y.covey").write_bytes(MAGIC[:-1] + b"\x09" + b"\0" * 100)
    with pytest.raises(covey.IndexFileError, match="version"):
        covey.Index.open(tmp_path / "y.covey")


LAST = 0.05
"""Seconds before the last process is killed, and longer until it has saved once."""
_SAVER = """
import sys, covey
index = covey.Index()
index.add_many((f"s{n}", f"x = {n} AND y < {n}") for n in range(4000))
print("ready", flush=True)
while True:
    index.save(sys.argv[1])
"""


def test_a_killed_save_leaves_the_old_file_or_the_new_one(tmp_path: Path) -> None:
    target = tmp_path / "rules.covey"
    old = covey.Index()
    old.add("old", "x = 1")
    old.save(target)
    for delay in (0.0, 0.003, 0.011, 0.02, LAST):
        process = subprocess.Popen([sys.executable, "-c", _SAVER, str(target)], stdout=subprocess.PIPE)
        assert process.stdout is not None
        assert process.stdout.readline() == b"ready\n"
        deadline = time.monotonic() + delay
        before = target.stat().st_ino
        while time.monotonic() < deadline or (delay == LAST and target.stat().st_ino == before):
            pass
        os.kill(process.pid, signal.SIGKILL)
        process.wait()
        process.stdout.close()
        assert len(covey.Index.open(target)) in (1, 4000)
    assert len(covey.Index.open(target)) == 4000
