"""The examples run."""

from __future__ import annotations

import runpy
import subprocess
import sys
from pathlib import Path

import pytest

from tests.docs.pages import ROOT

EXAMPLES = sorted((ROOT / "examples").glob("*.py"))


@pytest.mark.parametrize("example", EXAMPLES, ids=lambda example: example.name)
def test_an_example_runs(example: Path, capsys: pytest.CaptureFixture[str]) -> None:
    runpy.run_path(str(example), run_name="__main__")
    assert capsys.readouterr().out


@pytest.mark.parametrize("example", ["tables.py", "service.py", pytest.param("stream.py", marks=pytest.mark.long)])
def test_the_first_day_goes_well(example: str) -> None:
    command = [sys.executable, str(ROOT / "examples" / "first_day" / example)]
    done = subprocess.run(command, capture_output=True, text=True, timeout=900, check=False)
    assert done.returncode == 0, done.stderr[-4000:]
    assert done.stdout


@pytest.mark.parametrize("example", ["stock_quotes.py", "meta_auctions.py"])
def test_an_example_of_the_network_runs(example: str) -> None:
    command = [sys.executable, str(ROOT / "examples" / "network" / "brokers.py"), example]
    done = subprocess.run(command, capture_output=True, text=True, timeout=120, check=False)
    assert done.returncode == 0, done.stderr[-4000:]
    assert "listens on" in done.stdout
