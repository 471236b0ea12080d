"""What the figures were measured on: the lab's facts about the machine, and the tools of other engines."""

from __future__ import annotations

import re
import shutil
import subprocess

from covey.lab import machine

PACKAGES = ("covey", "numpy", "numba", "pyarrow", "oxidd", "duckdb")
TOOLS = {"Rust": ["rustc", "--version"], "Go": ["go", "version"], "Java": ["java", "-version"]}


def describe() -> dict[str, str]:
    """Facts in the order in which the page prints them."""
    facts = machine.describe(PACKAGES)
    for name, command in TOOLS.items():
        found = _tool(command)
        if found:
            facts[name] = found
    return facts


def _tool(command: list[str]) -> str | None:
    if shutil.which(command[0]) is None:
        return None
    done = subprocess.run(command, capture_output=True, text=True, check=False)
    found = re.search(r"\d+(\.\d+)+", done.stdout + done.stderr)
    return found[0] if found else None
