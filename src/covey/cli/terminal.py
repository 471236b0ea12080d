"""What goes to standard error: complaints, one a line, and progress where someone watches.

A bar stands in the last line of the screen, and what is said meanwhile goes above it. rich would see to that by putting
objects of its own into `sys.stdout` and `sys.stderr`; those belong to every thread of the process, so it is told not
to, and `complain` asks the bar's console to print instead.
"""

from __future__ import annotations

import sys
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from typing import Protocol

from rich.console import Console
from rich.progress import (
    BarColumn,
    Progress,
    ProgressColumn,
    SpinnerColumn,
    TaskProgressColumn,
    TextColumn,
    TimeElapsedColumn,
)

from covey.errors import CoveyError, FilterSyntaxError

_EXCERPT = 60
MOST_SHOWN = 20
"""Rows that can't be used of which a report says what is wrong, before it only counts them."""

_bars: list[Console] = []
"""The consoles of the bars on the screen; the last one prints."""


def complain(message: str) -> None:
    """One line for the user."""
    line = f"covey: {message}"
    if _bars:
        _bars[-1].print(line, markup=False, highlight=False, emoji=False, soft_wrap=True)
    else:
        print(line, file=sys.stderr, flush=True)


def one_line(error: Exception) -> str:
    """An error as one line; a caret becomes the place in words."""
    if isinstance(error, FilterSyntaxError):
        start = max(0, error.position - _EXCERPT // 2)
        near = " ".join(error.text[start : start + _EXCERPT].split())
        return f"{error.message} (character {error.position + 1}: {near})"
    return " ".join(str(error).split())


def aligned(rows: Sequence[Sequence[str]]) -> str:
    """A table of text: the first column to the left, the others to the right."""
    widths = [max(map(len, column)) for column in zip(*rows, strict=True)]
    lines = []
    for first, *others in rows:
        cells = [f"{cell:>{width}}" for cell, width in zip(others, widths[1:], strict=True)]
        lines.append("  ".join([f"{first:<{widths[0]}}", *cells]))
    return "\n".join(lines)


class Report:
    """Rows that can't be used: each is said at once, up to a limit, and counted."""

    def __init__(self, what: str, name: str) -> None:
        self.what = what
        self.name = name
        self.count = 0

    def bad(self, place: str, problem: str) -> None:
        """Say that the row at a place can't be used."""
        self.count += 1
        if self.count <= MOST_SHOWN:
            complain(f"{self.name} {place}: {problem}" if place else f"{self.name}: {problem}")

    def end(self) -> None:
        """Say how many weren't said."""
        if self.count > MOST_SHOWN:
            complain(f"{self.name}: and {self.count - MOST_SHOWN:,} more such {self.what}s")

    def __str__(self) -> str:
        return f"{self.count:,} {self.what}{'' if self.count == 1 else 's'}"


class BadRowsError(CoveyError):
    """Rows that can't be used, which have been reported one by one."""


class Step(Protocol):
    """Where a long piece of work says how far it is."""

    def __call__(self, count: int, done: int, total: int | None, /) -> None:
        """So many rows are read, and so much of the total, in whatever unit that is known."""


def unwatched(_count: int, _done: int, _total: int | None, /) -> None:
    """Nobody wants to know."""


def watched() -> bool:
    """Whether progress would be seen, and not mixed into results on the same screen."""
    return sys.stderr.isatty()


@contextmanager
def on_screen(*columns: ProgressColumn) -> Iterator[Progress]:
    """A bar of such columns on standard error, gone when the block ends."""
    console = Console(stderr=True)
    bar = Progress(*columns, console=console, transient=True, redirect_stdout=False, redirect_stderr=False)
    _bars.append(console)
    try:
        with bar:
            yield bar
    finally:
        _bars.remove(console)


@contextmanager
def progress(title: str, *, shown: bool) -> Iterator[Step]:
    """A bar on standard error, gone when the work is done."""
    if not shown:
        yield unwatched
        return
    columns = (
        SpinnerColumn(), TextColumn("{task.description}"), BarColumn(), TaskProgressColumn(), TimeElapsedColumn()
    )  # fmt: skip
    with on_screen(*columns) as bar:
        task = bar.add_task(title, total=None)
        yield lambda count, done, total: bar.update(task, description=f"{count:,} {title}", completed=done, total=total)
