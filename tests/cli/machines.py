"""Machines that lack something, as environments for a process: no Java to be found, packages that can't be imported."""

from __future__ import annotations

import os
from collections.abc import Sequence
from pathlib import Path

_BLOCKER = """
import sys


class Blocked:
    def find_spec(self, name, path=None, target=None):
        if name.partition(".")[0] in {names!r}:
            raise ModuleNotFoundError(f"No module named {{name!r}}", name=name)
        return None


sys.meta_path.insert(0, Blocked())
"""


def without_java(folder: Path) -> dict[str, str]:
    """An environment in which neither JAVA_HOME nor PATH leads to a Java."""
    programs = folder / "programs"
    programs.mkdir()
    for directory in os.environ["PATH"].split(os.pathsep):
        for program in sorted(Path(directory).glob("*")) if directory else ():
            link = programs / program.name
            if not program.name.startswith("java") and not link.exists():
                link.symlink_to(program)
    return {name: value for name, value in os.environ.items() if name != "JAVA_HOME"} | {"PATH": str(programs)}


def without_packages(folder: Path, environment: dict[str, str], names: Sequence[str]) -> dict[str, str]:
    """The environment with a Python that can't import such packages, as if they weren't installed."""
    site = folder / "site"
    site.mkdir()
    (site / "sitecustomize.py").write_text(_BLOCKER.format(names=frozenset(names)))
    paths = [str(site), *filter(None, [environment.get("PYTHONPATH")])]
    return environment | {"PYTHONPATH": os.pathsep.join(paths)}
