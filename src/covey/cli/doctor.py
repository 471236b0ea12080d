"""`covey doctor`: what covey finds on this machine, one line a finding, with the remedy where something is missing.

What all of covey needs must be there; what only Spark, brokers or the papers' diagrams need may be missing, and its
line says what to do. Packages are imported, not only looked up: one that is installed for another processor or against
another NumPy is found here rather than in the middle of a match.
"""

from __future__ import annotations

import importlib
import os
import sys
from dataclasses import dataclass
from enum import Enum
from importlib.metadata import PackageNotFoundError, version
from pathlib import Path
from typing import Final

import covey
from covey.cli.arguments import DoctorOptions
from covey.errors import CoveyError

OLDEST_PYTHON: Final = (3, 11)


class State(Enum):
    """What a finding means; the value is the mark before its line."""

    GOOD = "✓"
    LESS = "–"
    """Something works less well, or not at all, that not everyone needs."""
    BAD = "✗"
    """covey can't work."""


@dataclass(frozen=True, slots=True)
class Finding:
    """One line of the report; the remedy is what to do about it."""

    state: State
    what: str
    remedy: str = ""

    def __str__(self) -> str:
        return f"{self.state.value} {self.what}" + (f"; {self.remedy}" if self.remedy else "")


@dataclass(frozen=True, slots=True)
class Package:
    """A package by the name that it is installed by and the one that it is imported by, and the versions that will do:
    this one or newer, but before that one."""

    name: str
    module: str
    oldest: str
    before: str


REQUIRED: Final = (
    Package("numpy", "numpy", "1.26", "3"),
    Package("numba", "numba", "0.67", "0.70"),
    Package("pyarrow", "pyarrow", "17", "27"),
    Package("google-re2", "re2", "1.1", "2"),
    Package("pyahocorasick", "ahocorasick", "2.1", "3"),
    Package("datasketches", "datasketches", "5.1", "6"),
    Package("rich", "rich", "13", "16"),
)
EXTRAS: Final = {
    "broker": (
        Package("aiohttp", "aiohttp", "3.10", "4"),
        Package("msgspec", "msgspec", "0.19", "1"),
        Package("prometheus-client", "prometheus_client", "0.20", "1"),
    ),
    "diagrams": (Package("oxidd", "oxidd", "0.11", "1"),),
    "spark": (
        Package("pyspark", "pyspark", "4.1", "5"),
        Package("pandas", "pandas", "2.2", "3"),
    ),
}
"""By the extra that brings them: `pip install 'covey[NAME]'`."""


def run(options: DoctorOptions) -> int:
    """Print what is found; the exit code says whether covey can work."""
    del options
    found = findings()
    for finding in found:
        print(finding)
    return int(any(finding.state is State.BAD for finding in found))


def findings() -> list[Finding]:
    """All there is to say, what everything needs first."""
    found = [_python(), Finding(State.GOOD, f"covey {covey.__version__} in {Path(covey.__file__).parent}")]
    required = [_package(package, State.BAD, "pip install --force-reinstall covey") for package in REQUIRED]
    found += required
    if all(finding.state is State.GOOD for finding in required):
        found.append(_bundle_finding())
    for extra, packages in EXTRAS.items():
        found += [_package(package, State.LESS, f"pip install 'covey[{extra}]'") for package in packages]
    found.append(_java())
    found.append(_machine())
    return found


def _python() -> Finding:
    said = f"Python {'.'.join(map(str, sys.version_info[:3]))} in {sys.prefix}"
    if sys.version_info >= OLDEST_PYTHON:
        return Finding(State.GOOD, said)
    return Finding(State.BAD, said, f"covey needs {'.'.join(map(str, OLDEST_PYTHON))} or newer")


def _package(package: Package, otherwise: State, remedy: str) -> Finding:
    try:
        importlib.import_module(package.module)
        installed = version(package.name)
    except (ModuleNotFoundError, PackageNotFoundError):
        return Finding(otherwise, f"{package.name} is not installed", remedy)
    except Exception as error:  # whatever a broken build raises when it is loaded
        return Finding(otherwise, f"{package.name} can't be imported ({_first_line(error)})", remedy)
    if _number(package.oldest) <= _number(installed) < _number(package.before):
        return Finding(State.GOOD, f"{package.name} {installed}")
    wanted = f"{package.oldest} or newer, below {package.before}"
    return Finding(otherwise, f"{package.name} is {installed}, not {wanted}", remedy)


def _bundle_finding() -> Finding:
    """Whether kernels came compiled with the package."""
    from covey.kernels import bundle

    compiled, said = bundle.describe()
    return Finding(State.GOOD if compiled else State.LESS, f"kernels: {said}")


def _java() -> Finding:
    """The Java that Spark would run on. Finding it is PySpark's neighbour, and without PySpark nobody needs it."""
    try:
        from covey.spark.session import describe_java
    except ImportError:
        return Finding(State.LESS, "Java was not looked for", "only PySpark needs it")
    try:
        return Finding(State.GOOD, f"Java {describe_java()}")
    except CoveyError as error:
        return Finding(State.LESS, str(error))


def _machine() -> Finding:
    cores = len(os.sched_getaffinity(0)) if hasattr(os, "sched_getaffinity") else os.cpu_count() or 1
    memory = os.sysconf("SC_PAGE_SIZE") * os.sysconf("SC_PHYS_PAGES") / 2**30
    return Finding(State.GOOD, f"{cores} core{'' if cores == 1 else 's'}, {memory:.1f} GiB of memory")


def _number(text: str) -> list[int]:
    """A version for comparing: its leading numbers."""
    numbers = []
    for part in text.split("."):
        if not part.isdecimal():
            break
        numbers.append(int(part))
    return numbers


def _first_line(error: Exception) -> str:
    return next(iter(str(error).splitlines()), type(error).__name__)
