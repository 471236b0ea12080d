"""The Pythons that this machine has, one of each version that covey is for."""

from __future__ import annotations

import os
import subprocess
from collections.abc import Iterator
from pathlib import Path
from typing import Final

VERSIONS: Final = ("3.11", "3.12", "3.13", "3.14")
_ELSEWHERE: Final = ("~/.pyenv/versions/*/bin", "~/.local/share/uv/python/*/bin", "/opt/python/*/bin")
"""Where tools that manage Pythons put them, off the PATH or behind programs that only may lead there."""


def found() -> dict[str, Path]:
    """By version. A program of that name isn't enough: it must run and be that Python."""
    pythons: dict[str, Path] = {}
    for version in VERSIONS:
        for program in _programs(f"python{version}"):
            if version not in pythons and _runs(program, version):
                pythons[version] = program
    return pythons


def _programs(name: str) -> Iterator[Path]:
    for directory in os.environ["PATH"].split(os.pathsep):
        yield Path(directory or ".") / name
    for pattern in map(os.path.expanduser, _ELSEWHERE):
        yield from sorted(Path("/").glob(f"{pattern[1:]}/{name}"))


def _runs(program: Path, version: str) -> bool:
    code = "import ensurepip, sys, venv; print('%d.%d' % sys.version_info[:2])"
    try:
        done = subprocess.run([program, "-c", code], capture_output=True, text=True, timeout=60, check=False)
    except OSError:
        return False
    return (done.returncode, done.stdout) == (0, f"{version}\n")
