"""Lines of a file or a pipe, with the number of the line that was read last.

A pipe may be slow: `covey match subscriptions.jsonl -` at the end of `tail -f` must not hold events back until a batch
is full. `waiting` says when the next line isn't there yet, so that what has come can be matched meanwhile. Python's
own buffered reader can't tell what it holds, so a pipe's bytes are held here.
"""

from __future__ import annotations

import io
import os
import select
import stat
from typing import IO

_CHUNK = 1 << 18


class Lines:
    """A file's lines."""

    def __init__(self, file: IO[bytes]) -> None:
        self._file = file
        self._inside = False
        self.number = 0
        """Of the line that was read last, from 1."""

    def readline(self, limit: int = -1, /) -> bytes:
        """The next line, or `limit` bytes of it."""
        line = self._next(limit)
        if line and not self._inside:
            self.number += 1
        self._inside = bool(line) and not line.endswith(b"\n")
        return line

    def _next(self, limit: int) -> bytes:
        return self._file.readline(limit)

    def waiting(self) -> bool:
        """Whether the next line has yet to be written."""
        return False


class PipeLines(Lines):
    """The lines of a pipe, a socket or a terminal."""

    def __init__(self, file: IO[bytes]) -> None:
        super().__init__(file)
        self._descriptor = file.fileno()
        self._held = bytearray()
        self._searched = 0
        self._ended = False

    def _next(self, limit: int) -> bytes:
        while not (end := self._line_end()) and not (0 <= limit <= len(self._held)) and self._more():
            pass
        end = end or len(self._held)
        end = min(end, limit) if limit >= 0 else end
        line = bytes(self._held[:end])
        del self._held[:end]
        self._searched = 0
        return line

    def _line_end(self) -> int:
        """Just after the first line end that is held; 0 where there is none."""
        end = self._held.find(b"\n", self._searched) + 1
        self._searched = max(end - 1, 0) if end else len(self._held)
        return end

    def _more(self) -> bool:
        chunk = os.read(self._descriptor, _CHUNK)
        self._held += chunk
        self._ended = not chunk
        return not self._ended

    def waiting(self) -> bool:
        """Whether the next line has yet to be written."""
        if self._line_end() or self._ended:
            return False
        return not select.select([self._descriptor], [], [], 0)[0]


def lines_of(file: IO[bytes]) -> Lines:
    """The lines of an open file, of the kind that suits it."""
    try:
        regular = stat.S_ISREG(os.fstat(file.fileno()).st_mode)
    except (OSError, io.UnsupportedOperation):
        regular = True
    return Lines(file) if regular or os.name == "nt" else PipeLines(file)
