"""Matching a batch on threads: chunks of events that are large enough to be quick and small enough to be held."""

from __future__ import annotations

import os
from collections.abc import Callable, Sequence
from concurrent.futures import ThreadPoolExecutor
from functools import lru_cache

from covey.errors import CoveyError
from covey.events import Columns
from covey.events.byte_batches import Share, Spread
from covey.matching.matches import Part
from covey.matching.state import Sealed

_CHUNK = 131_072
"""Events matched at once: the more, the more of them meet an entry while it is in the cache."""
_CHUNK_CODES = 1 << 24
_CHUNK_MATCHES = 8_000_000
"""Bounds on what a chunk may need: codes of all attributes, and matches."""
_TRIAL = 512
_COLUMN_FROM = 1
"""A term that an event asks for more often than this is computed as a column."""


def match_segment(number: int, sealed: Sealed, batch: Columns, workers: int) -> list[Part]:
    """A batch against one segment, in chunks that threads share. A first small chunk tells how large the others may
    be for their matches to stay within bounds."""
    segment = sealed.segment
    encoded = segment.encoder.prepare(batch)

    def chunk(first: int, last: int) -> Part:
        offsets, ordinals = segment.match_chunk(batch, encoded, first, last, sealed.deleted)
        return Part(number, first, offsets, ordinals)

    if batch.length <= _TRIAL:
        return [chunk(0, batch.length)] if batch.length else []
    trial = chunk(0, _TRIAL)
    often = encoded.formulas.asked_more_than(_COLUMN_FROM * _TRIAL)
    if often:
        batch = batch.computed(often)
        encoded = segment.encoder.prepare(batch)
    rate = len(trial.ordinals) / _TRIAL
    size = int(
        min(_CHUNK, max(_TRIAL, min(_CHUNK_MATCHES / max(rate, 1.0), _CHUNK_CODES / max(segment.encoder.rows, 1))))
    )
    remaining = batch.length - _TRIAL
    pieces = -(-remaining // size)
    if workers > 1:
        pieces = -(-pieces // workers) * workers  # an equal share for each thread
    size = max(1, -(-remaining // pieces))
    bounds = [(first, min(first + size, batch.length)) for first in range(_TRIAL, batch.length, size)]
    if workers == 1:
        return [trial, *(chunk(*bound) for bound in bounds)]
    return [trial, *_pool(workers).map(lambda bound: chunk(*bound), bounds)]


def workers_for(threads: int | None) -> int:
    """How many threads to use: as many as asked for, or one a core."""
    if threads is not None and threads < 1:
        raise CoveyError(f"threads is {threads}; use 1 or more")
    return threads or os.cpu_count() or 1


def spread_over(workers: int) -> Spread:
    """A way to call a function for each of many shares on so many threads."""

    def spread(read: Callable[[Share], None], shares: Sequence[Share]) -> None:
        if workers == 1 or len(shares) == 1:
            for share in shares:
                read(share)
        else:
            list(_pool(workers).map(read, shares))

    return spread


@lru_cache(maxsize=8)
def _pool(workers: int) -> ThreadPoolExecutor:
    return ThreadPoolExecutor(workers, thread_name_prefix="covey-match")


@lru_cache(maxsize=1)
def background() -> ThreadPoolExecutor:
    """The one thread on which large segments are merged."""
    return ThreadPoolExecutor(1, thread_name_prefix="covey-merge")


@lru_cache(maxsize=1)
def preparing() -> ThreadPoolExecutor:
    """The one thread on which subscriptions are compiled before they are added; merges would hold them up."""
    return ThreadPoolExecutor(1, thread_name_prefix="covey-prepare")
