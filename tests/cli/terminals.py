"""Running a command in a terminal of its own."""

from __future__ import annotations

import os
import pty
import subprocess
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Final

LAST_SECONDS: Final = 60.0
"""Until a process that has let go of its terminal must have ended."""


def in_terminal(
    command: Sequence[str], *, directory: Path | None = None, environment: Mapping[str, str] | None = None
) -> tuple[int, str]:
    """The command's exit code and all that was shown."""
    ours, theirs = pty.openpty()
    process = subprocess.Popen(
        command, cwd=directory, env=environment, stdin=theirs, stdout=theirs, stderr=theirs, start_new_session=True
    )
    os.close(theirs)
    shown = b""
    try:
        while more := _read(ours):
            shown += more
    finally:
        os.close(ours)
        code = process.wait(timeout=LAST_SECONDS)
    return code, shown.decode(errors="replace").replace("\r\n", "\n")


def _read(terminal: int) -> bytes:
    """Linux says by an error that nobody has the terminal open any more."""
    try:
        return os.read(terminal, 65_536)
    except OSError:
        return b""
