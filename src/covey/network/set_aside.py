"""Inputs in the middle of which a broker raised, for whoever mends the defect.

They are logged, and where the broker had to be restored from its journal, also written to a file beside it. They are
never taken again, so a restart can't meet the same input twice. What is written of one is bounded, and so is the file.
"""

from __future__ import annotations

import json
import traceback
from datetime import UTC, datetime
from pathlib import Path
from typing import Any, Final

INPUT_CHARACTERS: Final = 4_000
"""Of an input, as Python writes it."""
FRAMES: Final = 12
"""Of a traceback."""
FILE_BYTES: Final = 1 << 20
"""Above, the file becomes `.1`, and the one before it goes."""
FILE_NAME: Final = "set_aside.jsonl"


def described(input: Any) -> str:
    """An input in one line that isn't too long."""
    text = repr(input)
    return text if len(text) <= INPUT_CHARACTERS else f"{text[:INPUT_CHARACTERS]}… ({len(text):,} characters)"


def set_aside(directory: Path, input: Any, error: BaseException) -> Path:
    """Write down an input and what it led to; gives the file."""
    path = directory / FILE_NAME
    if path.exists() and path.stat().st_size > FILE_BYTES:
        path.replace(path.with_suffix(".jsonl.1"))
    cause = error.__cause__ or error
    line = {
        "at": datetime.now(UTC).isoformat(),
        "error": str(error)[:INPUT_CHARACTERS],
        "input": described(input),
        "traceback": traceback.format_exception(cause, limit=-FRAMES, chain=False),
    }
    with path.open("a", encoding="utf-8") as file:
        path.chmod(0o600)
        file.write(json.dumps(line) + "\n")
    return path
