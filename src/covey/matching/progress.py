"""How far a long match has come, for whoever watches: a bar in a notebook or a terminal, or a function of the caller's.

In a notebook a bar shows itself without being asked for, where a batch is large enough to be waited for. rich draws it,
as HTML in a notebook; it is imported only then.
"""

from __future__ import annotations

import sys
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from typing import Any, Final, TypeAlias

STEP: Final = 1 << 16
"""Events between two steps: enough for kernels to be at their best."""
SOON: Final = 4 * STEP
"""Events that are matched too soon for a bar to be of use."""
Progress: TypeAlias = "bool | Callable[[int, int], object] | None"
"""True for a bar, a function of how many are done and how many there are, False for nothing; None for a bar in
notebooks alone."""
Told: TypeAlias = Callable[[int, int], object]


def in_notebook() -> bool:
    """Whether a person looks at a notebook now."""
    shell: Any = getattr(sys.modules.get("IPython"), "get_ipython", lambda: None)()
    return shell is not None and hasattr(shell, "kernel")


@contextmanager
def watched(progress: Progress, total: int, what: str = "events", soon: int = SOON) -> Iterator[Told | None]:
    """Whom to tell how far it is; None for nobody. Up to `soon` of `what` is done is too few for a bar by itself."""
    if progress is None:
        progress = total > soon and in_notebook()
    if isinstance(progress, bool):
        if not progress:
            yield None
            return
        with _bar(total, what) as told:
            yield told
        return
    yield progress


@contextmanager
def _bar(total: int, what: str) -> Iterator[Told]:
    from rich.progress import BarColumn, MofNCompleteColumn, TextColumn, TimeRemainingColumn
    from rich.progress import Progress as Bar

    columns = (TextColumn("{task.description}"), BarColumn(), MofNCompleteColumn(), TimeRemainingColumn())
    with Bar(*columns, transient=True) as bar:
        task = bar.add_task(what, total=total)
        yield lambda done, _total: bar.update(task, completed=done)
