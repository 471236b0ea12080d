"""Lines of a file or a pipe: one at a time with its number, or many at once in one buffer.

A pipe may be slow: `covey match subscriptions.jsonl -` at the end of `tail -f` must not hold events back until a block
is full. So a block ends where the next line isn't there yet, and says so. Python's own buffered reader can't tell what
it holds, so blocks of a pipe are read past it.
"""

from __future__ import annotations

import io
import os
import select
import stat
import zlib
from collections.abc import Iterator
from dataclasses import dataclass
from typing import IO, Final

_CHUNK: Final = 1 << 18
_BLOCK: Final = 1 << 21
"""Bytes of a block: enough events for kernels to be at their best, and of a middling file several for threads."""


@dataclass(frozen=True, slots=True)
class Block:
    """Whole lines, one after the other."""

    content: bytes
    first_line: int
    last: bool
    """Whether nothing more is there yet, or ever."""


class Blocks:
    """A file's lines, many at a time; of one that is longer than the limit only as much as tells that."""

    def __init__(self, file: IO[bytes], most_lines: int, line_length: int) -> None:
        self._file = file
        self._lines = most_lines
        self._longest = line_length + 2  # a line end of two bytes doesn't count
        self._pipe = _descriptor(file)
        self._held = bytearray()
        self._cutting = False
        self._line = 1

    def __iter__(self) -> Iterator[Block]:
        ended = False
        while not ended:
            try:
                chunk = self._more()
            except (EOFError, OSError, zlib.error):
                yield from self._whole(ended=False)  # what came before the damage
                raise
            ended = not chunk
            self._take(chunk)
            if ended or len(self._held) >= _BLOCK or self._waiting():
                yield from self._whole(ended)

    def _more(self) -> bytes:
        if self._pipe is not None:
            return os.read(self._pipe, _CHUNK)
        return self._file.read1(_BLOCK)  # type: ignore[attr-defined, no-any-return]

    def _waiting(self) -> bool:
        return self._pipe is not None and not select.select([self._pipe], [], [], 0)[0]

    def _take(self, chunk: bytes) -> None:
        if self._cutting:
            end = chunk.find(b"\n")
            if end < 0:
                return
            chunk, self._cutting = chunk[end:], False
        self._held += chunk
        start = self._held.rfind(b"\n") + 1
        if len(self._held) - start > self._longest:
            del self._held[start + self._longest :]
            self._cutting = True

    def _whole(self, ended: bool) -> Iterator[Block]:
        """The whole lines that are held, in blocks; at the end all that is held."""
        end = len(self._held) if ended else self._held.rfind(b"\n") + 1
        content = bytes(self._held[:end])
        del self._held[:end]
        start = 0
        while start < len(content):
            stop, count = _after_lines(content, start, self._lines)
            last = stop == len(content) and (ended or self._waiting())
            yield Block(content if stop - start == len(content) else content[start:stop], self._line, last)
            self._line += count
            start = stop


def _after_lines(content: bytes, start: int, most: int) -> tuple[int, int]:
    """Where so many lines end, or all that there are; and how many they are."""
    count = content.count(b"\n", start)
    if count < most or (count == most and content.endswith(b"\n")):
        return len(content), count
    at = start
    for _ in range(most):
        at = content.index(b"\n", at) + 1
    return at, most


class Lines:
    """A file's lines, one at a time."""

    def __init__(self, file: IO[bytes]) -> None:
        self._file = file
        self._inside = False
        self.number = 0
        """Of the line that was read last, from 1."""

    def readline(self, limit: int = -1, /) -> bytes:
        """The next line, or `limit` bytes of it."""
        line = self._file.readline(limit)
        if line and not self._inside:
            self.number += 1
        self._inside = bool(line) and not line.endswith(b"\n")
        return line


def _descriptor(file: IO[bytes]) -> int | None:
    """That of a pipe, a socket or a terminal; None of other files, which never make one wait."""
    raw = getattr(file, "raw", None)
    if not isinstance(raw, io.FileIO) or stat.S_ISREG(os.fstat(raw.fileno()).st_mode) or os.name == "nt":
        return None
    return raw.fileno()
