from __future__ import annotations

import io
import json
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import pytest

from covey.cli import main

SUBSCRIPTIONS = [
    ("cheap", "price < 10"),
    ("ibm", "company = 'IBM'"),
    ("none", "price > 1000"),
    ("no price", "price IS NULL"),
]
EVENTS: list[dict[str, Any]] = [
    {"price": 5, "company": "IBM"},
    {"price": 500, "company": "Dell"},
    {"company": "IBM"},
    {"price": 7.5, "company": "Dell"},
]
MATCHES = [
    {"event": 0, "subscriptions": ["cheap", "ibm"]},
    {"event": 2, "subscriptions": ["ibm", "no price"]},
    {"event": 3, "subscriptions": ["cheap"]},
]


@dataclass
class Outcome:
    code: int
    out: str
    err: str

    @property
    def rows(self) -> list[dict[str, Any]]:
        return [json.loads(line) for line in self.out.splitlines()]


@pytest.fixture
def covey(capsys: pytest.CaptureFixture[str]) -> Callable[..., Outcome]:
    """Run a command in this process."""

    def run(*arguments: object) -> Outcome:
        capsys.readouterr()
        code = main([str(argument) for argument in arguments])
        captured = capsys.readouterr()
        return Outcome(code, captured.out, captured.err)

    return run


@pytest.fixture
def stdin(monkeypatch: pytest.MonkeyPatch) -> Callable[[bytes], None]:
    def give(content: bytes) -> None:
        monkeypatch.setattr("sys.stdin", io.TextIOWrapper(io.BytesIO(content)))

    return give


def lines(path: Path, rows: Sequence[Any]) -> Path:
    path.write_text("".join((row if isinstance(row, str) else json.dumps(row)) + "\n" for row in rows))
    return path


@pytest.fixture
def subscriptions(tmp_path: Path) -> Path:
    return lines(tmp_path / "subscriptions.jsonl", [{"id": one, "filter": text} for one, text in SUBSCRIPTIONS])


@pytest.fixture
def events(tmp_path: Path) -> Path:
    return lines(tmp_path / "events.jsonl", EVENTS)
