"""What the figures were measured on: processor, cores, memory, versions; never a name or a path."""

from __future__ import annotations

import os
import platform
import re
from collections.abc import Sequence
from importlib.metadata import PackageNotFoundError, version
from pathlib import Path
from typing import Final

PACKAGES: Final = ("covey", "numpy", "numba", "pyarrow", "oxidd", "pyspark")


def describe(packages: Sequence[str] = PACKAGES) -> dict[str, str]:
    """Facts in the order in which pages print them."""
    facts = {
        "Processor": _processor(),
        "Cores": str(os.cpu_count()),
        "Memory": f"{os.sysconf('SC_PAGE_SIZE') * os.sysconf('SC_PHYS_PAGES') / 2**30:.0f} GiB",
        "System": f"{platform.system()} {platform.machine()}",
        "Python": platform.python_version(),
    }
    for package in packages:
        try:
            facts[package] = version(package)
        except PackageNotFoundError:
            continue
    return facts


def _processor() -> str:
    try:
        text = Path("/proc/cpuinfo").read_text()
    except OSError:
        return platform.processor() or "unknown"
    found = re.search(r"model name\s*:\s*(.+)", text)
    return found[1].strip() if found else platform.machine()
