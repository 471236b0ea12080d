"""What the figures were measured on: processor, cores, memory, versions; never a name or a path."""

from __future__ import annotations

import os
import platform
import re
import shutil
import subprocess
from importlib.metadata import PackageNotFoundError, version
from pathlib import Path

PACKAGES = ("covey", "numpy", "numba", "pyarrow", "oxidd", "duckdb")
TOOLS = {"Rust": ["rustc", "--version"], "Go": ["go", "version"], "Java": ["java", "-version"]}


def describe() -> dict[str, str]:
    """Facts in the order in which the page prints them."""
    facts = {
        "Processor": _processor(),
        "Cores": str(os.cpu_count()),
        "Memory": f"{os.sysconf('SC_PAGE_SIZE') * os.sysconf('SC_PHYS_PAGES') / 2**30:.0f} GiB",
        "System": f"{platform.system()} {platform.machine()}",
        "Python": platform.python_version(),
    }
    for package in PACKAGES:
        try:
            facts[package] = version(package)
        except PackageNotFoundError:
            continue
    for name, command in TOOLS.items():
        found = _tool(command)
        if found:
            facts[name] = found
    return facts


def _processor() -> str:
    try:
        text = Path("/proc/cpuinfo").read_text()
    except OSError:
        return platform.processor() or "unknown"
    found = re.search(r"model name\s*:\s*(.+)", text)
    return found[1].strip() if found else platform.machine()


def _tool(command: list[str]) -> str | None:
    if shutil.which(command[0]) is None:
        return None
    done = subprocess.run(command, capture_output=True, text=True, check=False)
    found = re.search(r"\d+(\.\d+)+", done.stdout + done.stderr)
    return found[0] if found else None
