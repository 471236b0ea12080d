"""What measurements have in common."""

from __future__ import annotations

import gc
import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager


@contextmanager
def without_collecting() -> Iterator[None]:
    """Millions of filters and no cycles: looking for garbage among them would take most of the time."""
    enabled = gc.isenabled()
    gc.disable()
    try:
        yield
    finally:
        if enabled:
            gc.enable()


def seconds(action: Callable[..., object], *arguments: object) -> float:
    """The processor time of an action."""
    start = time.process_time()
    action(*arguments)
    return time.process_time() - start
