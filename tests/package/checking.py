"""Type-checking a user's program against an installed covey: what mypy takes from a package is only what `py.typed` and
its own declarations say, not what this checkout is checked with."""

from __future__ import annotations

import os
import subprocess
import sys
from pathlib import Path
from typing import Final

PROGRAM: Final = Path(__file__).parent / "user_program.py"
SECONDS: Final = 600


def strict(program: Path, python: Path) -> subprocess.CompletedProcess[str]:
    """What `mypy --strict` says of a program that would run with such a Python, whose packages it sees."""
    environment = {name: value for name, value in os.environ.items() if name not in ("MYPYPATH", "PYTHONPATH")}
    return subprocess.run(
        [sys.executable, "-m", "mypy", "--strict", "--config-file=", "--python-executable", str(python),
         "--cache-dir", str(python.parents[2] / "mypy"), program.name],
        cwd=program.parent, env=environment, capture_output=True, text=True, timeout=SECONDS, check=False,
    )  # fmt: skip
